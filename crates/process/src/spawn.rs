//! Starts a process for a job or a check (P2, P3, P7, P8, P9).
//!
//! Everything that can be prepared is prepared here, before the child exists; the child itself only makes system calls
//! ([`sys::start`]). `std::process` is not used: it waits until the child has executed its program, and does not report
//! which step of a start failed.

mod error;
mod execution;
mod identity;
mod start;
mod variables;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use containerpilot_core::input::StartError;
use containerpilot_core::plan::{Command, Process};
use containerpilot_core::variables::SOCKET_VARIABLE;
use containerpilot_log_format::HiddenValues;
use containerpilot_template::Environment;
use nix::errno::Errno;

pub use self::error::NotAProgram;
use self::error::SpawnError;
pub use self::execution::{Execution, SetupError};
use self::identity::Identity;
pub use self::identity::IdentityError;
use self::start::Attempt;
pub use self::start::{ProcessStart, Progress};
use self::variables::{OwnVariables, SharedVariables};
use crate::secrets::{self, SecretReader};
use crate::sys::{self, CStrings, ExecSpec, ExecVariables, SecretPipe};

/// The search path when the environment has no `PATH`, as for `execvp`.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A process to start.
#[derive(Debug)]
pub struct SpawnRequest<'a> {
    pub command: &'a Command,
    /// Variables in addition to the supervisor's own. The last one of a name wins.
    pub environment: &'a containerpilot_core::variables::ProcessEnvironment,
    /// User, directory, limits and so on.
    pub process: &'a Process,
    /// Whether it inherits the supervisor's standard input (S7) instead of `/dev/null`.
    pub own_stdin: bool,
    /// Whether it inherits the supervisor's standard output and error (L2).
    pub raw_output: bool,
    /// The directory of the cgroup for it. The start does not fail if it cannot be moved there.
    pub cgroup: Option<OwnedFd>,
    /// How it reports about itself.
    pub reports: Reports,
}

/// What a process needs to report about itself (H11, H12), in addition to its variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reports {
    /// The descriptor that is the write end of a new pipe.
    pub descriptor: Option<u16>,
    /// Whether it gets `WATCHDOG_PID`.
    pub watchdog: bool,
}

/// The user of a process.
pub fn user_of(process: &Process) -> u32 {
    let identity = Identity::of(process).ok();
    identity.and_then(|identity| identity.user).unwrap_or_else(|| sys::effective_ids().0)
}

/// Returns true if a process switches to another user or group.
pub fn switches_user(process: &Process) -> bool {
    Identity::of(process).is_ok_and(|identity| identity.changes())
}

/// The read ends of a process's standard output and error, unless they are inherited.
pub type OutputPipes = Option<(OwnedFd, OwnedFd)>;

/// Starts processes.
pub struct Spawner {
    environment: Environment,
    shared: SharedVariables,
    ignored: sys::SignalSet,
    descriptor_limit: Option<sys::RawLimit>,
    may_share_memory: bool,
    null: OwnedFd,
    slots: Slots,
    secrets: SecretReader,
}

/// Descriptors with low numbers that hold what the child needs while it is started. All other descriptors have higher
/// numbers, and are the first thing that the child closes.
struct Slots {
    null: OwnedFd,
    out: OwnedFd,
    err: OwnedFd,
    result: OwnedFd,
    cgroup: OwnedFd,
    secrets: OwnedFd,
    /// The write end of the pipe for a descriptor of the process.
    ready: OwnedFd,
    /// Takes the place of `result` if the process's descriptor has that number.
    spare: OwnedFd,
    close_from: Option<u32>,
}

impl Slots {
    /// Where the result pipe is: not where the process wants its own descriptor.
    fn result_for(&self, request: &SpawnRequest<'_>) -> &OwnedFd {
        let taken = request.reports.descriptor.map(i32::from) == Some(self.result.as_raw_fd());
        if taken { &self.spare } else { &self.result }
    }
}

