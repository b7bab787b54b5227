//! What happened: when, what, and why.

use std::fmt;
use std::sync::Arc;

use containerpilot_config::kinds::signal_name;
use containerpilot_core::event::Code;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Signal, Status};
use containerpilot_core::{Aim, Ending, JobStatus, State, Time};
use std::collections::BTreeMap;

use crate::moment::{ADVERTISED, EXIT, KILLED, Moment, RELOADED, STARTS, WITHDRAWN};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// To whom: a job, `watch.NAME`, a signal; nothing for the whole.
    pub source: Arc<str>,
    /// What.
    pub what: What,
    /// The place of the entry that it came from, if that is known.
    pub cause: Option<usize>,
    /// What else there is to say about it.
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
    /// SIGKILL was.
    Killed,
    /// Checks of it begin to fail.
    ChecksFail,
    /// Its service has this status in the catalog.
    InCatalog(CatalogStatus),
    /// Its service is out of the catalog.
    Withdrawn,
    /// The catalog has forgotten its service.
    Forgotten,
    /// The catalog cannot be reached any more, or can again.
    CatalogAway(bool),
    /// Somebody asks for something, which is in the note.
    Asked,
    /// Another configuration is in force.
    Reloaded,
    /// The log warns of something, which is in the note.
    Warning,
    /// The supervisor has left, with this code.
    Exit(u8),
}

/// The status of a service in the catalog, in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are the catalog's own three")]
pub enum CatalogStatus {
    Passing,
    Warning,
    Critical,
}

impl From<Status> for CatalogStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Passing => Self::Passing,
            Status::Warning => Self::Warning,
            Status::Critical => Self::Critical,
        }
    }
}

impl What {
    /// What happened, in a word or a few.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Event(code) => code.name(),
            Self::Starts => STARTS,
            Self::Sent(_) => "gets",
            Self::Killed => KILLED,
            Self::ChecksFail => "checks fail",
            Self::InCatalog(CatalogStatus::Passing) => ADVERTISED,
            Self::InCatalog(CatalogStatus::Warning) => "advertised as warning",
            Self::InCatalog(CatalogStatus::Critical) => "advertised as critical",
            Self::Withdrawn => WITHDRAWN,
            Self::Forgotten => "forgotten",
            Self::CatalogAway(true) => "away",
            Self::CatalogAway(false) => "back",
            Self::Asked => "asked",
            Self::Reloaded => RELOADED,
            Self::Warning => "warning",
            Self::Exit(_) => EXIT,
        }
    }
}

impl Entry {
    /// Whether it is a moment.
    #[must_use]
    pub fn is(&self, moment: &Moment) -> bool {
        *self.source == *moment.source && self.what.word() == moment.word
    }

    /// Who and what, in words, as a scenario writes it where it can.
    #[must_use]
    pub fn name(&self) -> String {
        match (&*self.source, self.what) {
            (source, What::Event(Code::Signal)) => source.to_owned(),
            (source, What::Sent(signal)) => format!("{source} gets {}", signal_name(Signal(signal))),
            (_, What::Asked) => self.note.split(": ").next().unwrap_or_default().to_owned(),
            ("", What::Exit(code)) => format!("exit with {code}"),
            ("", what) => what.word().to_owned(),
            (source, what) => format!("{source} {}", what.word()),
        }
    }
}

/// How a process ended, in words.
#[must_use]
pub fn exit_note(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("code {code}"),
        ExitStatus::Signal(signal) => signal_name(signal),
    }
}

/// What a job is doing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Phase {
    Waiting,
    Starting,
    Running,
    Healthy,
    Unhealthy,
    Delaying,
    Stopping,
    Complete,
    Failed,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Healthy,
        Self::Unhealthy,
        Self::Delaying,
        Self::Stopping,
        Self::Complete,
        Self::Failed,
    ];

    /// What a job in this state is doing.
    #[must_use]
    pub fn of(status: &JobStatus, has_health: bool) -> Self {
        match (status.state, status.aim) {
            (State::Complete, _) if status.word() == "failed" => Self::Failed,
            (State::Complete, _) => Self::Complete,
            (_, Aim::Hooks | Aim::Withdraw | Aim::Drain | Aim::Term) => Self::Stopping,
            (State::Waiting, _) => Self::Waiting,
            (State::Starting, _) => Self::Starting,
            (State::Delaying, _) => Self::Delaying,
            (State::Running, _) if !has_health => Self::Running,
            (State::Running, _) => match status.healthy {
                None => Self::Running,
                Some(true) => Self::Healthy,
                Some(false) => Self::Unhealthy,
            },
        }
    }

    /// Its name.
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
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }
}

/// A phase and when it began; it lasts until the next one.
pub type PhaseSpan = (Time, Phase);

/// What became of one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobHistory {
    /// What it was doing.
    pub phases: Vec<PhaseSpan>,
    /// How many processes it had.
    pub runs: u64,
    /// How many of them before the rehearsal stopped everything.
    pub runs_at_end: u64,
}

impl JobHistory {
    /// Takes note of what it is doing.
    pub fn note(&mut self, at: Time, phase: Phase) {
        match self.phases.last_mut() {
            Some((_, last)) if *last == phase => {}
            // What lasted no time at all was not seen by anybody.
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

    /// What it is doing now.
    #[must_use]
    pub fn now(&self) -> Option<Phase> {
        self.phases.last().map(|(_, phase)| *phase)
    }
}

/// How a job was at a moment, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// One word for it, as `containerpilot status` has it.
    pub word: &'static str,
    /// Whether it is healthy.
    pub healthy: Option<bool>,
    /// Why it stops or is complete.
    pub ending: Option<Ending>,
    /// Why, in sentences.
    pub sentences: Vec<String>,
}

/// Why a rehearsal was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Something happened again and again, and no time passed.
    NoTimePasses,
    /// More happened than anybody could read.
    TooMuch,
    /// It would not leave, though it was asked twice.
    Stuck,
}

impl fmt::Display for Abort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoTimePasses => {
                "something happens over and over while no time passes; is there a run that lasts 0 s, with \
                 `restartBackoff: false`?"
            }
            Self::TooMuch => "more happens than can be told; a shorter `until` helps",
            Self::Stuck => "the supervisor does not leave though it was asked to",
        })
    }
}

/// Everything that came of a scenario.
#[derive(Clone, Debug, Default)]
pub struct SimulationRun {
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// The jobs, by name, in the order of the first plan that had them.
    pub jobs: Vec<String>,
    /// What became of each.
    pub histories: BTreeMap<String, JobHistory>,
    /// How jobs were at the moments that expectations name.
    pub views: BTreeMap<(Time, String), View>,
    /// How all jobs were at the end, before everything was stopped.
    pub last: BTreeMap<String, View>,
    /// When that was.
    pub end: Time,
    /// How many of the entries were there by then; what follows belongs to the stop.
    pub counted: usize,
    /// The time of the stop that belongs to the rehearsal, if the container still ran at its end.
    pub asked_to_stop: Option<Time>,
    /// When the supervisor left, and with which code.
    pub exit: Option<(Time, u8)>,
    /// The jobs that had to be killed, because the stop time was over or a second signal came.
    pub killed: Vec<(Time, String)>,
    /// Why it was given up.
    pub abort: Option<Abort>,
    /// How often the core was called.
    pub steps: u64,
}
