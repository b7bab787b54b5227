//! The thread that follows files, with inotify, and by polling where that does not work.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use containerpilot_core::input::WatchResult;
use containerpilot_core::plan::Level;
use containerpilot_core::{SortedMap, inserted};
use containerpilot_process::failpoints::failpoint;
use containerpilot_process::sys;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::statfs::{self, FsType};

use super::Followed;
use super::find_file::{self, Interest};
use crate::messages::LoopMessage;
use crate::messages::channel::{Receiver, Sender};

/// How long a file must be quiet before it is read, and how long that is waited for. A program may write it in several
/// steps.
const QUIET: Duration = Duration::from_millis(20);
const LONGEST_UNREST: Duration = Duration::from_millis(200);
/// So many changes of a file are seen at once. Of one that changes all the time, one is seen in each of these intervals,
/// or in ten times what reading it takes.
const BURST: u32 = 10;
const REFILL: Duration = Duration::from_secs(1);
const READING_SHARE: u32 = 10;
/// Pause before the thread goes on after a panic.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// A name in a directory, or a link, has come, gone or changed.
const NAMES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF);
/// A file, or one of a directory, has been written.
const CONTENTS: AddWatchFlags =
    AddWatchFlags::IN_MODIFY.union(AddWatchFlags::IN_CLOSE_WRITE).union(AddWatchFlags::IN_ATTRIB);

/// File systems on which files change without an event: those of other machines and processes, and of the kernel.
const SILENT: [FsType; 9] = [
    FsType(0x6969),      // NFS
    FsType(0xff53_4d42), // CIFS
    FsType(0xfe53_4d42), // SMB2
    FsType(0x6573_5546), // FUSE
    FsType(0x0102_1997), // 9P
    FsType(0x00c3_6400), // Ceph
    FsType(0x9fa0),      // proc
    FsType(0x6265_6572), // sysfs
    FsType(0x6367_7270), // cgroup v2
];

/// A command of the event loop to the thread.
#[derive(Debug)]
enum Command {
    Follow(Vec<(String, Followed)>),
    Stop,
}

/// The event loop's handle of the thread.
#[derive(Debug)]
pub(super) struct FileWatches {
    commands: Sender<Command>,
}

impl FileWatches {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let receiver = Receiver::new()?;
        let commands = receiver.sender();
        std::thread::Builder::new().name("files".to_owned()).spawn(move || Thread::new(receiver).run())?;
        Ok(Self { commands })
    }

    /// Follows these files, and no others.
    pub(super) fn follow(&self, files: Vec<(String, Followed)>) {
        self.commands.send(Command::Follow(files));
    }
}

impl Drop for FileWatches {
    fn drop(&mut self) {
        self.commands.send(Command::Stop);
    }
}

struct Thread {
    commands: Receiver<Command>,
    /// `None` if it does not work. Then every file is polled.
    inotify: Option<Inotify>,
    files: Vec<File>,
    /// What each descriptor is followed for, by file.
    interests: SortedMap<WatchDescriptor, Vec<(usize, Interest)>>,
    is_reported: bool,
}

struct File {
    path: PathBuf,
    followed: Followed,
    descriptors: BTreeSet<WatchDescriptor>,
    last: Option<WatchResult>,
    /// When it is read again, if inotify does not work for it, or it has changed too often.
    poll_at: Option<Instant>,
    /// When all of [`BURST`] changes can be seen at once again.
    calm_at: Instant,
}

impl File {
    /// When it may be read.
    fn not_before(&self) -> Instant {
        self.calm_at.checked_sub(REFILL * (BURST - 1)).unwrap_or(self.calm_at)
    }
}

impl Thread {
    fn new(commands: Receiver<Command>) -> Self {
        let files = Vec::new();
        Self { commands, inotify: None, files, interests: SortedMap::new(), is_reported: false }
    }

