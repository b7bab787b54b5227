//! A start in progress: what the child reports through its pipe (P3).
//!
//! The pipe is closed when the program is executed. A child that fails writes an [`ExecError`] before it exits; one that
//! is killed before it has executed its program writes nothing, and the kernel tells that it has not.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use containerpilot_core::input::{ExitStatus, StartError, StartErrorKind};
use containerpilot_core::plan::{Principal, Signal};

use super::error::SpawnError;
use super::{Output, Request};
use crate::process::reaper::Exited;
use crate::process::sys::{self, CStrings, ExecError};

/// What was tried, for the message of a failure. The plan may have changed by then.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) program: String,
    pub(super) cwd: Option<String>,
    pub(super) user: Option<Principal>,
    pub(super) group: Option<Principal>,
    /// The files to execute, in this order.
    pub(super) files: CStrings,
}

impl Attempt {
    pub(super) fn new(request: &Request<'_>, files: CStrings) -> Self {
        Self {
            program: request.command.program.text().into_owned(),
            cwd: request.process.cwd.clone(),
            user: request.process.user.clone(),
            group: request.process.group.clone(),
            files,
        }
    }
}

/// A process that was created and may not have executed its program.
#[derive(Debug)]
pub(crate) struct Start {
    /// Its pid, which is also its process group.
    pub(crate) pid: i32,
    pub(crate) output: Output,
    /// The read end of the result; `None` if nothing more comes from it.
    result: Option<OwnedFd>,
    attempt: Attempt,
}

/// How far a start has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It is not known yet, or follows from the exit of the process.
    Pending,
    /// The program was executed.
    Executed,
    Failed(StartError),
}

/// What the pipe contains.
enum Report {
    Nothing,
    End,
    Failure(StartError),
}

impl Start {
    pub(super) fn new(pid: i32, result: OwnedFd, output: Output, attempt: Attempt) -> Self {
        Self { pid, output, result: Some(result), attempt }
    }

    /// Readable when there is progress; `None` if only the exit of the process will tell.
    pub(crate) fn poll_fd(&self) -> Option<RawFd> {
        self.result.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Reads what the child has reported. Never waits.
    pub(crate) fn progress(&mut self) -> Progress {
        match self.read() {
            Report::Nothing => Progress::Pending,
            Report::Failure(why) => Progress::Failed(why),
            // It was killed; its exit, with the signal, follows.
            Report::End if sys::has_executed(self.pid) == Some(false) => Progress::Pending,
            Report::End => Progress::Executed,
        }
    }

    /// The outcome, given that the process has exited.
    pub(crate) fn outcome(&mut self, exited: &Exited) -> Result<(), StartError> {
        match (self.read(), exited.status) {
            (Report::Failure(why), _) => Err(why),
            (_, ExitStatus::Signal(signal)) if !exited.executed => Err(self.killed(signal)),
            _ => Ok(()),
        }
    }

    fn killed(&self, signal: Signal) -> StartError {
        let message = format!("{}: killed by {signal} before it executed its program", self.attempt.program);
        StartError { kind: StartErrorKind::Killed(signal), message }
    }

    fn read(&mut self) -> Report {
        let Some(result) = &self.result else { return Report::Nothing };
        let mut record = [0; ExecError::MAX_BYTES];
        let length = match sys::read(result.as_fd(), &mut record) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Report::Nothing;
            }
            Err(_) => 0,
            Ok(length) => length,
        };
        self.result = None;
        match record.get(..length) {
            None | Some([]) => Report::End,
            Some(record) => {
                let error = ExecError::from_record(record);
                Report::Failure(SpawnError::new(error, &self.attempt).into())
            }
        }
    }
}
