//! Looks at files on threads of their own, because a file system may not answer (P15).
//!
//! The thread that loads a configuration opens no file. It hands each look to another thread and waits for the
//! answer: for the configuration and an `envFile` as long as it takes, for the paths of jobs [`PATIENCE`] in all. One
//! thread does all looks of a load, one after another, as long as each is answered. A thread without an answer is
//! left to itself. It does not keep the process from exiting. Before a thread looks at paths of jobs, a [`Scout`]
//! tries them: unlike a thread, it can be killed.
//!
//! Where all mounted file systems are local, which is usual, every path answers: then there is neither a thread nor a
//! scout.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use containerpilot_config::host::PATIENCE;
use containerpilot_process::sys::{self, Scout, Waker};

use crate::mounts;

/// If no look is answered for this long, those behind it get threads of their own.
const STALLED: Duration = Duration::from_millis(100);

/// How many processes try paths at a time.
const MAX_SCOUTS: usize = 256;

/// With this many looks without an answer in the process, a load starts no thread beside its first one.
const MAX_UNANSWERED: usize = 64;

/// The looks at paths of jobs that have no answer yet. Another load reports them without looking there again, so a
/// file system that does not answer does not cost a thread at each reload.
static UNANSWERED: Mutex<BTreeSet<PathLook>> = Mutex::new(BTreeSet::new());

/// A look at a path of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathLook {
    /// Whether it can be run; without a slash it is searched in `PATH`.
    Program(String),
    /// Whether it is a directory.
    Directory(String),
    /// Whether it can be read.
    File(String),
    /// Its content.
    Template(String),
    /// Whether it can be written.
    LogFile(String),
}

type Work = Box<dyn FnOnce() + Send>;

/// The looks of one load.
pub struct Looks {
    work: mpsc::Sender<Work>,
    queue: Arc<Mutex<mpsc::Receiver<Work>>>,
    /// Woken by each answer; `None` if no descriptor is available.
    answered: Option<Arc<Waker>>,
    /// Readable when the load must be abandoned.
    stop: Option<OwnedFd>,
    stopped: Cell<bool>,
    /// Reports a file that is needed and was not read within [`PATIENCE`].
    report: Box<dyn Fn(&Path)>,
    /// Whether all mounted file systems are local.
    local: OnceCell<bool>,
    /// How many threads were started.
    threads: Cell<usize>,
    /// How many looks have no answer yet.
    open: Cell<usize>,
}

impl Looks {
    /// `report` is called with a file that is still waited for after [`PATIENCE`], once for each look.
    pub fn new(report: impl Fn(&Path) + 'static) -> Self {
        let (work, queue) = mpsc::channel();
        Self {
            work,
            queue: Arc::new(Mutex::new(queue)),
            answered: Waker::new().ok().map(Arc::new),
            stop: None,
            stopped: Cell::new(false),
            report: Box::new(report),
            local: OnceCell::new(),
            threads: Cell::new(0),
            open: Cell::new(0),
        }
    }

    /// Returns true if every path answers, so that no thread is needed to look at it.
    fn is_local(&self) -> bool {
        *self.local.get_or_init(mounts::are_local)
    }

    /// Reports on standard error which file is waited for.
    pub fn reported_on_stderr() -> Self {
        // The wait goes on if standard error is closed.
        Self::new(|path| drop(writeln!(std::io::stderr(), "containerpilot: {}", waiting_for(path))))
    }

