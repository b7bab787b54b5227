//! Queries and control requests of other threads, and what the loop replies.
//!
//! The loop only copies what it knows; the client renders names, times and formats.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use containerpilot_config::suggest;
use containerpilot_core::event::Code;
use containerpilot_core::ids::EventId;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::Signal;
use containerpilot_core::report::explain::Explanation;
use containerpilot_core::report::status::Overview;
use containerpilot_core::request::{Reply, Request};
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, Time};
use tokio::sync::{broadcast, oneshot};

use super::reload::ReloadRequest;

/// How far the system clock may differ from the supervisor's before it is adopted.
const MAX_DRIFT: Duration = Duration::from_secs(1);

/// A query, with the channel for its reply.
#[derive(Debug)]
pub(crate) enum Query {
    /// The state of everything.
    Overview(oneshot::Sender<Arc<Snapshot>>),
    /// Why a job is in its current state.
    Explain(String, oneshot::Sender<Result<Explained, JobLookupError>>),
    /// The name of a job, for data that is kept by name: several jobs with one name are not an error.
    Name(String, oneshot::Sender<Result<String, JobLookupError>>),
    /// The events in the journal, and new ones.
    Events(oneshot::Sender<EventStream>),
    ControlRequest(ControlRequest, oneshot::Sender<Result<Reply, JobLookupError>>),
    Reload(ReloadRequest),
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
    Signal(Signal),
}

/// Why a name does not identify a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobLookupError {
    /// There is no such job; with a hint which name may be meant.
    NotFound(String),
    /// This many jobs have the name.
    Ambiguous(usize),
    /// The loop did not answer: the supervisor is exiting, or answering has failed.
    NoAnswer,
}

/// The state of everything at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) overview: Overview,
    /// The names of removed jobs and watches that events still refer to, by index.
    pub(crate) removed: BTreeMap<u32, String>,
    pub(crate) clock: WallClock,
}

impl Snapshot {
    pub(crate) fn new(core: &Core, clock: WallClock) -> Self {
        let overview = core.overview();
        let causes = overview.jobs.iter().filter_map(|job| job.cause.map(|cause| cause.origin));
        let removed = causes.filter_map(|origin| match origin {
            Origin::Removed(place) => Some((place, core.origin_name(origin))),
            Origin::Global | Origin::Job(_) | Origin::Watch(_) | Origin::Signal(_) => None,
        });
        Self { removed: removed.collect(), overview, clock }
    }
}

/// Why a job is in its current state.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    /// The names of all jobs, to which the explanation refers by index.
    pub(crate) names: Vec<String>,
    pub(crate) now: Time,
    pub(crate) clock: WallClock,
}

/// The events of the journal, and new ones as they happen.
#[derive(Debug)]
pub(crate) struct EventStream {
    pub(crate) past: Vec<Arc<EventRecord>>,
    pub(crate) live: broadcast::Receiver<Arc<EventRecord>>,
}

/// An event for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventRecord {
    pub(crate) id: EventId,
    pub(crate) time: SystemTime,
    pub(crate) source: String,
    pub(crate) code: Code,
    pub(crate) cause: Option<EventId>,
    pub(crate) exit: Option<ExitStatus>,
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

/// Which job may be meant by a name that no job has: the nearest name, or all of them.
pub(crate) fn unknown_job_hint<'a>(name: &str, jobs: impl Iterator<Item = &'a str> + Clone) -> String {
    let names: Vec<&str> = jobs.clone().collect();
    match suggest::nearest(name, jobs) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.len() > 20 => "`containerpilot status` lists all jobs".to_owned(),
        None => format!("the jobs are: {}", names.join(", ")),
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
