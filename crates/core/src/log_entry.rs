//! Log entries of the core: a sentence for people, and fields for programs (L7).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::Code;
use crate::ids::JobIx;
use crate::input::ExitStatus;
use crate::outcome::Outcome;
use crate::plan::Level;
use crate::signal::Signal;

/// A log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The level.
    pub level: Level,
    /// Its job.
    pub job: Option<JobIx>,
    /// The sentence.
    pub message: String,
    /// What a program may filter on.
    pub fields: Fields,
    /// True if the last lines of the job's output belong to it, because the job failed (L6).
    pub with_output: bool,
}

/// What a program may filter on, in the formats `text` and `json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// What happened.
    pub event: LogEvent,
    /// Its process.
    pub pid: Option<u32>,
    /// Its check.
    pub check: Option<Box<str>>,
    /// The exit code of a process, or of the supervisor.
    pub code: Option<u8>,
    /// The signal that ended a process, or that was sent or received.
    pub signal: Option<Signal>,
    /// How long a run took, how long something is delayed, or the timeout that has passed.
    pub duration: Option<Duration>,
    /// Why.
    pub cause: Option<Box<str>>,
}

/// What a log entry reports. [`LogEvent::name`] is the value of the field `event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The supervisor sends this event (E1).
    Event(Code),
    /// A process has executed its program.
    Started,
    /// A job is restarted, at once or after a delay.
    Restarting,
    /// A start waits for a requirement, or a bound source is gone (W18).
    MissingRequirement,
    /// A check failed.
    CheckFailed,
    /// A watch cannot be answered.
    WatchFailed,
    /// A watch is answered again.
    WatchRecovered,
    /// What a watch has found is too long for a variable (D12).
    VariableTooLong,
    /// A run, a check or a stage of a stop has reached its timeout.
    Timeout,
    /// A time of a schedule came while the job was running (W15).
    TickSkipped,
    /// A job drains before it gets its stop signal.
    Draining,
    /// SIGKILL is sent.
    Killing,
    /// A process has not exited after SIGKILL.
    Abandoned,
    /// A run has left processes behind.
    Orphans,
    /// A job has ended, or will.
    Ended(Outcome),
    /// Nothing can happen any more (W10).
    Deadlock,
    /// Too many events were pending, and the oldest were dropped (W21).
    EventsDropped,
    /// A new configuration was loaded.
    Reloaded,
    /// What led to a failure is in a file (B2).
    Recorded,
    /// The supervisor exits (S12).
    Exiting,
    /// A bug in the core.
    Bug,
}

impl LogEvent {
    /// The value of the field `event`. The names of events in a configuration are used where there is one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event(code) => code.name(),
            Self::Started => "started",
            Self::Restarting => "restarting",
            Self::MissingRequirement => "missingRequirement",
            Self::CheckFailed => "checkFailed",
            Self::WatchFailed => "watchFailed",
            Self::WatchRecovered => "watchRecovered",
            Self::VariableTooLong => "variableTooLong",
            Self::Timeout => "timeout",
            Self::TickSkipped => "tickSkipped",
            Self::EventsDropped => "eventsDropped",
            Self::Draining => "draining",
            Self::Killing => "killing",
            Self::Abandoned => "abandoned",
            Self::Orphans => "orphans",
            Self::Ended(outcome) => outcome.name(),
            Self::Deadlock => "deadlock",
            Self::Reloaded => "reloaded",
            Self::Recorded => "recorded",
            Self::Exiting => "exiting",
            Self::Bug => "bug",
        }
    }

    /// Fields with this event only.
    pub(crate) const fn fields(self) -> Fields {
        Fields { event: self, pid: None, check: None, code: None, signal: None, duration: None, cause: None }
    }
}

impl From<LogEvent> for Fields {
    fn from(event: LogEvent) -> Self {
        event.fields()
    }
}

impl From<Code> for Fields {
    fn from(code: Code) -> Self {
        LogEvent::Event(code).fields()
    }
}

impl Fields {
    /// The code or the signal of an exit.
    pub(crate) fn status(self, status: ExitStatus) -> Self {
        match status {
            ExitStatus::Code(code) => Self { code: Some(code), ..self },
            ExitStatus::Signal(signal) => self.signal(signal),
        }
    }

    pub(crate) fn signal(self, signal: Signal) -> Self {
        Self { signal: Some(signal), ..self }
    }

    pub(crate) fn duration(self, duration: Duration) -> Self {
        Self { duration: Some(duration), ..self }
    }

    pub(crate) fn cause(self, cause: impl Into<Box<str>>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    pub(crate) fn check(self, check: &str) -> Self {
        Self { check: Some(check.into()), ..self }
    }

    /// The process of a job, while it has one.
    pub(crate) fn pid(self, pid: Option<i32>) -> Self {
        Self { pid: pid.map(i32::unsigned_abs), ..self }
    }
}

/// How many names of a list are written out.
const MAX_NAMED: usize = 5;

/// A list for the log: its first entries, and the number of the others.
pub(crate) fn few(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}
