//! The timeline of a simulation: what happened, when, and why.

use std::fmt;
use std::sync::Arc;

use containerpilot_core::event::Code;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Signal, Status};
use containerpilot_core::report::status::ReportedState;
use containerpilot_core::{JobStatus, Outcome, StopReason, Time};
use std::collections::BTreeMap;

use crate::moment::{ADVERTISED, DEREGISTERED, EXIT, KILLED, Moment, RELOADED, STARTS};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When it happened.
    pub at: Time,
    /// A job, `watch.NAME` or a signal; empty for the supervisor.
    pub source: Arc<str>,
    /// What happened.
    pub what: What,
    /// The index of the entry that caused it, if that is known.
    pub cause: Option<usize>,
    /// Details.
    pub note: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// An event of the core.
    Event(Code),
    /// A process has been started.
    Starts,
    /// A signal was sent to a process.
    Sent(u8),
    /// SIGKILL was sent to a process.
    Killed,
    /// Checks of a job start to fail.
    ChecksFail,
    /// A service has this status in the catalog.
    InCatalog(Status),
    /// A service has left the catalog.
    Deregistered,
    /// The catalog has lost a service.
    Forgotten,
    /// The catalog becomes unreachable, or reachable again.
    CatalogOutage(bool),
    /// A request to the supervisor; the note names it.
    Request,
    /// A reloaded configuration has taken effect.
    Reloaded,
    /// A warning of the log, in the note.
    Warning,
    /// The supervisor has exited with this code.
    Exit(u8),
}

impl What {
    /// A short name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Event(code) => code.name(),
            Self::Starts => STARTS,
            Self::Sent(_) => "gets",
            Self::Killed => KILLED,
            Self::ChecksFail => "checks fail",
            Self::InCatalog(Status::Passing) => ADVERTISED,
            Self::InCatalog(Status::Warning) => "advertised as warning",
            Self::InCatalog(Status::Critical) => "advertised as critical",
            Self::Deregistered => DEREGISTERED,
            Self::Forgotten => "forgotten",
            Self::CatalogOutage(true) => "away",
            Self::CatalogOutage(false) => "back",
            Self::Request => "asked",
            Self::Reloaded => RELOADED,
            Self::Warning => "warning",
            Self::Exit(_) => EXIT,
        }
    }
}

impl Entry {
    /// Returns true if it is an instance of a moment.
    #[must_use]
    pub fn is(&self, moment: &Moment) -> bool {
        *self.source == *moment.source && self.what.word() == moment.word
    }

    /// Source and kind, in the syntax of scenarios where possible.
    #[must_use]
    pub fn name(&self) -> String {
        match (&*self.source, self.what) {
            (source, What::Event(Code::Signal)) => source.to_owned(),
            (source, What::Sent(signal)) => format!("{source} gets {}", Signal(signal)),
            (_, What::Request) => self.note.split(": ").next().unwrap_or_default().to_owned(),
            ("", What::Exit(code)) => format!("exit with {code}"),
            ("", what) => what.word().to_owned(),
            (source, what) => format!("{source} {}", what.word()),
        }
    }
}

/// How a process exited.
#[must_use]
pub fn exit_note(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("code {code}"),
        ExitStatus::Signal(signal) => signal.to_string(),
    }
}

/// The phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names explain themselves")]
pub enum JobPhase {
    Waiting,
    Starting,
    Running,
    Healthy,
    Unhealthy,
    Delaying,
    Stopping,
    Stopped,
    Complete,
    Failed,
    Skipped,
}

impl JobPhase {
    /// All phases.
    pub const ALL: [Self; 11] = [
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Healthy,
        Self::Unhealthy,
        Self::Delaying,
        Self::Stopping,
        Self::Stopped,
        Self::Complete,
        Self::Failed,
        Self::Skipped,
    ];