    /// Follows files until the stop command. Starts over after a panic.
    fn run(mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.turn())) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(_) => std::thread::sleep(PANIC_PAUSE),
            }
        }
    }

    fn turn(&mut self) -> ControlFlow<()> {
        self.wait(self.files.iter().filter_map(|file| file.poll_at).min());
        failpoint("files");
        let commands: Vec<Command> = self.commands.take().collect();
        for command in commands {
            match command {
                Command::Follow(files) => self.follow(files),
                Command::Stop => return ControlFlow::Break(()),
            }
        }
        let mut dirty = self.changed();
        let now = Instant::now();
        let is_due = |file: &File| file.poll_at.is_some_and(|at| at <= now);
        dirty.extend(self.files.iter().enumerate().filter(|(_, file)| is_due(file)).map(|(nth, _)| nth));
        for nth in dirty {
            match self.files.get(nth).map(File::not_before) {
                Some(later) if later > now => self.read_at(nth, later),
                _ => self.read(nth),
            }
        }
        ControlFlow::Continue(())
    }

    /// Waits for a command, an event, or the time to poll.
    fn wait(&self, until: Option<Instant>) {
        let inotify = self.inotify.as_ref().map_or(-1, |inotify| inotify.as_fd().as_raw_fd());
        let mut fds = [
            sys::poll_fd(self.commands.waker().as_fd().as_raw_fd(), sys::POLLIN),
            sys::poll_fd(inotify, sys::POLLIN),
        ];
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        if sys::poll(&mut fds, timeout).is_err() {
            std::thread::sleep(sys::POLL_FAILED_DELAY);
        }
    }

    fn follow(&mut self, files: Vec<(String, Followed)>) {
        let mut old = std::mem::take(&mut self.files);
        // The number of a file may be another now.
        self.interests = SortedMap::new();
        for (path, followed) in files {
            let place = old.iter().position(|file| *file.followed.watch == *followed.watch);
            self.files.push(match place {
                Some(place) => old.swap_remove(place),
                None => File {
                    path: path.into(),
                    followed,
                    descriptors: BTreeSet::new(),
                    last: None,
                    poll_at: None,
                    calm_at: Instant::now(),
                },
            });
        }
        let kept: BTreeSet<_> = inserted(self.files.iter().flat_map(|file| file.descriptors.clone()));
        let gone: BTreeSet<_> = inserted(old.into_iter().flat_map(|file| file.descriptors));
        for descriptor in gone.difference(&kept) {
            self.forget(*descriptor);
        }
        if self.files.is_empty() {
            self.inotify = None;
        }
        for nth in 0..self.files.len() {
            self.read(nth);
        }
    }

    /// The files that events concern, once they are quiet.
    fn changed(&mut self) -> BTreeSet<usize> {
        let mut dirty = BTreeSet::new();
        let latest = Instant::now() + LONGEST_UNREST;
        loop {
            let events = self.events();
            if events.is_empty() {
                return dirty;
            }
            for event in &events {
                self.mark(event, &mut dirty);
            }
            let now = Instant::now();
            if dirty.is_empty() || now >= latest {
                return dirty;
            }
            self.wait(Some(latest.min(now + QUIET)));
        }
    }

    fn events(&self) -> Vec<InotifyEvent> {
        // EAGAIN: there are no more.
        self.inotify.as_ref().and_then(|inotify| inotify.read_events().ok()).unwrap_or_default()
    }

    fn mark(&mut self, event: &InotifyEvent, dirty: &mut BTreeSet<usize>) {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return dirty.extend(0..self.files.len());
        }
        let is_meant = |interest: &Interest| match (interest, event.name.as_deref()) {
            (Interest::Contents, _) | (_, None) => true,
            (Interest::Name(name), Some(changed)) => name.as_os_str() == changed,
        };
        let interests = self.interests.get(&event.wd).into_iter().flatten();
        dirty.extend(interests.filter(|(_, interest)| is_meant(interest)).map(|(nth, _)| *nth));
        if event.mask.contains(AddWatchFlags::IN_IGNORED) {
            // The kernel has removed it, and may give its number to another.
            self.interests.remove(&event.wd);
            for file in &mut self.files {
                file.descriptors.remove(&event.wd);
            }
        }
    }

    /// Reads a file later. Until then it is not followed, so its changes cost nothing.
    fn read_at(&mut self, nth: usize, later: Instant) {
        self.replace(nth, Vec::new());
        if let Some(file) = self.files.get_mut(nth) {
            file.poll_at = Some(later);
        }
    }

    /// Reads a file, follows the directories and links of its path, and reports a change.
    fn read(&mut self, nth: usize) {
        if self.inotify.is_none() {
            self.inotify = self.open();
        }
        let began = Instant::now();
        let Some(file) = self.files.get(nth) else { return };
        let mut added: Vec<(WatchDescriptor, Interest)> = Vec::new();
        let mut failed = None;
        let mut must_poll = self.inotify.is_none();
        let answer = find_file::read(&file.path, |path, interest| {
            must_poll |= interest == Interest::Contents && is_silent(path);
            match self.inotify.as_ref().map(|inotify| add(inotify, path, &interest)) {
                Some(Ok(descriptor)) => added.push((descriptor, interest)),
                // It does not exist or is not readable: the look-up reports that.
                Some(Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES)) | None => {}
                Some(Err(errno)) => failed = Some(errno),
            }
        });
        must_poll |= failed.is_some();
        if let Some(errno) = failed {
            self.report(errno);
        }
        self.replace(nth, added);
        let Some(file) = self.files.get_mut(nth) else { return };
        let now = Instant::now();
        file.poll_at = must_poll.then(|| now + file.followed.watch.interval);
        file.calm_at = file.calm_at.max(began) + REFILL.max((now - began) * READING_SHARE);
        if file.last.as_ref() != Some(&answer) {
            file.last = Some(answer.clone());
            file.followed.tell(answer);
        }
    }

    /// Replaces what is followed for a file.
    fn replace(&mut self, nth: usize, added: Vec<(WatchDescriptor, Interest)>) {
        let Some(file) = self.files.get_mut(nth) else { return };
        let descriptors: BTreeSet<_> = inserted(added.iter().map(|(descriptor, _)| *descriptor));
        let old = std::mem::replace(&mut file.descriptors, descriptors);
        for descriptor in &old {
            if let Some(interests) = self.interests.get_mut(descriptor) {
                interests.retain(|(other, _)| *other != nth);
            }
        }
        for (descriptor, interest) in added {
            let interests = self.interests.get_or_insert(descriptor, Vec::new());
            if !interests.contains(&(nth, interest.clone())) {
                interests.push((nth, interest));
            }
        }
        for descriptor in old {
            if !self.files.iter().any(|file| file.descriptors.contains(&descriptor)) {
                self.forget(descriptor);
            }
        }
    }

    fn forget(&mut self, descriptor: WatchDescriptor) {
        self.interests.remove(&descriptor);
        if let Some(inotify) = &self.inotify {
            // It may be gone already.
            let _ = inotify.rm_watch(descriptor);
        }
    }

    fn open(&mut self) -> Option<Inotify> {
        match Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK) {
            Ok(inotify) => Some(inotify),
            Err(errno) => {
                self.report(errno);
                None
            }
        }
    }

    /// Logs once that files are polled.
    fn report(&mut self, errno: Errno) {
        let Some(file) = self.files.first().filter(|_| !self.is_reported) else { return };
        let help = match errno {
            Errno::ENOSPC => "; raise fs.inotify.max_user_watches",
            Errno::EMFILE => "; raise fs.inotify.max_user_instances",
            _ => "",
        };
        let message = format!("cannot follow files with inotify: {errno:?}; polling them instead{help}");
        file.followed.sender.send(LoopMessage::Log(Level::Warn, message));
        self.is_reported = true;
    }
}

/// Follows a place. The masks of several interests in it add up.
fn add(inotify: &Inotify, path: &Path, interest: &Interest) -> Result<WatchDescriptor, Errno> {
    let mask = match interest {
        Interest::Name(_) => NAMES | AddWatchFlags::IN_ONLYDIR,
        Interest::Contents => NAMES | CONTENTS,
    };
    inotify.add_watch(path, mask | AddWatchFlags::from_bits_retain(nix::libc::IN_MASK_ADD))
}

fn is_silent(path: &Path) -> bool {
    statfs::statfs(path).is_ok_and(|found| SILENT.contains(&found.filesystem_type()))
}
