//! Queries and control requests of other threads, and what the loop replies.
//!
//! The loop only copies its state; the client renders names, times and formats.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use containerpilot_api::SubjectKind;
use containerpilot_core::catalog::connectivity::{Known, Trouble};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{EventId, RunId};
use containerpilot_core::inserted;
use containerpilot_core::plan::Signal;
use containerpilot_core::report::explain::Explanation;
use containerpilot_core::report::explain_file::FileExplanation;
use containerpilot_core::report::explain_lock::LockExplanation;
use containerpilot_core::report::explain_watch::WatchExplanation;
use containerpilot_core::report::graph::Graph;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::report::status::{Cause, JobOverview, Overview};
use containerpilot_core::request::{Reply, Request};
use containerpilot_core::state::journal::{Detail, Origin};
use containerpilot_core::{Core, Time};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_process::spawn::{Execution, SetupError};
use tokio::sync::{broadcast, oneshot};

use super::reload::ReloadRequest;

/// How far the system clock may differ from the supervisor's before it is adopted.
const MAX_DRIFT: Duration = Duration::from_secs(1);

/// A query, with the channel for its reply.
#[derive(Debug)]
pub(crate) enum LoopQuery {
    /// The state of everything.
    Overview(oneshot::Sender<Arc<Snapshot>>),
    /// Why something is in its current state. A disclosure is for viewers that must not see all texts (T5); not even
    /// a full one discloses why a file was not rendered.
    Explain(Subject, Option<Disclosure>, oneshot::Sender<Result<Explained, LookupError>>),
    /// What a process of a job would get now (X12).
    Execution(String, oneshot::Sender<Result<Execution, ExecutionError>>),
    /// The name of a job, for data that is kept by name: several jobs with one name are not an error.
    Name(String, oneshot::Sender<Result<String, LookupError>>),
    /// The state of everything, for viewers that must not see all texts (T5).
    PublicOverview(Disclosure, oneshot::Sender<PublicSnapshot>),
    /// The events in the journal, and new ones.
    Events(oneshot::Sender<EventStream>),
    /// The recording so far (B3); `None` if nothing is recorded.
    Recording(oneshot::Sender<Option<Vec<u8>>>),
    ControlRequest(ControlRequest, oneshot::Sender<Result<Reply, LookupError>>),
    Reload(ReloadRequest),
}

/// The subject of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) kind: SubjectKind,
    pub(crate) name: String,
}

/// The state of everything, without the texts that are not disclosed.
#[derive(Debug)]
pub(crate) struct PublicSnapshot {
    pub(crate) snapshot: Snapshot,
    pub(crate) graph: Graph,
    /// The jobs whose names contain a command line, and their names in this snapshot. Events have the former.
    pub(crate) renamed: BTreeMap<String, String>,
}

/// A change that a client requests.
#[derive(Debug)]
pub(crate) enum ControlRequest {
    Job(String, JobAction),
    Supervisor(Request),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobAction {
    Start,
    Stop,
    Restart,
    /// One at a time, each healthy before the next (W20).
    RollingRestart,
    Signal(Signal),
}

/// Why a name does not identify one job, watch, lock or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LookupError {
    /// Nothing has this name; with a hint which name may be meant.
    NotFound(String),
    /// This many jobs have the name.
    Ambiguous(usize),
    /// It is the name of a job with this many replicas (W20), and not of one of them.
    Replicas(usize),
    /// The loop did not answer: the supervisor is exiting, or answering has failed.
    NoAnswer,
}

/// Why there is nothing to run a command with.
#[derive(Debug)]
pub(crate) enum ExecutionError {
    Job(LookupError),
    /// Its user does not exist any more, for example.
    Setup(SetupError),
}

impl From<LookupError> for ExecutionError {
    fn from(error: LookupError) -> Self {
        Self::Job(error)
    }
}

/// The state of everything at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) overview: Overview,
    /// The names of removed jobs and watches that events still refer to, by index.
    pub(crate) removed: BTreeMap<u32, String>,
    pub(crate) catalog: CatalogReport,
    /// Where the processes of its runs are.
    pub(crate) processes: RunProcesses,
    pub(crate) clock: WallClock,
}

/// What started the current or last run of a job, in one word for clients.
pub(crate) fn started_by(job: &JobOverview) -> Option<&'static str> {
    job.cause.map(|cause| match cause {
        Cause::Event(_) => "event",
        Cause::ByHand => "hand",
        Cause::Tick(_) if job.cron.is_some() => "cron",
        Cause::Action(_) => "action",
        Cause::Tick(_) => "interval",
    })
}

/// What is known about the catalog (D11).
#[derive(Debug, Default)]
pub(crate) struct CatalogReport {
    /// `None` for the embedded catalog.
    pub(crate) consul: Option<ConsulReport>,
    /// The service of each job, by its index; `None` for a job without a service.
    pub(crate) services: Vec<Option<Known>>,
}

