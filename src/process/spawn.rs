//! Starts a process for a job or a check (P2, P3, P7, P8, P9).
//!
//! Everything that can be prepared is prepared here, before the child exists; the child itself only makes system calls
//! ([`sys::start`]). `std::process` is not used: with a process group, limits or a user it falls back to `fork`, which
//! copies the page tables of the supervisor, and it does not report which step of a start failed.

mod error;
mod identity;
mod variables;

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use containerpilot_config::template::Environment;
use containerpilot_core::input::StartError;
use containerpilot_core::plan::{Command, Process};
use nix::errno::Errno;

use self::error::SpawnError;
use self::identity::Identity;
use self::variables::{ProcessStrings, SharedVariables};
use crate::process::reaper;
use crate::process::sys::{self, ExecSpec, Variables};

/// The search path when the environment has no `PATH`, as for `execvp`.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A process to start.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) command: &'a Command,
    /// Variables in addition to the supervisor's own. The last one of a name wins.
    pub(crate) environment: &'a containerpilot_core::variables::Environment,
    /// User, directory, limits and so on.
    pub(crate) process: &'a Process,
    /// Whether it inherits the supervisor's standard input (S7) instead of `/dev/null`.
    pub(crate) own_stdin: bool,
    /// Whether it inherits the supervisor's standard output and error (L2).
    pub(crate) raw_output: bool,
}

/// A process that has executed its program.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// Its pid, which is also its process group.
    pub(crate) pid: i32,
    /// The read ends of its standard output and error, unless they are inherited.
    pub(crate) output: Option<(OwnedFd, OwnedFd)>,
}

/// Starts processes.
pub(crate) struct Spawner {
    environment: Environment,
    shared: SharedVariables,
    ignored: sys::SignalSet,
    descriptor_limit: Option<sys::RawLimit>,
    null: OwnedFd,
    slots: Slots,
    stack: sys::ChildStack,
    strings: ProcessStrings,
}

/// Descriptors with low numbers that hold the child's standard streams while it is started. All other descriptors have
/// higher numbers and are not copied to the child: with a thousand jobs that saves two thousand copies per start.
struct Slots {
    null: OwnedFd,
    out: OwnedFd,
    err: OwnedFd,
    copy_below: Option<u32>,
}

impl Spawner {
    /// Must be called before other descriptors are opened, so that the slots get low numbers.
    pub(crate) fn new(mut environment: Environment) -> std::io::Result<Self> {
        let has_close_range = sys::close_all_on_exec();
        if !has_close_range {
            close_each_on_exec();
        }
        let null = open_null()?;
        let duplicate = || sys::duplicate_low(null.as_fd());
        let (slot_null, out, err) = (duplicate()?, duplicate()?, duplicate()?);
        let last = [&slot_null, &out, &err].map(|fd| fd.as_raw_fd()).into_iter().max().unwrap_or(2);
        let copy_below = u32::try_from(last + 1).ok().filter(|_| has_close_range);
        environment.insert(b"CONTAINERPILOT_PID".to_vec(), std::process::id().to_string().into_bytes());
        Ok(Self {
            environment,
            shared: SharedVariables::default(),
            ignored: sys::ignored_signals(),
            descriptor_limit: sys::raise_descriptor_limit(),
            null,
            slots: Slots { null: slot_null, out, err, copy_below },
            stack: sys::ChildStack::new(),
            strings: ProcessStrings::default(),
        })
    }

    /// Starts a process.
    pub(crate) fn spawn(&mut self, request: &Request<'_>) -> Result<Spawned, StartError> {
        Ok(self.try_spawn(request)?)
    }

    fn try_spawn(&mut self, request: &Request<'_>) -> Result<Spawned, SpawnError> {
        let mut output = None;
        if !request.raw_output {
            let program = request.command.program.clone();
            output = Some(self.output_pipes().map_err(|errno| SpawnError::Pipe { program, errno })?);
        }
        let started = self.start(request);
        if output.is_some() {
            // The supervisor's copies of the write ends must be closed, or the readers would never see end of file. If one
            // stays open, the next start replaces it, and the log does not wait for it: it reads what is available when the
            // process has exited.
            for slot in [&self.slots.out, &self.slots.err] {
                let _ = sys::replace(slot, self.null.as_fd());
            }
        }
        Ok(Spawned { pid: started?, output })
    }