    /// Abandons every look when `stop` is readable.
    pub fn until(self, stop: OwnedFd) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Returns true if a look was abandoned because of [`Looks::until`].
    pub fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Looks at a file that is needed, and waits as long as it takes. `None` if the look was abandoned.
    pub fn needed<T: Send + 'static>(
        &self,
        path: &Path,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.is_stopped() {
            return None;
        }
        // Anything else may be a FIFO without a writer.
        if self.is_local() && std::fs::metadata(path).is_ok_and(|found| found.is_file() || found.is_dir()) {
            return Some(look());
        }
        let mut answer = Arc::new(Mutex::new(None));
        let (slot, wake) = (Arc::clone(&answer), WakeOnDrop(self.answered.clone()));
        self.submit(Box::new(move || {
            // Dropped in the opposite order: the look is over when it wakes.
            let (_wake, slot) = (wake, slot);
            let found = look();
            *locked(&slot) = Some(found);
        }));
        self.wait_for_needed(path, &mut || Arc::get_mut(&mut answer).is_some());
        // Nothing is there if the look was abandoned or has panicked.
        locked(&answer).take()
    }

    /// Waits as long as it takes until a look is over. Returns early if it is abandoned.
    fn wait_for_needed(&self, path: &Path, is_over: &mut dyn FnMut() -> bool) {
        self.start_threads(self.open.get());
        let mut report_at = Some(Instant::now() + PATIENCE);
        loop {
            if is_over() {
                self.open.set(self.open.get().saturating_sub(1));
                return;
            }
            if report_at.is_some_and(|at| at <= Instant::now()) {
                report_at = None;
                (self.report)(path);
            }
            if !self.wait(&[], report_at) {
                return;
            }
        }
    }

    /// The looks whose paths exist or not, but answer within [`PATIENCE`]. `paths` are those that a look tries in turn.
    pub fn answering(
        &self,
        looks: BTreeSet<PathLook>,
        paths: impl Fn(&PathLook) -> Vec<CString>,
    ) -> BTreeSet<PathLook> {
        if self.is_local() {
            return looks;
        }
        let scout = |looks: VecDeque<PathLook>| {
            let scout = Scout::start(looks.iter().map(&paths).collect()).ok()?;
            Some((scout, looks))
        };
        let mut answering = BTreeSet::new();
        let mut scouts: Vec<(Scout, VecDeque<PathLook>)> = Vec::new();
        if !looks.is_empty() {
            match scout(looks.iter().cloned().collect()) {
                Some(first) => scouts.push(first),
                // Without a process the thread finds out.
                None => return looks,
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let mut stalled = Instant::now() + STALLED;
        while scouts.iter().any(|(_, looks)| !looks.is_empty()) && Instant::now() < deadline {
            let free = MAX_SCOUTS.saturating_sub(scouts.len());
            if stalled <= Instant::now() && free > 0 {
                // The first path of each list has no answer: the others get scouts of their own.
                let behind: Vec<PathLook> =
                    scouts.iter_mut().flat_map(|(_, looks)| looks.drain(1.min(looks.len())..)).collect();
                for some in behind.chunks(behind.len().div_ceil(free).max(1)) {
                    match scout(some.iter().cloned().collect()) {
                        Some(another) => scouts.push(another),
                        None => answering.extend(some.iter().cloned()),
                    }
                }
                stalled = deadline;
            }
            // Each is closed when all its paths are answered.
            let fds: Vec<RawFd> = scouts.iter().filter_map(|(scout, _)| scout.poll_fd()).collect();
            if fds.is_empty() || !self.wait(&fds, Some(stalled.min(deadline))) {
                break;
            }
            for (scout, looks) in &mut scouts {
                let count = scout.read().min(looks.len());
                if count > 0 {
                    stalled = Instant::now() + STALLED;
                }
                answering.extend(looks.drain(..count));
            }
        }
        Scout::end(scouts.into_iter().map(|(scout, _)| scout).collect());
        answering
    }

    /// Looks at paths of jobs. One without an answer within [`PATIENCE`] is missing in the result.
    pub fn answers<T: Send + 'static>(
        &self,
        mut looks: BTreeSet<PathLook>,
        look_at: impl Fn(&PathLook) -> T + Clone + Send + 'static,
    ) -> BTreeMap<PathLook, T> {
        looks.retain(|look| !unanswered().contains(look));
        let mut found = BTreeMap::new();
        if looks.is_empty() || self.is_stopped() {
            return found;
        }
        if self.is_local() {
            for look in looks {
                let answer = look_at(&look);
                found.insert(look, answer);
            }
            return found;
        }
        let (before, count) = (self.open.get(), looks.len());
        let mut answers = Arc::new(Mutex::new(Vec::new()));
        // The last one wakes: this thread has nothing to do before.
        let wake = Arc::new(WakeOnDrop(self.answered.clone()));
        for look in looks {
            let (look_at, answers, wake) = (look_at.clone(), Arc::clone(&answers), Arc::clone(&wake));
            self.submit(Box::new(move || {
                let (_wake, answers) = (wake, answers);
                let look = Unanswered::new(look);
                let answer = (look.0.clone(), look_at(&look.0));
                locked(&answers).push(answer);
            }));
        }
        drop(wake);
        self.start_threads(before + 1);
        let deadline = Instant::now() + PATIENCE;
        let mut stalled = Instant::now() + STALLED;
        while found.len() < count {
            // Of those that are over, only the ones that have panicked have no answer.
            let are_over = Arc::get_mut(&mut answers).is_some();
            let new = std::mem::take(&mut *locked(&answers));
            if !new.is_empty() {
                self.open.set(self.open.get().saturating_sub(new.len()));
                found.extend(new);
                stalled = stalled.max(Instant::now() + STALLED);
                continue;
            }
            if are_over {
                break;
            }
            if stalled <= Instant::now() {
                let free = MAX_UNANSWERED.saturating_sub(unanswered().len());
                self.start_threads(before + (count - found.len()).min(free));
                stalled = deadline;
            }
            if deadline <= Instant::now() || !self.wait(&[], Some(stalled.min(deadline))) {
                break;
            }
        }
        found
    }

    fn submit(&self, work: Work) {
        self.open.set(self.open.get() + 1);
        // It cannot fail: `self` has the receiver.
        let _ = self.work.send(work);
    }

    /// Starts threads until there are `wanted`. If there is none, the looks are done here: it is better to wait for a
    /// file system than not to load.
    fn start_threads(&self, wanted: usize) {
        while self.answered.is_some() && self.threads.get() < wanted {
            let queue = Arc::clone(&self.queue);
            if std::thread::Builder::new().name("look".to_owned()).spawn(move || serve(&queue)).is_err() {
                break;
            }
            self.threads.set(self.threads.get() + 1);
        }
        if self.threads.get() == 0 {
            while let Ok(work) = locked(&self.queue).try_recv() {
                work();
            }
        }
    }

    /// Waits until a thread wakes this one or one of `others` is closed, but only until a time. Returns false if the
    /// looks must be abandoned.
    fn wait(&self, others: &[RawFd], until: Option<Instant>) -> bool {
        let fd = |fd: std::os::fd::BorrowedFd<'_>| fd.as_raw_fd();
        let answered = self.answered.as_ref().map_or(-1, |waker| fd(waker.as_fd()));
        let stop = self.stop.as_ref().map_or(-1, |stop| fd(stop.as_fd()));
        let own = [answered, stop].map(|fd| sys::poll_fd(fd, sys::POLLIN));
        let others = others.iter().map(|fd| sys::poll_fd(*fd, 0));
        let mut fds: Vec<sys::PollFd> = own.into_iter().chain(others).collect();
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        if sys::poll(&mut fds, timeout).is_err() {
            std::thread::sleep(sys::POLL_FAILED_DELAY);
            return true;
        }
        let is_ready = |nth: usize| fds.get(nth).is_some_and(|fd| fd.revents != 0);
        if let Some(waker) = self.answered.as_ref().filter(|_| is_ready(0)) {
            waker.clear();
            // An answer that came together with the signal counts.
            return true;
        }
        self.stopped.set(is_ready(1));
        !self.stopped.get()
    }
}

