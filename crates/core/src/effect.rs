//! Everything the core can want.

use alloc::string::String;
use alloc::sync::Arc;

use crate::ids::{CheckIx, CheckRun, JobIx, RunId};
use crate::plan::{Level, Plan, Signal, Status};
use crate::rules::command::{Answer, RequestId};
use crate::rules::environment::Environment;
use crate::rules::reload::Moves;

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Start the job's program. The answer is `Started` or `StartFailed`.
    Spawn {
        /// The job.
        job: JobIx,
        /// The run that this begins.
        run: RunId,
        /// Variables for the process beside the supervisor's own (P7), in the order in which they count.
        environment: Environment,
    },
    /// Send a signal to the process group of a run.
    Kill {
        /// The run.
        run: RunId,
        /// The signal.
        signal: Signal,
        /// What for.
        purpose: Purpose,
    },
    /// Kill what is left of the process group of a run that has ended (P4).
    KillRemains {
        /// The run.
        run: RunId,
    },
    /// Make a check. The answer is `CheckDone`.
    RunCheck {
        /// The job.
        job: JobIx,
        /// Which of its checks.
        check: CheckIx,
        /// The run that this begins.
        run: CheckRun,
        /// Variables for its process, if it has one.
        environment: Environment,
    },
    /// Cut a check short. The answer is `CheckDone` all the same.
    CancelCheck {
        /// The check's run.
        run: CheckRun,
    },
    /// The wanted state of a job's service in the catalog has changed (D5). If it is to be absent, the answer is
    /// `Withdrawn`, as soon as that is so.
    Advertise {
        /// The job.
        job: JobIx,
        /// What is wanted.
        wanted: Wanted,
    },
    /// Tell the catalog that a service is still healthy (H6).
    Heartbeat {
        /// The job.
        job: JobIx,
    },
    /// Answer a command.
    Reply {
        /// The number of the request.
        id: RequestId,
        /// What became of it.
        answer: Answer,
    },
    /// Another plan is in force (R3). What comes before this speaks of places in the old one, what comes after of places
    /// in the new one; what is kept by place, and inputs that are under way, must be moved.
    Replanned {
        /// The plan.
        plan: Arc<Plan>,
        /// What is where.
        moves: Moves,
    },
    /// Write an entry of the log.
    Log(Entry),
    /// Leave, with this exit code. Nothing comes after it.
    Exit {
        /// The code.
        code: u8,
    },
}

/// What a signal is sent for. It makes no difference to whoever sends it, but to whoever wants to know whether it was
/// right: SIGKILL may also be what a job is to be stopped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The job is to stop (S2).
    Stop,
    /// The run is to make way for another (H8).
    Replace,
    /// The run has used up its time (P5, W4).
    Timeout,
    /// It was asked to end, and has not.
    KillAfterTimeout,
    /// Everything is killed (S1, S4).
    Everything,
    /// Somebody wants it so (X2).
    ByHand,
    /// Every signal goes on to the main program (S7).
    PassedOn,
}

/// The wanted state of a service in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is not there.
    Absent,
    /// It is there, with this status.
    Present(Status),
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How much it matters.
    pub level: Level,
    /// The job it is about.
    pub job: Option<JobIx>,
    /// What it says.
    pub message: String,
    /// Whether the last lines of the job's output belong to it, because it failed (L6).
    pub with_output: bool,
}