/// The errno of a pipe end that cannot be made non-blocking.
fn nonblocking(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    sys::set_nonblocking(fd).map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

impl Spawner {
    /// Must be called before other descriptors are opened, so that the slots get low numbers.
    pub fn new(environment: Environment) -> std::io::Result<Self> {
        let has_close_range = sys::close_all_on_exec();
        if !has_close_range {
            close_each_on_exec();
        }
        let null = open_null()?;
        let duplicate = || sys::duplicate_low(null.as_fd());
        let (slot_null, out, err) = (duplicate()?, duplicate()?, duplicate()?);
        let (result, cgroup, secrets) = (duplicate()?, duplicate()?, duplicate()?);
        let (ready, spare) = (duplicate()?, duplicate()?);
        let slots = [&slot_null, &out, &err, &result, &cgroup, &secrets, &ready, &spare];
        let last = slots.map(|fd| fd.as_raw_fd()).into_iter().max().unwrap_or(2);
        let close_from = u32::try_from(last + 1).ok().filter(|_| has_close_range);
        Ok(Self {
            environment,
            shared: SharedVariables::default(),
            ignored: sys::ignored_signals(),
            descriptor_limit: sys::raise_descriptor_limit(),
            may_share_memory: sys::may_share_memory(),
            null,
            slots: Slots { null: slot_null, out, err, result, cgroup, secrets, ready, spare, close_from },
            secrets: SecretReader::default(),
        })
    }

    /// P12: every process gets the path of the control socket, if there is one.
    pub fn set_socket(&mut self, socket: Option<&str>) {
        let name = SOCKET_VARIABLE.as_bytes();
        let path = socket.map(|socket| std::path::absolute(socket).unwrap_or_else(|_| socket.into()));
        match path {
            Some(path) => drop(self.environment.insert(name.to_vec(), path.into_os_string().into_vec())),
            None => drop(self.environment.remove(name)),
        }
        self.shared = SharedVariables::default();
    }

    /// Creates a process that executes a program. Its progress is to be followed.
    pub fn spawn(&mut self, request: &SpawnRequest<'_>) -> Result<ProcessStart, StartError> {
        Ok(self.try_spawn(request)?)
    }

    fn try_spawn(&mut self, request: &SpawnRequest<'_>) -> Result<ProcessStart, SpawnError> {
        let (result, output, ready) = self.pipes(request).map_err(|errno| {
            let program = request.command.program.text().into_owned();
            SpawnError::Pipe { program, errno }
        })?;
        let started = self.start(request, result);
        // The supervisor's copies of the write ends must be closed, or the readers would never see end of file.
        let Slots { result, out, err, cgroup, secrets, ready: ready_slot, spare, .. } = &self.slots;
        let own = ready.iter().flat_map(|_| [ready_slot, spare]);
        let cgroup = request.cgroup.iter().map(|_| cgroup);
        let secrets = request.process.secrets.iter().take(1).map(|_| secrets);
        for slot in [result, out, err].into_iter().chain(cgroup).chain(secrets).chain(own) {
            let _ = sys::replace(slot, self.null.as_fd());
        }
        let (child, attempt, hidden) = started?;
        let mut start = ProcessStart::new(child, output, attempt, hidden);
        start.ready = ready;
        Ok(start)
    }

    /// Puts the write ends of new pipes into the slots, and returns the read ends of the result, of the output and of
    /// the process's own descriptor.
    fn pipes(&self, request: &SpawnRequest<'_>) -> Result<(OwnedFd, OutputPipes, Option<OwnedFd>), Errno> {
        let pipe = |slot: &OwnedFd| -> Result<OwnedFd, Errno> {
            let (reader, writer) =
                std::io::pipe().map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
            sys::replace(slot, writer.as_fd())?;
            Ok(reader.into())
        };
        let (result, writer) = sys::nonblocking_pipe()?;
        sys::replace(self.slots.result_for(request), writer.as_fd())?;
        let output = match request.raw_output {
            true => None,
            false => Some((pipe(&self.slots.out)?, pipe(&self.slots.err)?)),
        };
        let ready = match request.reports.descriptor {
            None => None,
            Some(_) => {
                let reader = pipe(&self.slots.ready)?;
                nonblocking(reader.as_fd())?;
                Some(reader)
            }
        };
        Ok((result, output, ready))
    }

    fn start(
        &mut self,
        request: &SpawnRequest<'_>,
        result: OwnedFd,
    ) -> Result<(sys::NewChild, Attempt, Option<HiddenValues>), SpawnError> {
        let SpawnRequest { command, process, .. } = request;
        let program = command.program.as_bytes();
        let shown = || command.program.text().into_owned();
        let nul_byte = |_| SpawnError::NulByte { program: shown() };

        let identity =
            Identity::of(process).map_err(|error| SpawnError::Identity { program: shown(), error })?;
        let variables =
            self.variables(process, request.environment, identity.home.as_deref()).map_err(nul_byte)?;
        let words = std::iter::once(&command.program).chain(&command.arguments);
        let arguments = CStrings::of(words.map(|word| word.as_bytes())).map_err(nul_byte)?;
        let files = match is_path(program) {
            true => CStrings::of([program]),
            false => CStrings::of(self.candidates(request).iter().map(|file| file.as_os_str().as_bytes())),
        };
        let files = Arc::new(files.map_err(nul_byte)?);
        let cwd = CStrings::of(process.cwd.as_deref().map(str::as_bytes)).map_err(nul_byte)?;

        let (secrets, hidden) = self
            .secret_pipe(process)
            .map_err(|error| SpawnError::Secrets { program: shown(), error })?
            .unzip();
        let slots = &self.slots;
        let cgroup = request.cgroup.as_ref();
        let cgroup = cgroup.filter(|cgroup| sys::replace(&slots.cgroup, cgroup.as_fd()).is_ok());
        // The kernel gives all processes that share memory the same OOM score. A process with fewer capabilities could
        // be changed by others that have as few.
        let restricted = process.oom_score_adj.is_some() || process.capabilities.is_some();
        let share_memory = self.may_share_memory && !identity.changes() && cgroup.is_none() && !restricted;
        let spec = ExecSpec {
            files: Arc::clone(&files),
            arguments,
            environment: variables,
            cwd,
            stdin: (!request.own_stdin).then(|| slots.null.as_raw_fd()),
            output: (!request.raw_output).then(|| (slots.out.as_raw_fd(), slots.err.as_raw_fd())),
            result: slots.result_for(request).as_raw_fd(),
            ready: request.reports.descriptor.map(|number| (slots.ready.as_raw_fd(), number.into())),
            watchdog_pid: request.reports.watchdog,
            cgroup: cgroup.map(|_| slots.cgroup.as_raw_fd()),
            close_from: slots.close_from,
            ignored: self.ignored,
            umask: process.umask,
            descriptor_limit: self.descriptor_limit,
            limits: process.limits.clone(),
            groups: identity.groups,
            group: identity.group,
            user: identity.user,
            no_new_privileges: process.no_new_privileges,
            nice: process.nice,
            oom_score_adj: process.oom_score_adj.map(|adj| adj.to_string().into_bytes()),
            capabilities: process.capabilities,
            secrets,
            share_memory,
            in_place: false,
        };
        let child =
            sys::start(spec, result).map_err(|errno| SpawnError::Clone { program: shown(), errno })?;
        Ok((child, Attempt::new(request, files), hidden))
    }

    /// The environment of a process without its secrets; EINVAL if a variable contains a NUL byte.
    fn variables(
        &mut self,
        process: &Process,
        environment: &containerpilot_core::variables::ProcessEnvironment,
        home: Option<&[u8]>,
    ) -> Result<ExecVariables, Errno> {
        self.shared.update(&self.environment, &environment.jobs)?;
        let own = OwnVariables::new(process, environment, home, &self.shared)?;
        Ok(ExecVariables([
            (Arc::new(own.strings), Vec::new()),
            (self.shared.jobs(), own.hidden_jobs),
            (self.shared.supervisor(), own.hidden_supervisor),
        ]))
    }

    /// The pipe where a process waits for its secrets, and what the log hides (P11). A process without secrets has
    /// none.
    fn secret_pipe(&self, process: &Process) -> std::io::Result<Option<(SecretPipe, HiddenValues)>> {
        if process.secrets.is_empty() {
            return Ok(None);
        }
        let (reader, writer) = std::io::pipe()?;
        sys::replace(&self.slots.secrets, reader.as_fd())?;
        let hidden = self.secrets.read(&process.secrets, writer.into())?;
        let names = process.secrets.keys().map(String::len);
        let pipe = SecretPipe {
            read_end: self.slots.secrets.as_raw_fd(),
            count: process.secrets.len(),
            // With the `=` and the NUL.
            max_bytes: names.map(|name| name + secrets::MAX_BYTES + 2).sum(),
        };
        Ok(Some((pipe, hidden)))
    }

    /// The files to try: one in each directory of the child's `PATH` (P8).
    fn candidates(&self, request: &SpawnRequest<'_>) -> Vec<PathBuf> {
        let program = Path::new(OsStr::from_bytes(request.command.program.as_bytes()));
        let own = request.process.env.get("PATH").map(String::as_bytes);
        let trigger = || request.environment.cause.iter().rfind(|(name, _)| *name == "PATH");
        // A PATH that was set or unset with `putenv` replaces the supervisor's own.
        let supervisor = || match request.environment.jobs.overrides().get("PATH") {
            Some(set) => set.as_deref().map(str::as_bytes),
            None => match request.process.shared_env.get("PATH") {
                Some(path) => Some(path.as_bytes()),
                None => self.environment.get(&b"PATH"[..]).map(Vec::as_slice),
            },
        };
        let path = own.or_else(|| trigger().map(|(_, value)| value.as_bytes())).or_else(supervisor);
        let path = path.unwrap_or(DEFAULT_PATH);
        in_path(path, program)
    }
}

/// The program in each directory of a search path.
fn in_path(path: &[u8], program: &Path) -> Vec<PathBuf> {
    std::env::split_paths(OsStr::from_bytes(path)).map(|folder| folder.join(program)).collect()
}

/// Returns true if the program is a path and is not searched in `PATH`.
fn is_path(program: &[u8]) -> bool {
    program.contains(&b'/') || program.is_empty()
}

/// `/dev/null`, or in an image without it a pipe whose write end is closed.
fn open_null() -> std::io::Result<OwnedFd> {
    match File::options().read(true).write(true).open("/dev/null") {
        Ok(file) => Ok(file.into()),
        Err(_) => std::io::pipe().map(|(reader, _)| reader.into()),
    }
}

/// The highest number of a descriptor unless the administrator has raised `fs.nr_open`.
const MAX_DESCRIPTORS: i32 = 1 << 20;

/// [`sys::close_all_on_exec`] for kernels without `close_range`. Without `/proc`, too, every possible number is tried,
/// which takes less than a tenth of a second.
fn close_each_on_exec() {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|fd| *fd > 2)
            .for_each(sys::close_on_exec),
        Err(_) => (3..MAX_DESCRIPTORS).for_each(sys::close_on_exec),
    }
}

#[cfg(test)]
mod tests;
