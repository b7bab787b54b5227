//! Starting a process for a job or a check (P2, P3, P7, P8, P9).
//!
//! Everything that can be prepared is prepared here, before the child exists; the child itself only makes
//! system calls ([`sys::start`]). `std::process` is not used: as soon as a process group, limits or a user are
//! asked for, it copies the whole process with `fork`, which is slow for a supervisor with threads and memory, and
//! it cannot say at which step a start failed.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use containerpilot_config::template::Environment;
use containerpilot_core::environment::{self, JobVariables};
use containerpilot_core::input::{StartError, StartErrorKind};
use containerpilot_core::plan::{Command, Process};
use nix::errno::Errno;
use std::collections::BTreeMap;

use crate::process::sys::{self, CStrings, Failed, Image, Step, Variables};
use crate::process::{reaper, users};

/// Where a program is looked for when the environment has no `PATH`, as `execvp` does.
const USUAL_PATH: &[u8] = b"/bin:/usr/bin";

/// What is to be started.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a Command,
    /// Variables beside the supervisor's own; of two with one name, the later counts.
    pub(crate) environment: &'a environment::Environment,
    /// Whom and how it runs as.
    pub(crate) process: &'a Process,
    /// Whether it has our own standard input (S7), and not `/dev/null`.
    pub(crate) own_stdin: bool,
    /// Whether it writes straight to our own standard output and error (L2).
    pub(crate) raw_output: bool,
}

/// A process that has executed its program.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// Its number, which is its process group's too.
    pub(crate) pid: i32,
    /// What it writes to its standard output and error, unless that is our own.
    pub(crate) output: Option<(OwnedFd, OwnedFd)>,
}

/// Starts processes.
pub(crate) struct Spawner {
    environment: Environment,
    /// The same for the kernel; made when the first process is started.
    ours: Block,
    jobs: Told,
    ignored: sys::SignalSet,
    descriptors: Option<sys::RawLimit>,
    null: OwnedFd,
    /// Descriptors with low numbers that stand for the child's output while it is being started. All others
    /// lie above and need not be copied for a child that closes them at once: with a thousand jobs these are
    /// two thousand.
    slots: Slots,
    room: sys::Room,
    strings: Strings,
}

/// What the kernel is told of one process; the next one has it in the same room.
#[derive(Debug, Default)]
struct Strings {
    files: CStrings,
    arguments: CStrings,
    cwd: CStrings,
    /// Its own variables, and which of ours and of those that all are told do not count because of them.
    own: CStrings,
    hidden_ours: Vec<usize>,
    hidden_jobs: Vec<usize>,
}

impl Strings {
    fn clear(&mut self) {
        for list in [&mut self.files, &mut self.arguments, &mut self.cwd, &mut self.own] {
            list.clear();
        }
        self.hidden_ours.clear();
        self.hidden_jobs.clear();
    }
}

/// What processes are told of all jobs, as of some version; the next one is mostly told the same.
#[derive(Default)]
struct Told {
    version: Option<u64>,
    block: Block,
    /// Which of our own variables do not count because of these.
    hidden: Vec<usize>,
}

/// Variables for the kernel, in the order of their names, of which no two are alike.
#[derive(Debug, Default)]
struct Block {
    strings: CStrings,
    names: Vec<Range<usize>>,
}

impl Block {
    /// To be called in the order of the names.
    fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        let start = self.strings.bytes().len();
        self.strings.push(&[name, b"=", value])?;
        self.names.push(start..start + name.len());
        Ok(())
    }

    fn clear(&mut self) {
        self.strings.clear();
        self.names.clear();
    }

    /// Where a variable stands.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let bytes = self.strings.bytes();
        self.names.binary_search_by(|range| bytes.get(range.clone()).unwrap_or_default().cmp(name)).ok()
    }
}

struct Slots {
    null: OwnedFd,
    out: OwnedFd,
    err: OwnedFd,
    copy_below: Option<u32>,
}

impl Spawner {
    /// Prepares for starting processes with this environment. To be called before other descriptors are opened.
    pub(crate) fn new(mut environment: Environment) -> std::io::Result<Self> {
        let can_close = sys::close_all_on_exec();
        if !can_close {
            close_each_on_exec();
        }
        let null = null()?;
        let (slot_null, out, err) =
            (sys::low_copy(null.as_fd())?, sys::low_copy(null.as_fd())?, sys::low_copy(null.as_fd())?);
        let last = [&slot_null, &out, &err].map(|fd| fd.as_raw_fd()).into_iter().max().unwrap_or(2);
        let copy_below = u32::try_from(last + 1).ok().filter(|_| can_close);
        environment.insert(b"CONTAINERPILOT_PID".to_vec(), std::process::id().to_string().into_bytes());
        Ok(Self {
            environment,
            ours: Block::default(),
            jobs: Told::default(),
            ignored: sys::ignored_signals(),
            descriptors: sys::raise_descriptor_limit(),
            null,
            slots: Slots { null: slot_null, out, err, copy_below },
            room: sys::Room::new(),
            strings: Strings::default(),
        })
    }