/// What is waited for, in words.
pub fn waiting_for(path: &Path) -> String {
    format!("waiting for {}: it could not be read within {}s", path.display(), PATIENCE.as_secs())
}

/// Does looks until no more can come.
fn serve(queue: &Mutex<mpsc::Receiver<Work>>) {
    loop {
        let work = locked(queue).recv();
        let Ok(work) = work else { return };
        work();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unanswered() -> MutexGuard<'static, BTreeSet<PathLook>> {
    locked(&UNANSWERED)
}

/// An entry of [`UNANSWERED`], as long as it exists.
struct Unanswered(PathLook);

impl Unanswered {
    fn new(look: PathLook) -> Self {
        unanswered().insert(look.clone());
        Self(look)
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        unanswered().remove(&self.0);
    }
}

/// Wakes the loading thread, also after a panic.
struct WakeOnDrop(Option<Arc<Waker>>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        if let Some(waker) = &self.0 {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::rc::Rc;

    use super::*;
    use containerpilot_test_support as test_support;

    /// Looks at files of which some may not answer.
    fn remote(report: impl Fn(&Path) + 'static) -> Looks {
        Looks { local: OnceCell::from(false), ..Looks::new(report) }
    }

    /// A FIFO: opening it takes until it is opened for writing.
    fn fifo(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        path
    }

    fn directory(look: &PathLook) -> bool {
        let PathLook::Directory(path) = look else { panic!("{look:?}") };
        // Opening a FIFO waits; examining it does not.
        std::fs::File::open(path).is_ok_and(|file| file.metadata().unwrap().is_dir())
    }

    fn look(path: &Path) -> PathLook {
        PathLook::Directory(path.to_str().unwrap().to_owned())
    }

    fn answer(fifo: &Path) {
        drop(std::fs::File::options().write(true).open(fifo).unwrap());
    }

    #[test]
    fn p15_paths_without_an_answer_take_a_second_in_all_and_hide_no_other() {
        let folder = test_support::folder();
        let dead: Vec<PathBuf> = (0..20).map(|nth| fifo(&folder, &format!("a{nth}"))).collect();
        let good = look(&folder);
        let all: BTreeSet<PathLook> = dead.iter().map(|path| look(path)).chain([good.clone()]).collect();
        let (looks, began) = (remote(|_| ()), Instant::now());
        assert_eq!(looks.answers(all.clone(), directory), [(good.clone(), true)].into());
        assert!((1..5).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        // A later load does not look there again.
        let (looks, began) = (remote(|_| ()), Instant::now());
        assert_eq!(looks.answers(all.clone(), directory), [(good, true)].into());
        assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
        dead.iter().for_each(|path| answer(path));
        while !unanswered().is_disjoint(&all) {
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn p15_one_thread_does_all_looks_that_are_answered() {
        let folder = test_support::folder();
        let looks = remote(|path| panic!("waits for {}", path.display()));
        let id = || std::thread::current().id();
        let first = looks.needed(&folder, id).unwrap();
        assert_eq!(looks.needed(&folder, id), Some(first));
        let names: BTreeSet<PathLook> = (0..50).map(|nth| look(&folder.join(nth.to_string()))).collect();
        let found = looks.answers(names, move |_| id());
        assert_eq!((found.len(), looks.threads.get()), (50, 1));
        assert!(found.values().all(|id| *id == first));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn p15_file_that_is_needed_is_waited_for_and_reported_once() {
        let folder = test_support::folder();
        let path = fifo(&folder, "config");
        let reported = Rc::new(Cell::new(0));
        let looks = remote({
            let (reported, path) = (Rc::clone(&reported), path.clone());
            move |waiting| {
                assert_eq!(waiting, path);
                reported.set(reported.get() + 1);
                answer(waiting);
            }
        });
        let opened = looks.needed(&path, {
            let path = path.clone();
            move || std::fs::File::open(path).is_ok()
        });
        assert_eq!((opened, reported.get()), (Some(true), 1));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn p15_stop_abandons_every_look() {
        let folder = test_support::folder();
        let path = fifo(&folder, "config");
        let (stop, end) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(end);
        let looks = remote(|_| ()).until(stop.into());
        let opened = looks.needed(&path, {
            let path = path.clone();
            move || std::fs::File::open(path).is_ok()
        });
        assert_eq!((opened, looks.is_stopped()), (None, true));
        assert_eq!(looks.needed(&path, || 1), None);
        assert!(looks.answers([look(&folder)].into(), directory).is_empty());
        answer(&path);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
