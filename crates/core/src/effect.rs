//! Effects: everything the runtime must do for the core.

use alloc::string::String;
use alloc::sync::Arc;

use crate::ids::{CheckIx, CheckRunId, JobIx, RunId};
use crate::plan::diff::Moves;
use crate::plan::{Level, Plan, Signal, Status};
use crate::request::{Reply, RequestId};
use crate::variables::Environment;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Start the job's program. The result is `Started` or `StartFailed`.
    Spawn {
        /// The job.
        job: JobIx,
        /// The new run.
        run: RunId,
        /// Variables in addition to the supervisor's own (P7).
        environment: Environment,
    },
    /// Send a signal to the process group of a run.
    Kill {
        /// The run.
        run: RunId,
        /// The signal.
        signal: Signal,
        /// Why.
        reason: KillReason,
    },
    /// Send SIGKILL to the orphaned process group of a run that has exited (P4).
    KillOrphans {
        /// The run.
        run: RunId,
    },
    /// Run a check. The result is `CheckDone`.
    RunCheck {
        /// The job.
        job: JobIx,
        /// Which of its checks.
        check: CheckIx,
        /// The new run of the check.
        run: CheckRunId,
        /// Variables for its process, if it has one.
        environment: Environment,
    },
    /// Cancel a check. `CheckDone` still follows.
    CancelCheck {
        /// The check's run.
        run: CheckRunId,
    },
    /// The desired state of a job's service in the catalog has changed (D5). `Deregistered` follows when a service has
    /// become absent.
    Advertise {
        /// The job.
        job: JobIx,
        /// The desired state.
        desired: DesiredService,
    },
    /// Send the catalog a heartbeat for a healthy service (H6).
    Heartbeat {
        /// The job.
        job: JobIx,
    },
    /// Reply to a request.
    Reply {
        /// The number of the request.
        id: RequestId,
        /// The reply.
        reply: Reply,
    },
    /// Another plan is in force (R3). Indices in earlier effects refer to the old plan, indices in later effects to the
    /// new one. State that the runtime keeps by index, and inputs it has queued, must be translated with `moves`.
    PlanReplaced {
        /// The new plan.
        plan: Arc<Plan>,
        /// Where the jobs and watches of the old plan are.
        moves: Moves,
    },
    /// Write a log entry.
    Log(Entry),
    /// Exit with this code. No effect follows.
    Exit {
        /// The code.
        code: u8,
    },
}

/// Why a signal is sent. The runtime ignores it; tests use it to judge whether the signal was right, since SIGKILL may
/// also be a job's stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// The job stops (S2).
    Stop,
    /// The run is unhealthy and is restarted (H8).
    Unhealthy,
    /// The run has reached its timeout (P5, W4).
    Timeout,
    /// The run did not exit after its stop signal.
    StopTimeout,
    /// All jobs are killed (S1, S4).
    KillAll,
    /// A user requested it (X2).
    ByHand,
    /// Signals are forwarded to the main program (S7).
    Forwarded,
}

/// The desired state of a service in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesiredService {
    /// Not registered.
    Absent,
    /// Registered with this status.
    Present(Status),
}

/// A log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The level.
    pub level: Level,
    /// The job it is about.
    pub job: Option<JobIx>,
    /// The message.
    pub message: String,
    /// True if the last lines of the job's output belong to it, because the job failed (L6).
    pub with_output: bool,
}
