//! Inputs: everything that can happen to the core.

use alloc::string::{String, ToString};
use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::answer::{Answer, Instance, WatchResult};
pub use crate::exit_status::ExitStatus;
use crate::ids::{CheckRunId, JobIx, LockIx, RenderId, RunId, WatchIx};
use crate::lock_report::LockReport;
use crate::notice::Notice;
use crate::plan::diff::Moves;
use crate::plan::{Signal, UnexpectedStatus};
use crate::request::{Request, RequestId};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The supervisor is ready: configuration loaded, control socket and telemetry server listening (E4).
    Ready,
    /// The process of a run has executed its program.
    Started {
        /// The run.
        run: RunId,
        /// Its process.
        pid: i32,
    },
    /// A process could not be started (P3).
    StartFailed {
        /// The run.
        run: RunId,
        /// The reason.
        why: StartError,
    },
    /// The process of a run has neither executed its program nor failed to. Only as an answer to `InspectStart`.
    StartPending {
        /// The run.
        run: RunId,
    },
    /// The process of a run has not executed its program, because other processes had the processors (P14). Only as an
    /// answer to `InspectStart`.
    StartDelayed {
        /// The run.
        run: RunId,
    },
    /// The process of a run exited (P4).
    Exited {
        /// The run.
        run: RunId,
        /// How it exited.
        status: ExitStatus,
        /// Its other processes.
        remains: Remains,
    },
    /// Processes of a run that has ended were found, for example daemons in a session of their own (P4). They have
    /// already been sent SIGTERM.
    OrphansFound {
        /// The run.
        run: RunId,
    },
    /// Nothing is left of a run of which something was left when its process exited (S14).
    OrphansGone {
        /// The run.
        run: RunId,
    },
    /// The kernel's OOM killer killed this many processes of the container since the last such input. Sent before an
    /// exit that it may explain, and never if the kernel does not report the count.
    OutOfMemory {
        /// The number of processes.
        processes: u64,
    },
    /// The process of a check, the test of a file or a drain program has executed its program. Only needed while
    /// [`crate::Core::starts_wait`]: `CheckDone` implies it.
    CheckStarted {
        /// The check's run.
        check: CheckRunId,
    },
    /// A check, the test of a file or a drain program finished or was cancelled.
    CheckDone {
        /// The check's run.
        check: CheckRunId,
        /// The reason, if it failed.
        result: Result<(), CheckError>,
    },
    /// The process of a run reported something about itself (H11). It may come before `Started`.
    Notified {
        /// The run.
        run: RunId,
        /// What it reported.
        notice: Notice,
    },
    /// What a watch has found. An answer that has not changed causes nothing.
    Watched {
        /// The watch.
        watch: WatchIx,
        /// The answer, or why there is none. Then the last answer stays (D7).
        answer: WatchResult,
    },
    /// A file was rendered (D15).
    FileRendered {
        /// The rendering.
        render: RenderId,
        /// What it has made, or why it failed.
        result: Result<RenderedText, RenderError>,
    },
    /// A file was replaced, or could not be. Then it has its old text.
    FileInstalled {
        /// The rendering.
        render: RenderId,
        /// The reason, if it failed: it is shown, and compared with the previous one.
        result: Result<(), String>,
    },
    /// What Consul has answered about a lock (D14).
    Lock {
        /// The lock.
        lock: LockIx,
        /// What is known.
        report: LockReport,
    },
    /// A signal to the supervisor.
    Signal(Signal),
    /// A job's service has left the catalog, or deregistering it has failed (S2). Sent once for each `Advertise` of
    /// `Absent`, unless something else was advertised since.
    Deregistered {
        /// The job.
        job: JobIx,
    },
    /// A request; the reply is `Effect::Reply`.
    Request {
        /// The number of the request.
        id: RequestId,
        /// The request.
        request: Request,
    },
    /// The telemetry server listens, or cannot, with the reason for people. Sent after a reload that has added or moved
    /// it (R3).
    TelemetryListens(Result<(), String>),
    /// The system clock was read: before startup, when it was set, and when the machine was asleep (W15).
    Clock {
        /// The time since 1970.
        unix: Duration,
        /// How long the machine was asleep since the supervisor started.
        asleep: Duration,
    },
    /// Time has passed.
    Tick,
}

