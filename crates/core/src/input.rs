//! Everything that can happen to the core.

use alloc::string::String;
use alloc::vec::Vec;

use crate::ids::{CheckRun, JobIx, RunId, WatchIx};
use crate::plan::Signal;
use crate::rules::command::{Command, RequestId};

/// Something that has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Everything is ready: configuration loaded, control socket and telemetry listening (E4).
    Ready,
    /// A run has a process.
    Started {
        /// The run.
        run: RunId,
        /// Its process.
        pid: i32,
    },
    /// A run could not be started (P3).
    StartFailed {
        /// The run.
        run: RunId,
        /// Why.
        why: StartError,
    },
    /// A run's own process has ended (P4).
    Exited {
        /// The run.
        run: RunId,
        /// How.
        status: ExitStatus,
        /// Whether something is left of its process group. It was sent SIGTERM already.
        orphans: bool,
    },
    /// The kernel has ended so many processes of this container, because memory ran out, since this was last said. It is said
    /// before an end that it may explain, and never where nobody counts.
    OutOfMemory {
        /// How many.
        processes: u64,
    },
    /// A check has ended, or was cut short.
    CheckDone {
        /// The check's run.
        check: CheckRun,
        /// Whether it passed; if not, why not, in words.
        result: Result<(), String>,
    },
    /// The catalog's answer to a watch: the healthy instances, in any order.
    Instances {
        /// The watch.
        watch: WatchIx,
        /// The instances.
        instances: Vec<Instance>,
    },
    /// A signal to the supervisor.
    Signal(Signal),
    /// The catalog has let a job's service go, or whoever asks it has given up (S2). To be told once for each
    /// `Advertise` of `Absent`, and only as long as nothing else is wanted since.
    Withdrawn {
        /// The job.
        job: JobIx,
    },
    /// Somebody asks for something; the answer is `Reply`.
    Command {
        /// The number of the request.
        id: RequestId,
        /// What is asked for.
        command: Command,
    },
    /// Nothing; but time has passed.
    Tick,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitStatus {
    /// With a code.
    Code(u8),
    /// By a signal.
    Signal(Signal),
}

impl ExitStatus {
    /// Whether that is success (P3).
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// The exit code a shell would show for it (S5).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(Signal(number)) => 128_u8.saturating_add(number),
        }
    }
}

/// Why a program could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The sort of failure.
    pub kind: StartErrorKind,
    /// The program and the system's own words.
    pub message: String,
}

/// The sort of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartErrorKind {
    /// There is no such program.
    NotFound,
    /// There is, but it may not or cannot be executed.
    NotExecutable,
    /// The system has no room for another process.
    NoResources,
    /// Something else, such as a user that has vanished.
    Other,
}

impl StartErrorKind {
    /// The exit code a shell would show for it (S5).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::NotFound => 127,
            Self::NotExecutable => 126,
            Self::NoResources | Self::Other => 125,
        }
    }
}

/// One healthy instance of a watched service (E6).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// Its id in the catalog.
    pub id: String,
    /// Its address: mostly a number, but a catalog may hold any name.
    pub address: String,
    /// Its port.
    pub port: u16,
}
