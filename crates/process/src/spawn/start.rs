//! A start in progress: what the child reports through its pipe (P3).
//!
//! The pipe is closed when the program is executed. A child that fails writes an `ExecError` before it exits; one
//! that is killed before it has executed its program writes nothing, and the kernel tells that it has not.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

use containerpilot_core::input::{ExitStatus, StartError, StartErrorKind};
use containerpilot_core::plan::{Capabilities, Limit, Principal, Signal};
use containerpilot_log_format::HiddenValues;

use super::error::SpawnError;
use super::{OutputPipes, SpawnRequest};
use crate::proc;
use crate::reaper::Exited;
use crate::sys::{self, CStrings, NewChild, StartReport, WaitState};

/// What was tried, for the message of a failure. The plan may have changed by then.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) program: String,
    pub(super) cwd: Option<String>,
    pub(super) user: Option<Principal>,
    pub(super) group: Option<Principal>,
    pub(super) limits: Vec<Limit>,
    pub(super) nice: Option<i8>,
    pub(super) oom_score_adj: Option<i16>,
    pub(super) capabilities: Capabilities,
    /// The names of secrets and their files.
    pub(super) secrets: Vec<(String, String)>,
    /// The files to execute, in this order.
    pub(super) files: Arc<CStrings>,
    /// Whether it is the program on the command line, without a configuration.
    pub(super) alone: bool,
}

impl Attempt {
    pub(super) fn new(request: &SpawnRequest<'_>, files: Arc<CStrings>) -> Self {
        Self {
            program: request.command.program.text().into_owned(),
            cwd: request.process.cwd.clone(),
            user: request.process.user.clone(),
            group: request.process.group.clone(),
            limits: request.process.limits.clone(),
            nice: request.process.nice,
            oom_score_adj: request.process.oom_score_adj,
            capabilities: request.process.capabilities.unwrap_or_default(),
            secrets: request
                .process
                .secrets
                .iter()
                .map(|(name, file)| (name.clone(), file.clone()))
                .collect(),
            files,
            alone: request.own_stdin,
        }
    }
}

/// A process that was created and may not have executed its program.
#[derive(Debug)]
pub struct ProcessStart {
    /// Its pid, which is also its process group.
    pub pid: i32,
    child: NewChild,
    pub output: OutputPipes,
    /// What the log hides in its output (P11).
    pub hidden: Option<HiddenValues>,
    /// The read end of the pipe for the process's own descriptor.
    pub ready: Option<OwnedFd>,
    attempt: Attempt,
}

/// How far a start has come.
#[derive(Debug)]
pub enum Progress {
    /// It is not known yet, or follows from the exit of the process.
    Pending,
    /// The program was executed.
    Executed,
    Failed(StartError),
}

impl ProcessStart {
    pub(super) fn new(
        child: NewChild,
        output: OutputPipes,
        attempt: Attempt,
        hidden: Option<HiddenValues>,
    ) -> Self {
        Self { pid: child.pid, child, output, hidden, ready: None, attempt }
    }

    /// Readable when there is progress; `None` if only the exit of the process will tell.
    pub fn poll_fd(&self) -> Option<RawFd> {
        self.child.poll_fd()
    }

    /// Reads what the child has reported. Never waits.
    pub fn progress(&mut self) -> Progress {
        match self.child.read() {
            StartReport::Nothing => Progress::Pending,
            StartReport::Failure(error) => Progress::Failed(SpawnError::new(error, &self.attempt).into()),
            StartReport::Closed { executing } if self.has_executed(executing) => Progress::Executed,
            // It was killed; its exit, with the signal, follows.
            StartReport::Closed { .. } => Progress::Pending,
        }
    }

    /// Whether it has executed its program, given that the pipe is closed without a report. Files of the process in
    /// `/proc` are read only if nothing else tells: they cost more than the rest of a start, and again when the process
    /// is reaped.
    fn has_executed(&self, executing: Option<bool>) -> bool {
        let look = || proc::has_executed(self.pid) != Some(false);
        match sys::wait_pid_nowait(self.pid) {
            Ok(WaitState::Exited(_, ExitStatus::Code(_))) => true,
            // It may have been killed in `execve`. One that is killed there and has not exited yet counts as executed.
            Ok(WaitState::Exited(_, ExitStatus::Signal(_))) => look(),
            _ => executing.unwrap_or_else(look),
        }
    }

    /// The outcome, given that the process has exited.
    pub fn outcome(&mut self, exited: &Exited) -> Result<(), StartError> {
        let report = self.child.read();
        // What remains is that the pipe is closed.
        self.child.read();
        match (report, exited.status) {
            (StartReport::Failure(error), _) => Err(SpawnError::new(error, &self.attempt).into()),
            (_, ExitStatus::Signal(signal)) if !exited.executed => Err(self.killed(signal)),
            _ => Ok(()),
        }
    }

    /// Returns true if the process can be forgotten. It cannot while it may use memory of the supervisor.
    pub fn is_over(&mut self) -> bool {
        self.child.read();
        !self.child.uses_memory()
    }

    fn killed(&self, signal: Signal) -> StartError {
        let message = format!("{}: killed by {signal} before it executed its program", self.attempt.program);
        StartError { kind: StartErrorKind::Killed(signal), message }
    }
}