    /// Starts a process.
    pub(crate) fn spawn(&mut self, request: &Request<'_>) -> Result<Spawned, StartError> {
        let program = request.command.program.as_str();
        let mut ends = None;
        if !request.raw_output {
            ends = Some(
                self.output_pipes()
                    .map_err(|errno| failure(&format!("{program}: no pipe for its output"), errno))?,
            );
        }
        let started = self.start(request);
        if ends.is_some() {
            // Our copies of the writing ends must go, or the readers would never see the end. Should one stay, it goes
            // with the next start, and the log does not wait for it: it reads what is there when a process has ended.
            for slot in [&self.slots.out, &self.slots.err] {
                let _ = sys::replace(slot, self.null.as_fd());
            }
        }
        Ok(Spawned { pid: started?, output: ends })
    }

    /// Puts the writing ends of two new pipes into the slots, and gives the reading ends.
    fn output_pipes(&self) -> Result<(OwnedFd, OwnedFd), Errno> {
        let pipe = |slot: &OwnedFd| -> Result<OwnedFd, Errno> {
            let (reader, writer) = std::io::pipe().map_err(|error| errno_of(&error))?;
            sys::replace(slot, writer.as_fd())?;
            Ok(reader.into())
        };
        Ok((pipe(&self.slots.out)?, pipe(&self.slots.err)?))
    }

    fn start(&mut self, request: &Request<'_>) -> Result<i32, StartError> {
        let Request { command, process, .. } = request;
        let program = command.program.as_str();
        let zero = |_| StartError {
            kind: StartErrorKind::Other,
            message: format!("{program}: a zero byte stands in its arguments, environment or directory"),
        };

        let identity = identity(process).map_err(|message| StartError {
            kind: StartErrorKind::Other,
            message: format!("{program}: {message}"),
        })?;
        self.tell(&request.environment.jobs).map_err(zero)?;
        let mut strings = std::mem::take(&mut self.strings);
        strings.clear();
        self.variables(request, identity.home.as_deref(), &mut strings).map_err(zero)?;
        for argument in std::iter::once(&command.program).chain(&command.arguments) {
            strings.arguments.push(&[argument.as_bytes()]).map_err(zero)?;
        }
        if is_path(program) {
            strings.files.push(&[program.as_bytes()]).map_err(zero)?;
        } else {
            for place in self.places(request) {
                strings.files.push(&[place.as_os_str().as_bytes()]).map_err(zero)?;
            }
        }
        if let Some(directory) = &process.cwd {
            strings.cwd.push(&[directory.as_bytes()]).map_err(zero)?;
        }

        let image = Image {
            files: &strings.files,
            arguments: &strings.arguments,
            environment: Variables([
                (&strings.own, &[]),
                (&self.jobs.block.strings, &strings.hidden_jobs),
                (&self.ours.strings, &strings.hidden_ours),
            ]),
            cwd: &strings.cwd,
            stdin: (!request.own_stdin).then(|| self.slots.null.as_fd()),
            output: (!request.raw_output).then(|| (self.slots.out.as_fd(), self.slots.err.as_fd())),
            copy_below: self.slots.copy_below,
            ignored: self.ignored,
            umask: process.umask,
            descriptors: self.descriptors,
            limits: &process.limits,
            groups: identity.groups.as_deref(),
            group: identity.group,
            user: identity.user,
            no_new_privileges: process.no_new_privileges,
        };
        let started = sys::start(&image, &mut self.room);
        self.strings = strings;
        started.map_err(|failed| {
            if let Some(pid) = failed.pid {
                reaper::discard(pid);
            }
            explain(&failed, request, &self.places(request))
        })
    }

    /// Puts what all processes are told into the kernel's form, if it is not there already.
    fn tell(&mut self, jobs: &JobVariables) -> Result<(), Errno> {
        if self.ours.names.is_empty() {
            for (name, value) in &self.environment {
                self.ours.push(name, value)?;
            }
        }
        if self.jobs.version == Some(jobs.version()) {
            return Ok(());
        }
        let told = &mut self.jobs;
        told.version = None;
        told.block.clear();
        told.hidden.clear();
        // Of two with one name, the later counts.
        let sorted: BTreeMap<&str, &str> = jobs.iter().collect();
        for (name, value) in sorted {
            told.block.push(name.as_bytes(), value.as_bytes())?;
            told.hidden.extend(self.ours.find(name.as_bytes()));
        }
        told.hidden.extend(jobs.unset().filter_map(|name| self.ours.find(name.as_bytes())));
        told.version = Some(jobs.version());
        Ok(())
    }

