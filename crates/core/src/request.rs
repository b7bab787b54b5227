//! Requests to a running supervisor, and their replies (X1, X2, D8).
//!
//! Every request is answered exactly once: in its own step, or after startup if it arrives before. A reload, a change
//! of the number of replicas and a rolling restart are answered when they are done. Other replies report what was
//! started; they do not wait for a process to exit.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::JobIx;
use crate::plan::diff::{Changes, Moves};
use crate::plan::{Plan, ScaleError, Signal};
use crate::time::fmt_duration;

/// The number of a request, chosen by the caller; the reply carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// A request of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Enter or leave maintenance mode (D8). The reply is `Updated`.
    Maintenance(bool),
    /// Start a job now, regardless of what it waits for.
    Start(JobIx),
    /// Stop a job until it is started by hand.
    Stop(JobIx),
    /// Stop a job if it runs, and start it again.
    Restart(JobIx),
    /// Restart jobs one at a time, each healthy before the next (W20). The reply comes when that is done.
    RollingRestart(Vec<JobIx>),
    /// Run another number of replicas of this job (W20). The reply is `Reloaded`, when that is done.
    Scale(#[serde(serialize_with = "crate::recorded::as_is")] String, u16),
    /// Several requests to start, stop, restart or signal a job, with one reply.
    Several(Vec<Self>),
    /// Send a signal to the process group of a job.
    Signal(JobIx, Signal),
    /// Replace the plan (R1–R4). The reply is `Reloaded`, when that is done.
    Reload(Box<Plan>),
    /// Set variables for every process started from now on (P7). `None` and the empty string unset one.
    SetVariables(#[serde(serialize_with = "crate::recorded::names_as_is")] Vec<(String, Option<String>)>),
}

impl Request {
    /// The same request after a reload has changed the indices of jobs. A removed job becomes an unknown one, so that
    /// the request is still answered.
    pub(crate) fn moved(self, moves: &Moves) -> Self {
        let moved = |job: JobIx| moves.job(job).unwrap_or(JobIx(u32::MAX));
        match self {
            Self::Start(job) => Self::Start(moved(job)),
            Self::Stop(job) => Self::Stop(moved(job)),
            Self::Restart(job) => Self::Restart(moved(job)),
            Self::Signal(job, signal) => Self::Signal(moved(job), signal),
            Self::Several(all) => Self::Several(all.into_iter().map(|one| one.moved(moves)).collect()),
            Self::RollingRestart(jobs) => Self::RollingRestart(jobs.into_iter().map(moved).collect()),
            other => other,
        }
    }
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The requested state holds; true if it did not hold before.
    Updated(bool),
    /// Done, with a message.
    Done(String),
    /// The new plan is current.
    Reloaded(Changes),
    /// Refused, with the reason.
    Refused(Refusal),
    /// What each of several jobs replies.
    Jobs(Vec<JobReply>),
}

/// What one of several jobs replies (W22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReply {
    /// The name of the job.
    pub job: String,
    /// What is done, or why it is refused.
    pub result: Result<String, Refusal>,
}

impl JobReply {
    /// The replies of several jobs in one. It is refused if every job refuses: some jobs of a group may not run.
    pub fn combined(replies: &[Self]) -> Result<String, Refusal> {
        let words = |Self { job, result }: &Self| match result {
            Ok(done) => format!("{job}: {done}"),
            Err(refusal) => format!("{job}: {refusal}"),
        };
        let words = replies.iter().map(words).collect::<Vec<_>>().join("; ");
        if replies.iter().all(|reply| reply.result.is_err()) {
            return Err(Refusal::EveryJob(words));
        }
        Ok(words)
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The supervisor is shutting down.
    ShuttingDown,
    /// A reload has removed the job.
    NoSuchJob,
    /// An action has no job to act on.
    NoTarget,
    /// The telemetry job cannot be stopped or restarted.
    TelemetryJob,
    /// There is no process that the signal could be sent to.
    NotRunning,
    /// What the job is bound to does not hold, in words (W21).
    Unmet(String),
    /// Not so many replicas are possible.
    Scale(ScaleError),
    /// Another rolling restart is in progress.
    RollingRestartInProgress,
    /// A rolling restart needs checks.
    ChecksSuspended,
    /// Every job of a rolling restart was stopped before its turn.
    AllStopped,
    /// A job of a rolling restart has ended.
    JobEnded(String),
    /// A job of a rolling restart was not back in time.
    NotBack {
        /// The job.
        job: String,
        /// What it did not become: `healthy`.
        state: &'static str,
        /// How long it had time.
        limit: Duration,
    },
    /// A rolling restart has stopped before some jobs.
    Incomplete {
        /// The reason.
        why: Box<Self>,
        /// The names of the jobs that were not restarted.
        left: String,
    },
    /// Every one of several jobs refuses: what each of them replies.
    EveryJob(String),
    /// The supervisor has panicked.
    InternalError,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ShuttingDown => "the supervisor is shutting down",
            Self::NoSuchJob => "no such job",
            Self::NoTarget => "there is no other such job",
            Self::TelemetryJob => "the telemetry job is part of the supervisor",
            Self::NotRunning => "not running",
            Self::Unmet(words) | Self::EveryJob(words) => words,
            Self::Scale(error) => return error.fmt(out),
            Self::RollingRestartInProgress => "another rolling restart is in progress",
            Self::ChecksSuspended => "in maintenance mode checks are suspended, so no job becomes healthy",
            Self::AllStopped => "all of them were stopped before their turn",
            Self::JobEnded(job) => return write!(out, "{job} has ended"),
            Self::NotBack { job, state, limit } => {
                return write!(out, "{job} did not become {state} within {}", fmt_duration(*limit));
            }
            Self::Incomplete { why, left } => return write!(out, "{why}; not restarted: {left}"),
            Self::InternalError => "internal error, please report it; see the log",
        })
    }
}

impl core::error::Error for Refusal {}