impl CatalogReport {
    pub(crate) fn kind(&self) -> &'static str {
        if self.consul.is_some() { "consul" } else { "embedded" }
    }

    /// The embedded catalog is always up.
    pub(crate) fn is_up(&self) -> Option<bool> {
        self.consul.as_ref().map_or(Some(true), |consul| consul.up)
    }

    pub(crate) fn trouble(&self) -> Option<&Trouble> {
        self.consul.as_ref()?.trouble.as_ref()
    }
}

/// What is known about Consul.
#[derive(Debug)]
pub(crate) struct ConsulReport {
    /// True if the last request of each service and watch was answered and accepted; `None` before the first result.
    pub(crate) up: Option<bool>,
    pub(crate) trouble: Option<Trouble>,
}

impl Snapshot {
    pub(crate) fn new(
        core: &Core,
        clock: WallClock,
        catalog: CatalogReport,
        processes: RunProcesses,
    ) -> Self {
        let overview = core.overview();
        let causes =
            overview.jobs.iter().filter_map(|job| job.cause.as_ref()?.event().map(|event| event.origin));
        let removed = causes.filter_map(|origin| match origin {
            Origin::Removed(place) => Some((place, core.origin_name(origin))),
            Origin::Global
            | Origin::Job(_)
            | Origin::Watch(_)
            | Origin::File(_)
            | Origin::Signal(_)
            | Origin::Lock(_) => None,
        });
        Self { removed: inserted(removed), overview, catalog, processes, clock }
    }
}

/// Why something is in its current state.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) subject: ExplainedSubject,
    pub(crate) now: Time,
    pub(crate) clock: WallClock,
}

#[derive(Debug)]
pub(crate) enum ExplainedSubject {
    Job(Box<ExplainedJob>),
    Watch(WatchExplanation),
    Lock(LockExplanation),
    File(FileExplanation),
}

/// Why a job is in its current state.
#[derive(Debug)]
pub(crate) struct ExplainedJob {
    pub(crate) explanation: Explanation,
    /// What is known about its service.
    pub(crate) service: Option<Known>,
    /// The names of all jobs, to which the explanation refers by index.
    pub(crate) names: Vec<String>,
    /// The name under which the log keeps its lines. The explanation has another one if that is not disclosed.
    pub(crate) logged_as: String,
    /// Its command line, if that is disclosed.
    pub(crate) command: Option<String>,
}

/// The events and starts of the journal, and new ones as they happen.
#[derive(Debug)]
pub(crate) struct EventStream {
    pub(crate) past: Vec<Arc<JournalRecord>>,
    pub(crate) live: broadcast::Receiver<Arc<JournalRecord>>,
}

/// A record of the journal for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalRecord {
    Event(EventRecord),
    Start(StartRecord),
}

/// The start of a run for clients (X10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartRecord {
    pub(crate) run: RunId,
    /// The last event before it.
    pub(crate) after: EventId,
    pub(crate) time: SystemTime,
    pub(crate) source: String,
    pub(crate) pid: i32,
    /// The event that started the run; `None` if it was started by hand or by a tick.
    pub(crate) trigger: Option<EventId>,
    pub(crate) tick: bool,
    pub(crate) cron: bool,
    pub(crate) restarts: u64,
}

/// An event for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventRecord {
    pub(crate) id: EventId,
    pub(crate) time: SystemTime,
    pub(crate) source: String,
    pub(crate) code: Code,
    pub(crate) cause: Option<EventId>,
    pub(crate) detail: Detail,
}

/// Converts the core's time to wall-clock time: the wall-clock time of the core's origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock(pub(crate) SystemTime);

impl WallClock {
    pub(crate) fn at(self, moment: Time) -> SystemTime {
        self.0 + Duration::from_nanos(moment.as_nanos())
    }

    /// Adopts the system clock if it was set. Otherwise a moment keeps its wall-clock time.
    pub(crate) fn follow(&mut self, now: Time, clock: SystemTime) {
        let shown = self.at(now);
        let drift = clock.duration_since(shown).unwrap_or_else(|early| early.duration());
        if drift > MAX_DRIFT {
            self.0 = clock.checked_sub(Duration::from_nanos(now.as_nanos())).unwrap_or(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_event_keeps_its_time_unless_the_system_clock_was_set() {
        let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let mut clock = WallClock(origin);
        let (event, now) = (Time::from_nanos(7), Time::from_nanos(3_000_000_000));
        clock.follow(now, origin + Duration::from_millis(3_200));
        assert_eq!(clock.at(event), origin + Duration::from_nanos(7));
        clock.follow(now, origin + Duration::from_secs(3_600));
        assert_eq!(clock.at(now), origin + Duration::from_secs(3_600));
    }
}