    /// The child's variables (P7, P9): those of its configuration and of its trigger, and where its user is at home; and
    /// which of ours and of those that all are told do not count because of them.
    fn variables(
        &self,
        request: &Request<'_>,
        home: Option<&[u8]>,
        strings: &mut Strings,
    ) -> Result<(), Errno> {
        let own = &request.process.env;
        let why = &request.environment.why;
        let trigger = why.iter().enumerate().filter(|(nth, (name, _))| {
            let later = why.iter().skip(nth + 1).any(|(other, _)| other == name);
            !later && !own.contains_key(*name)
        });
        let home = home.filter(|_| !own.contains_key("HOME")).map(|home| ("HOME", home));
        let own = own.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let Strings { own: list, hidden_ours: ours, hidden_jobs: jobs, .. } = strings;
        ours.extend_from_slice(&self.jobs.hidden);
        let trigger = trigger.map(|(_, (name, value))| (*name, value.as_bytes()));
        for (name, value) in own.chain(home).chain(trigger) {
            let name = name.as_bytes();
            list.push(&[name, b"=", value])?;
            ours.extend(self.ours.find(name));
            jobs.extend(self.jobs.block.find(name));
        }
        ours.sort();
        jobs.sort();
        Ok(())
    }

    /// The files that may be the program: itself, or one in each directory of the child's `PATH` (P8).
    fn places(&self, request: &Request<'_>) -> Vec<PathBuf> {
        let program = request.command.program.as_str();
        if is_path(program) {
            return vec![PathBuf::from(program)];
        }
        let own = request.process.env.get("PATH").map(String::as_bytes);
        let trigger = || request.environment.why.iter().rfind(|(name, _)| *name == "PATH");
        // What was set by hand counts before ours, also if that was to have none.
        let ours = || match request.environment.jobs.set_by_hand().get("PATH") {
            Some(set) => set.as_deref().map(str::as_bytes),
            None => self.environment.get(&b"PATH"[..]).map(Vec::as_slice),
        };
        let path = own.or_else(|| trigger().map(|(_, value)| value.as_bytes())).or_else(ours);
        let path = path.unwrap_or(USUAL_PATH);
        std::env::split_paths(std::ffi::OsStr::from_bytes(path)).map(|folder| folder.join(program)).collect()
    }
}

/// Whether a program is not looked for, but named.
fn is_path(program: &str) -> bool {
    program.contains('/') || program.is_empty()
}

/// An endless nothing for standard input. In an image without `/dev/null`, a pipe that nobody writes to.
fn null() -> std::io::Result<OwnedFd> {
    match File::options().read(true).write(true).open("/dev/null") {
        Ok(file) => Ok(file.into()),
        Err(_) => std::io::pipe().map(|(reader, _)| reader.into()),
    }
}

/// What [`sys::close_all_on_exec`] does, for kernels that cannot.
fn close_each_on_exec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    for entry in entries.flatten() {
        if let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|fd| *fd > 2) {
            sys::close_on_exec(fd);
        }
    }
}

/// Who the process is to be, where that is not who we are.
#[derive(Debug, Default)]
struct Identity {
    user: Option<u32>,
    group: Option<u32>,
    groups: Option<Vec<u32>>,
    /// Where the user is at home. Ours is of no use to another, who may not even read it.
    home: Option<Vec<u8>>,
}

