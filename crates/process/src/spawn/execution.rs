//! A command that runs as a job does (X12), in the process of a client.
//!
//! The supervisor tells what a process of the job would get now; the client executes the program itself. So the program
//! has the client's terminal, session and standard streams, its exit status is the client's, and it is no part of the
//! job: neither its output nor its exit concerns the supervisor.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use containerpilot_core::input::StartError;
use containerpilot_core::plan::{Command, Principal, Process, Word};
use containerpilot_core::variables::{self, JobVariables};
use nix::errno::Errno;

use super::error::SpawnError;
use super::identity::{Identity, IdentityError};
use super::start::Attempt;
use super::{DEFAULT_PATH, Reports, SpawnRequest, Spawner, in_path, is_path};
use crate::{secrets, sys};

/// What a process of a job gets.
#[derive(Debug)]
pub struct Execution {
    /// All variables but those of secrets, each with a NUL at its end.
    pub environment: Vec<u8>,
    pub user: u32,
    pub group: u32,
    /// The supplementary groups.
    pub groups: Vec<u32>,
    /// Directory, limits and so on. Its variables are in `environment`.
    pub process: Process,
}

/// Why a process cannot be set up as a job has it.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("a variable contains a NUL byte")]
    NulByte,
}

impl Spawner {
    /// What a process with this setup and these variables would get now.
    pub fn execution(
        &mut self,
        process: &Process,
        environment: &variables::ProcessEnvironment,
    ) -> Result<Execution, SetupError> {
        let identity = Identity::of(process)?;
        let variables = self.variables(process, environment, identity.home.as_deref());
        let variables = variables.map_err(|_| SetupError::NulByte)?;
        let (user, group) = sys::effective_ids();
        let cwd = match &process.cwd {
            Some(cwd) => std::path::absolute(cwd).ok(),
            None => std::env::current_dir().ok(),
        };
        let cwd = cwd.and_then(|cwd| cwd.into_os_string().into_string().ok());
        Ok(Execution {
            environment: variables.bytes(),
            user: identity.user.unwrap_or(user),
            group: identity.group.unwrap_or(group),
            groups: identity.groups.unwrap_or_else(sys::supplementary_groups),
            process: Process {
                shared_env: Arc::default(),
                env: BTreeMap::new(),
                cwd: cwd.or_else(|| process.cwd.clone()),
                ..process.clone()
            },
        })
    }
}

impl Execution {
    /// Returns true if the present process has another user or other groups.
    pub fn switches_user(&self) -> bool {
        let sorted = |mut groups: Vec<u32>| {
            // Some systems list the group itself, too.
            groups.retain(|group| *group != self.group);
            groups.sort_unstable();
            groups
        };
        sys::effective_ids() != (self.user, self.group)
            || sorted(sys::supplementary_groups()) != sorted(self.groups.clone())
    }

    /// Executes a program in the present process, which must have no other threads. Returns only if that fails.
    pub fn execute(mut self, program: &OsStr, arguments: &[OsString]) -> StartError {
        let command = Command {
            program: Word::from(program.as_bytes().to_vec()),
            arguments: arguments.iter().map(|word| Word::from(word.as_bytes().to_vec())).collect(),
        };
        let switches = self.switches_user();
        if switches {
            self.process.user = Some(Principal::Id(self.user));
        }
        let environment =
            variables::ProcessEnvironment { jobs: Arc::new(JobVariables::default()), ..Default::default() };
        let request = SpawnRequest {
            command: &command,
            environment: &environment,
            process: &self.process,
            own_stdin: false,
            raw_output: true,
            cgroup: None,
            reports: Reports::default(),
        };
        self.try_execute(&request, switches).unwrap_or_else(|error| error).into()
    }

    /// Its error is as good as its result: both say why the program was not executed.
    fn try_execute(&self, request: &SpawnRequest<'_>, switches: bool) -> Result<SpawnError, SpawnError> {
        let (command, process) = (request.command, request.process);
        let shown = || command.program.text().into_owned();
        let nul_byte = |_: Errno| SpawnError::NulByte { program: shown() };
        let mut variables: Vec<Vec<u8>> = self.variables().map(<[u8]>::to_vec).collect();
        for (name, file) in &process.secrets {
            let value = secrets::value(file).map_err(|source| SpawnError::Secret {
                program: shown(),
                name: name.clone(),
                file: file.clone(),
                source,
            })?;
            variables.push([name.as_bytes(), b"=", &value].concat());
        }
        // A job has no terminal; only the caller knows the kind of its own.
        if let Some(terminal) = std::env::var_os("TERM") {
            variables.retain(|variable| !variable.starts_with(b"TERM="));
            variables.push([b"TERM=", terminal.as_bytes()].concat());
        }
        let name = command.program.as_bytes();
        let files = match is_path(name) {
            true => sys::CStrings::of([name]),
            false => {
                let path = self.value(b"PATH=").unwrap_or(DEFAULT_PATH);
                let files = in_path(path, Path::new(OsStr::from_bytes(name)));
                sys::CStrings::of(files.iter().map(|file| file.as_os_str().as_bytes()))
            }
        };
        let files = Arc::new(files.map_err(nul_byte)?);
        let words = std::iter::once(&command.program).chain(&command.arguments);
        let variables = sys::CStrings::of(variables.iter().map(Vec::as_slice)).map_err(nul_byte)?;
        // Without the call the kernel closes what was opened with `O_CLOEXEC`: everything that this program has opened.
        sys::close_all_on_exec();
        let spec = sys::ExecSpec {
            files: Arc::clone(&files),
            arguments: sys::CStrings::of(words.map(Word::as_bytes)).map_err(nul_byte)?,
            environment: sys::ExecVariables([
                (Arc::new(variables), Vec::new()),
                (Arc::default(), Vec::new()),
                (Arc::default(), Vec::new()),
            ]),
            cwd: sys::CStrings::of(process.cwd.as_deref().map(str::as_bytes)).map_err(nul_byte)?,
            stdin: None,
            output: None,
            result: -1,
            ready: None,
            watchdog_pid: false,
            cgroup: None,
            close_from: None,
            ignored: sys::ignored_signals(),
            umask: process.umask,
            descriptor_limit: None,
            limits: process.limits.clone(),
            groups: switches.then(|| self.groups.clone()),
            group: switches.then_some(self.group),
            user: switches.then_some(self.user),
            no_new_privileges: process.no_new_privileges,
            nice: process.nice,
            oom_score_adj: process.oom_score_adj.map(|adj| adj.to_string().into_bytes()),
            capabilities: process.capabilities,
            secrets: None,
            share_memory: false,
            in_place: true,
        };
        Ok(SpawnError::new(sys::execute_in_place(spec), &Attempt::new(request, files)))
    }

    /// The variables without their NUL.
    fn variables(&self) -> impl Iterator<Item = &[u8]> {
        self.environment.split(|byte| *byte == 0).filter(|variable| !variable.is_empty())
    }

    /// The value of a variable, whose name is given with its `=`.
    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.variables().find_map(|variable| variable.strip_prefix(name))
    }
}