    /// The phase of a job with this status.
    #[must_use]
    pub fn of(status: &JobStatus, has_health: bool) -> Self {
        match status.reported() {
            ReportedState::Ended(Outcome::Stopped) => Self::Stopped,
            ReportedState::Ended(Outcome::Complete) => Self::Complete,
            ReportedState::Ended(Outcome::Failed) => Self::Failed,
            ReportedState::Ended(Outcome::Skipped(_)) => Self::Skipped,
            ReportedState::Stopping => Self::Stopping,
            ReportedState::Waiting => Self::Waiting,
            ReportedState::Starting => Self::Starting,
            ReportedState::Restarting => Self::Delaying,
            ReportedState::Running if !has_health => Self::Running,
            ReportedState::Running => match status.health() {
                None => Self::Running,
                Some(true) => Self::Healthy,
                Some(false) => Self::Unhealthy,
            },
        }
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Delaying => "restarting",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The history of one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobHistory {
    /// Its phases, each with its start; it lasts until the next one.
    pub phases: Vec<(Time, JobPhase)>,
    /// How many processes were started.
    pub runs: u64,
    /// How many of them before the simulation stopped the supervisor.
    pub runs_at_end: u64,
}

impl JobHistory {
    /// Records the current phase.
    pub fn note(&mut self, at: Time, phase: JobPhase) {
        match self.phases.last_mut() {
            Some((_, last)) if *last == phase => {}
            // A phase that lasted no time is not shown.
            Some(last) if last.0 == at => last.1 = phase,
            _ => self.phases.push((at, phase)),
        }
        let same = self.phases.iter().rev().take(2).map(|(_, phase)| phase);
        if let [one, other] = same.collect::<Vec<_>>().as_slice()
            && one == other
        {
            self.phases.pop();
        }
    }

    /// The current phase.
    #[must_use]
    pub fn now(&self) -> Option<JobPhase> {
        self.phases.last().map(|(_, phase)| *phase)
    }
}

/// The state of a job at an instant, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The state, as in `containerpilot status`.
    pub word: &'static str,
    /// True if it is healthy.
    pub healthy: Option<bool>,
    /// Why it stops or has ended.
    pub stop_reason: Option<StopReason>,
    /// The explanation, as in `containerpilot explain`.
    pub sentences: Vec<String>,
}

/// Why a simulation was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Items happened without an end, and no time passed.
    NoTimePasses,
    /// The timeline became too long.
    TooMuch,
    /// The supervisor does not exit although it received SIGTERM.
    Stuck,
}

impl fmt::Display for Abort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoTimePasses => {
                "endless loop at one instant; does a run last 0s, with `restartBackoff: false`?"
            }
            Self::TooMuch => "too many events; set a shorter `until`",
            Self::Stuck => "the supervisor was asked to stop and does not exit",
        })
    }
}

/// The result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct SimulationRun {
    /// The timeline.
    pub entries: Vec<Entry>,
    /// The names of all jobs, in the order of the first plan that has them.
    pub jobs: Vec<String>,
    /// The history of each job.
    pub histories: BTreeMap<String, JobHistory>,
    /// The state of jobs at the times that expectations name.
    pub views: BTreeMap<(Time, String), View>,
    /// The state of all jobs at the end, before the shutdown.
    pub last: BTreeMap<String, View>,
    /// The end.
    pub end: Time,
    /// How many entries there were by then; the others belong to the shutdown.
    pub counted: usize,
    /// When the simulation sent SIGTERM to the supervisor, if it still ran at the end.
    pub stop_requested_at: Option<Time>,
    /// When the supervisor exited, and its exit code.
    pub exit: Option<(Time, u8)>,
    /// The jobs that were killed because the stop timeout passed or a second signal arrived.
    pub killed: Vec<(Time, String)>,
    /// The jobs that got their stop signal before their hooks, deregistration and drain were complete (S4).
    pub stopped_early: Vec<(Time, String)>,
    /// Why it was aborted.
    pub abort: Option<Abort>,
    /// How often the core was called.
    pub steps: u64,
}