/// Looks the user and the group up. A user that has come to be missing is a failed start, in words.
fn identity(process: &Process) -> Result<Identity, String> {
    use containerpilot_core::plan::Principal;
    let named = |who: &Principal| match who {
        Principal::Name(name) => name.clone(),
        Principal::Id(id) => id.to_string(),
    };
    let group = match &process.group {
        None => None,
        Some(which) => {
            Some(users::group(which).ok_or_else(|| format!("there is no group `{}`", named(which)))?)
        }
    };
    let Some(who) = &process.user else { return Ok(Identity { group, ..Identity::default() }) };
    let (our_user, our_group) = sys::effective_ids();
    let user = match (users::user(who), who) {
        (Some(user), _) => user,
        // A number needs no entry; such a user has the group we have, and no others.
        (None, Principal::Id(id)) => {
            users::User { name: Vec::new(), id: *id, group: our_group, home: b"/".to_vec() }
        }
        (None, Principal::Name(name)) => return Err(format!("there is no user `{name}`")),
    };
    let group = group.unwrap_or(user.group);
    // Without privileges one may still ask to be who one is.
    if (our_user, our_group) == (user.id, group) && our_user != 0 {
        return Ok(Identity { home: Some(user.home), ..Identity::default() });
    }
    let groups = users::groups_of(&user, group);
    Ok(Identity { user: Some(user.id), group: Some(group), groups: Some(groups), home: Some(user.home) })
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn failure(what: &str, errno: Errno) -> StartError {
    let kind = match errno {
        Errno::ENOENT | Errno::ENOTDIR => StartErrorKind::NotFound,
        Errno::EACCES | Errno::EISDIR | Errno::ENOEXEC => StartErrorKind::NotExecutable,
        Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE => StartErrorKind::NoResources,
        _ => StartErrorKind::Other,
    };
    StartError { kind, message: format!("{what}: {}", errno.desc()) }
}

/// Says what went wrong so that a person knows what to do about it.
fn explain(failed: &Failed, request: &Request<'_>, places: &[PathBuf]) -> StartError {
    let Failed { step, errno, .. } = *failed;
    let program = request.command.program.as_str();
    // Only what concerns the program itself says something about the program.
    let other = |what: String| StartError { kind: StartErrorKind::Other, ..failure(&what, errno) };
    match step {
        Step::Begin if errno == Errno::EAGAIN => {
            failure(&format!("{program}: no new process, since a limit of processes is reached"), errno)
        }
        Step::Begin => failure(&format!("{program}: no new process"), errno),
        Step::Execute => explain_program(failed, request, places),
        Step::Group => other(format!("{program}: it cannot lead a process group")),
        Step::Descriptors => other(format!("{program}: its descriptors cannot be set")),
        Step::Limits => other(format!("{program}: a resource limit cannot be set")),
        Step::User => match errno {
            Errno::EAGAIN => failure(&format!("{program}: it cannot run as its user"), errno),
            _ => other(format!("{program}: it cannot run as its user")),
        },
        Step::Directory => {
            other(format!("{program}: its directory {}", request.process.cwd.as_deref().unwrap_or_default()))
        }
        Step::Privileges => other(format!("{program}: its privileges cannot be given up")),
    }
}

fn explain_program(failed: &Failed, request: &Request<'_>, places: &[PathBuf]) -> StartError {
    let program = request.command.program.as_str();
    let searched = !program.contains('/');
    // A relative path is meant from where the child was.
    let there = |place: &Path| match &request.process.cwd {
        Some(cwd) => Path::new(cwd).join(place),
        None => place.to_owned(),
    };
    match failed.errno {
        Errno::EACCES => {
            let place = places.get(failed.file).map_or_else(|| PathBuf::from(program), |place| there(place));
            let errno = if place.is_dir() { Errno::EISDIR } else { Errno::EACCES };
            failure(&place.display().to_string(), errno)
        }
        Errno::ENOENT => {
            let present = places.iter().map(|place| there(place)).find(|place| place.is_file());
            match present {
                Some(place) => failure(&format!("{}: {}", place.display(), missing(&place)), Errno::ENOENT),
                None if searched => failure(&format!("{program} is not in PATH"), Errno::ENOENT),
                None => failure(program, Errno::ENOENT),
            }
        }
        errno => {
            let place = places.get(failed.file).map_or(Path::new(program), PathBuf::as_path);
            failure(&place.display().to_string(), errno)
        }
    }
}

/// What is missing when a file is there and cannot be found all the same: what is needed to run it.
fn missing(file: &Path) -> String {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(4096).read_to_end(&mut head));
    if let (Ok(_), Some(line)) = (read, head.strip_prefix(b"#!")) {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = line.split(|byte| *byte == b' ' || *byte == b'\t').next().unwrap_or_default();
        return format!("its interpreter {}", String::from_utf8_lossy(interpreter).escape_debug());
    }
    if head.starts_with(b"\x7fELF") {
        return match elf_loader(&head) {
            Some(loader) => format!("its loader {loader}"),
            None => "the loader it needs".to_owned(),
        };
    }
    "something it needs".to_owned()
}

/// The loader that a dynamically linked program names: the first string in its head that is a path.
fn elf_loader(head: &[u8]) -> Option<String> {
    let start = head.windows(5).position(|window| window == b"/lib/" || window == b"/lib6")?;
    let text = head.get(start..)?.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_owned()).ok().filter(|text| !text.contains(char::is_control))
}

#[cfg(test)]
mod tests;
