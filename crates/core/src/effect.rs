//! Effects: everything the runtime must do for the core.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{CheckIx, CheckRunId, FileIx, JobIx, LockIx, RenderId, RunId};
use crate::log_entry::LogEntry;
use crate::plan::diff::Moves;
use crate::plan::{FileData, Plan, Signal, Status, StopScope};
use crate::request::{Reply, RequestId};
use crate::time::Time;
use crate::variables::{JobVariables, ProcessEnvironment};

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Start the job's program. The result is `Started` or `StartFailed`, unless `CancelStart` follows.
    Spawn {
        /// The job.
        job: JobIx,
        /// The new run.
        run: RunId,
        /// Variables in addition to the supervisor's own (P7).
        environment: ProcessEnvironment,
    },
    /// Inspect a start that has timed out (P3). The result is `Started`, `StartFailed`, `StartPending` or
    /// `StartDelayed`.
    InspectStart {
        /// The run.
        run: RunId,
    },
    /// Give up a start (P3): send SIGKILL to the process and forget the run. No input about it follows.
    CancelStart {
        /// The run.
        run: RunId,
    },
    /// Send a signal to the process of a run and to its process group, also before its program was executed. SIGKILL
    /// also goes to processes of the run that have left the group. If the process has exited, send it to the other
    /// processes of the run (S14).
    Kill {
        /// The run.
        run: RunId,
        /// The signal.
        signal: Signal,
        /// With `Process`, the signal does not go to the process group (S9).
        scope: StopScope,
        /// Why. A signal that ends the run is not followed by SIGTERM when its process has exited.
        reason: KillReason,
    },
    /// Send SIGKILL to what remains of a run that has ended: its process group, and processes that have left it (P4).
    KillOrphans {
        /// The run.
        run: RunId,
    },
    /// Forget the process of a run: SIGKILL has not ended it (P6). No input about the run follows, except
    /// `OrphansFound`.
    Abandon {
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
        environment: ProcessEnvironment,
    },
    /// Run the drain program of a job (S11). The result is `CheckDone`.
    RunDrain {
        /// The job.
        job: JobIx,
        /// The run of the program.
        run: CheckRunId,
        /// Variables for its process.
        environment: ProcessEnvironment,
    },
    /// Cancel a check, a test or a drain program. `CheckDone` still follows.
    CancelCheck {
        /// The check's run.
        run: CheckRunId,
    },
    /// Render a file into a temporary one, unless the file has that text already (D15). The result is `FileRendered`.
    RenderFile {
        /// The file.
        file: FileIx,
        /// The new rendering.
        render: RenderId,
        /// What its watches have found.
        data: FileData,
        /// Variables in addition to the supervisor's own.
        variables: Arc<JobVariables>,
    },
    /// Run the test program of a file, with the path of the temporary file in `CONTAINERPILOT_FILE`. The result is
    /// `CheckDone`.
    TestFile {
        /// The file.
        file: FileIx,
        /// The rendering to test.
        render: RenderId,
        /// The run of the test.
        run: CheckRunId,
        /// Variables for its process.
        environment: ProcessEnvironment,
    },
    /// Replace a file by the temporary one. The result is `FileInstalled`.
    InstallFile {
        /// The rendering.
        render: RenderId,
    },
    /// Remove the temporary file of a rendering, if there is one. No result follows.
    DiscardFile {
        /// The rendering.
        render: RenderId,
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
    /// Release a lock: the jobs that require it have ended, and the supervisor shuts down (D14). A lock that a new plan
    /// does not have is released when the plan is replaced, and all others before the process exits.
    ReleaseLock {
        /// The lock.
        lock: LockIx,
    },
    /// Tell the service manager that started the supervisor (H11).
    NotifyManager(ManagerNotice),
    /// Reply to a request.
    Reply {
        /// The number of the request.
        id: RequestId,
        /// The reply.
        reply: Reply,
    },
    /// Another plan is current (R3). Indices in earlier effects refer to the old plan, indices in later effects to the
    /// new one. State that the runtime keeps by index, and inputs it has queued, must be translated with `moves`.
    PlanReplaced {
        /// The new plan.
        plan: Arc<Plan>,
        /// Where the jobs and watches of the old plan are.
        moves: Moves,
    },
    /// Reload the configuration, as at SIGHUP (R1, W19). `Request::Reload` follows if it is valid.
    Reload,
    /// Write a log entry.
    Log(LogEntry),
    /// Exit. No effect follows.
    Exit(Exit),
}

/// A notice to the service manager of the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerNotice {
    /// Every job that starts at startup is ready.
    Ready,
    /// The shutdown has started.
    Stopping,
}

impl ManagerNotice {
    /// The message of `sd_notify`.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Ready => "READY=1",
            Self::Stopping => "STOPPING=1",
        }
    }
}

/// The exit of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: u8,
    /// The last entry of the log: the exit code and its reason (S12).
    pub entry: LogEntry,
    /// How long the rest may take.
    pub deadlines: ExitDeadlines,
}

/// Until when the runtime waits for what it does before it exits (S4, S6). Each step ends earlier if it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitDeadlines {
    /// Processes that belong to no job have exited after SIGKILL.
    pub descendants: Time,
    /// All services are deregistered, and all locks released.
    pub deregister: Time,
    /// The log is written.
    pub log: Time,
    /// What is exported has been sent (T6).
    pub export: Time,
    /// Connections are closed.
    pub connections: Time,
}

/// Why a signal is sent: whether it ends the run ([`KillReason::ends_run`]), and the name in spans (T6). Tests use it
/// to check that the signal was right, since SIGKILL may also be a job's stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KillReason {
    /// The job stops (S2).
    Stop,
    /// The run is unhealthy and is restarted (H8).
    Unhealthy,
    /// The run did not exit after its stop signal, and gets the next one (S9).
    Escalation,
    /// The run has reached its timeout (P5, W4).
    Timeout,
    /// The run did not exit after its stop signal.
    StopTimeout,
    /// Another supervisor may get a lock that the job requires (D14).
    LockLost,
    /// All jobs are killed (S1, S4).
    KillAll,
    /// A user requested it (X2).
    ByHand,
    /// Signals are forwarded to the main program (S7).
    Forwarded,
}

impl KillReason {
    /// Returns true if the run is to end by the signal.
    #[must_use]
    pub const fn ends_run(self) -> bool {
        !matches!(self, Self::ByHand | Self::Forwarded)
    }
}

/// The desired state of a service in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DesiredService {
    /// Not registered.
    Absent,
    /// Registered with this status.
    Present(Status),
}

impl DesiredService {
    /// The name in the JSON of the control socket.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Present(status) => status.name(),
        }
    }
}