impl Moves {
    /// Translates an input that was created before a reload. Returns `None` if its subject was removed. A request
    /// about a removed job stays, because it must be answered.
    #[must_use]
    pub fn input(&self, input: Input) -> Option<Input> {
        Some(match input {
            Input::Deregistered { job } => Input::Deregistered { job: self.job(job)? },
            Input::Watched { watch, answer } => Input::Watched { watch: self.watch(watch)?, answer },
            Input::Lock { lock, report } => Input::Lock { lock: self.lock(lock)?, report },
            Input::Request { id, request } => Input::Request { id, request: request.moved(self) },
            other => other,
        })
    }
}

/// The other processes of a run whose process has exited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remains {
    /// No other process.
    Nothing,
    /// Other processes of its process group: their names and pids, for people. They have already been sent SIGTERM,
    /// unless they got a signal that ends the run together with the process. `OrphansGone` follows.
    Group(String),
    /// Perhaps processes that have left the process group. `OrphansGone` follows, after `OrphansFound` if there are
    /// any. Only for a run that was sent a signal that ends it.
    Unknown,
}

/// Why a file could not be rendered (D15).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenderError {
    /// Its template and what watches have found: it would fail again.
    Text(String),
    /// The system: it may pass, such as a full disk.
    System(String),
}

impl RenderError {
    /// The reason.
    #[must_use]
    pub fn why(&self) -> &String {
        match self {
            Self::Text(why) | Self::System(why) => why,
        }
    }
}

/// What a rendering has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenderedText {
    /// The text that the file has already.
    Same,
    /// Another text, which is in a temporary file.
    New,
}

/// Why a program could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartError {
    /// The kind of failure.
    pub kind: StartErrorKind,
    /// The program and the system's error message.
    pub message: String,
}

/// Why a check, the test of a file or a drain program did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckError {
    /// It has failed.
    Failed(String),
    /// The supervisor had no descriptor for it. The health of the job and the file stay the same (H3).
    NotRun(String),
}

impl CheckError {
    /// The reason.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Failed(why) | Self::NotRun(why) => why,
        }
    }

    /// The same kind of error, with other words.
    #[must_use]
    pub fn map(self, words: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(words(why)),
            Self::NotRun(why) => Self::NotRun(words(why)),
        }
    }
}

impl From<String> for CheckError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<UnexpectedStatus> for CheckError {
    fn from(error: UnexpectedStatus) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<StartError> for CheckError {
    fn from(error: StartError) -> Self {
        match error.kind {
            StartErrorKind::NoDescriptors => Self::NotRun(error.message),
            _ => Self::Failed(error.message),
        }
    }
}

impl From<&str> for CheckError {
    fn from(why: &str) -> Self {
        Self::Failed(why.into())
    }
}

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartErrorKind {
    /// The program does not exist.
    NotFound,
    /// The program is not executable.
    NotExecutable,
    /// The supervisor has no descriptor left for another process.
    NoDescriptors,
    /// The system has no resources for another process.
    NoResources,
    /// A signal killed the process before it had executed its program.
    Killed(Signal),
    /// Something else, such as a user that does not exist.
    Other,
}

impl StartErrorKind {
    /// The exit status that a shell reports (S5).
    #[must_use]
    pub const fn status(self) -> ExitStatus {
        match self {
            Self::NotFound => ExitStatus::Code(127),
            Self::NotExecutable => ExitStatus::Code(126),
            Self::NoDescriptors | Self::NoResources | Self::Other => ExitStatus::Code(125),
            Self::Killed(signal) => ExitStatus::Signal(signal),
        }
    }
}