    /// Puts the write ends of two new pipes into the slots and returns the read ends.
    fn output_pipes(&self) -> Result<(OwnedFd, OwnedFd), Errno> {
        let pipe = |slot: &OwnedFd| -> Result<OwnedFd, Errno> {
            let (reader, writer) =
                std::io::pipe().map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
            sys::replace(slot, writer.as_fd())?;
            Ok(reader.into())
        };
        Ok((pipe(&self.slots.out)?, pipe(&self.slots.err)?))
    }

    fn start(&mut self, request: &Request<'_>) -> Result<i32, SpawnError> {
        let Request { command, process, .. } = request;
        let program = command.program.as_str();
        let nul_byte = |_| SpawnError::NulByte { program: program.to_owned() };

        let identity = Identity::of(process)
            .map_err(|error| SpawnError::Identity { program: program.to_owned(), error })?;
        self.shared.update(&self.environment, &request.environment.jobs).map_err(nul_byte)?;
        let mut strings = std::mem::take(&mut self.strings);
        strings.clear();
        strings.set_variables(request, identity.home.as_deref(), &self.shared).map_err(nul_byte)?;
        for argument in std::iter::once(&command.program).chain(&command.arguments) {
            strings.arguments.push(&[argument.as_bytes()]).map_err(nul_byte)?;
        }
        if is_path(program) {
            strings.files.push(&[program.as_bytes()]).map_err(nul_byte)?;
        } else {
            for file in self.candidates(request) {
                strings.files.push(&[file.as_os_str().as_bytes()]).map_err(nul_byte)?;
            }
        }
        if let Some(directory) = &process.cwd {
            strings.cwd.push(&[directory.as_bytes()]).map_err(nul_byte)?;
        }

        let spec = ExecSpec {
            files: &strings.files,
            arguments: &strings.arguments,
            environment: Variables([
                (&strings.own, &[]),
                (self.shared.jobs(), &strings.hidden_jobs),
                (self.shared.supervisor(), &strings.hidden_supervisor),
            ]),
            cwd: &strings.cwd,
            stdin: (!request.own_stdin).then(|| self.slots.null.as_fd()),
            output: (!request.raw_output).then(|| (self.slots.out.as_fd(), self.slots.err.as_fd())),
            copy_below: self.slots.copy_below,
            ignored: self.ignored,
            umask: process.umask,
            descriptor_limit: self.descriptor_limit,
            limits: &process.limits,
            groups: identity.groups.as_deref(),
            group: identity.group,
            user: identity.user,
            no_new_privileges: process.no_new_privileges,
        };
        let started = sys::start(&spec, &mut self.stack);
        self.strings = strings;
        started.map_err(|error| {
            if let Some(pid) = error.pid {
                reaper::discard(pid);
            }
            SpawnError::new(&error, request, &self.candidates(request))
        })
    }

    /// The files to try: the path itself, or one in each directory of the child's `PATH` (P8).
    fn candidates(&self, request: &Request<'_>) -> Vec<PathBuf> {
        let program = request.command.program.as_str();
        if is_path(program) {
            return vec![PathBuf::from(program)];
        }
        let own = request.process.env.get("PATH").map(String::as_bytes);
        let trigger = || request.environment.why.iter().rfind(|(name, _)| *name == "PATH");
        // A PATH that was set or unset with `putenv` replaces the supervisor's own.
        let supervisor = || match request.environment.jobs.set_by_putenv().get("PATH") {
            Some(set) => set.as_deref().map(str::as_bytes),
            None => self.environment.get(&b"PATH"[..]).map(Vec::as_slice),
        };
        let path = own.or_else(|| trigger().map(|(_, value)| value.as_bytes())).or_else(supervisor);
        let path = path.unwrap_or(DEFAULT_PATH);
        std::env::split_paths(std::ffi::OsStr::from_bytes(path)).map(|folder| folder.join(program)).collect()
    }
}

/// Returns true if the program is a path and is not searched in `PATH`.
fn is_path(program: &str) -> bool {
    program.contains('/') || program.is_empty()
}

/// `/dev/null`, or in an image without it a pipe whose write end is closed.
fn open_null() -> std::io::Result<OwnedFd> {
    match File::options().read(true).write(true).open("/dev/null") {
        Ok(file) => Ok(file.into()),
        Err(_) => std::io::pipe().map(|(reader, _)| reader.into()),
    }
}

/// [`sys::close_all_on_exec`] for kernels without `close_range`.
fn close_each_on_exec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    for entry in entries.flatten() {
        if let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|fd| *fd > 2) {
            sys::close_on_exec(fd);
        }
    }
}

#[cfg(test)]
mod tests;
