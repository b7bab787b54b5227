//! Queries and control requests from other threads, and the event stream.
//!
//! A [`QueryHandle`] sends a query to the loop; the reply is sent through its own channel. The loop only copies what it
//! knows; the client renders names, times and formats. Events are broadcast through a bounded ring that the loop never
//! waits for: a slow client sees a gap.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use containerpilot_config::suggest;
use containerpilot_core::event::Code;
use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{Job, Level, Plan, Repeat, Signal};
use containerpilot_core::report::explain::Explanation;
use containerpilot_core::report::status::{JobOverview, Overview};
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::{Core, Input, Time};
use tokio::sync::{broadcast, oneshot};

use crate::runtime::channel::{LoopMessage, LoopSender};
use crate::runtime::reload::{ReloadOutcome, ReloadRequest};

/// How many events are kept for slow clients.
const EVENT_RING: usize = 4096;
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
    /// Whether each job of the overview is advertised.
    pub(crate) advertised: Vec<bool>,
    /// Properties of each job of the overview.
    pub(crate) properties: Vec<JobProperties>,
    /// The names of removed jobs and watches that events still refer to, by index.
    pub(crate) removed: BTreeMap<u32, String>,
    pub(crate) clock: WallClock,
}

/// Properties of a job in the plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobProperties {
    /// The advertised address.
    pub(crate) service: Option<(IpAddr, u16)>,
    pub(crate) has_health: bool,
    /// Whether it runs at every event: such a job is not expected to run all the time.
    pub(crate) runs_repeatedly: bool,
}

impl JobProperties {
    fn new(job: &Job) -> Self {
        Self {
            service: job.service.as_ref().map(|service| (service.address, service.port)),
            has_health: job.health.is_some(),
            runs_repeatedly: job.when.repeat() == Repeat::Each,
        }
    }
}

impl Snapshot {
    pub(crate) fn new(core: &Core, clock: WallClock) -> Self {
        let jobs = &core.plan().jobs;
        let overview = core.overview();
        let causes = overview.jobs.iter().filter_map(|job| job.cause.map(|cause| cause.origin));
        let removed = causes.filter_map(|origin| match origin {
            Origin::Removed(place) => Some((place, core.origin_name(origin))),
            Origin::Global | Origin::Job(_) | Origin::Watch(_) | Origin::Signal(_) => None,
        });
        Self {
            removed: removed.collect(),
            overview,
            advertised: jobs.iter().map(|job| job.service.is_some()).collect(),
            properties: jobs.iter().map(JobProperties::new).collect(),
            clock,
        }
    }

    /// Each job with its properties.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (&JobOverview, JobProperties)> {
        let properties =
            self.properties.iter().copied().chain(std::iter::repeat_with(JobProperties::default));
        self.overview.jobs.iter().zip(properties)
    }
}

/// Why a job is in its current state.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    pub(crate) advertised: bool,
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
    fn follow(&mut self, now: Time, clock: SystemTime) {
        let shown = self.at(now);
        let drift = clock.duration_since(shown).unwrap_or_else(|early| early.duration());
        if drift > MAX_DRIFT {
            self.0 = clock.checked_sub(Duration::from_nanos(now.as_nanos())).unwrap_or(self.0);
        }
    }
}

/// The client's end: sends queries to the loop.
#[derive(Clone, Debug)]
pub(crate) struct QueryHandle(LoopSender);

impl QueryHandle {
    pub(crate) fn new(sender: LoopSender) -> Self {
        Self(sender)
    }

    /// The state of everything; `None` if the loop does not answer.
    pub(crate) async fn overview(&self) -> Option<Arc<Snapshot>> {
        self.query(Query::Overview).await
    }

    /// Why a job is in its current state.
    pub(crate) async fn explain(&self, job: String) -> Result<Explained, JobLookupError> {
        self.query(|reply| Query::Explain(job, reply)).await.unwrap_or(Err(JobLookupError::NoAnswer))
    }

    /// See [`Query::Name`].
    pub(crate) async fn name(&self, job: String) -> Result<String, JobLookupError> {
        self.query(|reply| Query::Name(job, reply)).await.unwrap_or(Err(JobLookupError::NoAnswer))
    }

    /// The event stream; `None` if the loop does not answer.
    pub(crate) async fn events(&self) -> Option<EventStream> {
        self.query(Query::Events).await
    }

    /// Requests a change.
    pub(crate) async fn request(&self, request: ControlRequest) -> Result<Reply, JobLookupError> {
        self.query(|reply| Query::ControlRequest(request, reply))
            .await
            .unwrap_or(Err(JobLookupError::NoAnswer))
    }

    /// Reloads the configuration, or reports what that would do; `None` if the loop does not answer.
    pub(crate) async fn reload(&self, dry_run: bool) -> Option<ReloadOutcome> {
        self.query(|reply| Query::Reload(ReloadRequest { dry_run, reply: Some(reply) })).await
    }

    /// Writes a log entry.
    pub(crate) fn log(&self, level: Level, message: String) {
        self.0.send(LoopMessage::Log(level, message));
    }

    async fn query<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> Query) -> Option<T> {
        let (sender, reply) = oneshot::channel();
        self.0.send(LoopMessage::Query(query(sender)));
        reply.await.ok()
    }
}

/// The loop's end: replies to queries.
#[derive(Debug)]
pub(crate) struct QueryHandler {
    clock: WallClock,
    next: u64,
    waiting: BTreeMap<RequestId, oneshot::Sender<Result<Reply, JobLookupError>>>,
    /// The last snapshot, until the state changes.
    snapshot: Option<Arc<Snapshot>>,
    subscribers: Option<broadcast::Sender<Arc<EventRecord>>>,
    /// The last event that was sent to the subscribers.
    last_sent: Option<EventId>,
}

impl QueryHandler {
    /// `now` is the wall-clock time of the core's origin.
    pub(crate) fn new(now: SystemTime) -> Self {
        Self {
            clock: WallClock(now),
            next: 0,
            waiting: BTreeMap::new(),
            snapshot: None,
            subscribers: None,
            last_sent: None,
        }
    }

    /// Replies to a query, or returns the input for the core that replies to it.
    ///
    /// The core must have made a step just now: its replies describe its last step.
    pub(crate) fn handle(&mut self, core: &Core, now: Time, query: Query) -> Option<Input> {
        self.clock.follow(now, SystemTime::now());
        // Sending fails if the client has gone.
        match query {
            Query::Overview(reply) => drop(reply.send(self.overview(core))),
            Query::Explain(name, reply) => {
                let explained = find_job(core.plan(), &name).map(|job| self.explain(core, now, job));
                drop(reply.send(explained));
            }
            Query::Name(name, reply) => {
                let found = match find_job(core.plan(), &name) {
                    Ok(job) => Ok(core.plan().jobs.get(job.index()).map_or(name, |job| job.name.clone())),
                    Err(JobLookupError::Ambiguous(_)) => Ok(name),
                    Err(error) => Err(error),
                };
                drop(reply.send(found));
            }
            Query::Events(reply) => drop(reply.send(self.subscribe(core))),
            // The loop handles reloads itself.
            Query::Reload(_) => {}
            Query::ControlRequest(request, reply) => match command(core.plan(), request) {
                Ok(command) => {
                    let id = self.next_id();
                    self.waiting.insert(id, reply);
                    return Some(Input::Request { id, request: command });
                }
                Err(error) => drop(reply.send(Err(error))),
            },
        }
        None
    }

    /// An id for a request to the core.
    pub(crate) fn next_id(&mut self) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        id
    }

    /// Passes a reply of the core to the client.
    pub(crate) fn reply(&mut self, id: RequestId, reply: Reply) {
        if let Some(waiting) = self.waiting.remove(&id) {
            drop(waiting.send(Ok(reply)));
        }
    }

    /// Discards the snapshot and sends new events to the subscribers.
    pub(crate) fn state_changed(&mut self, core: &Core) {
        self.snapshot = None;
        let Some(subscribers) = &self.subscribers else { return };
        if subscribers.receiver_count() == 0 {
            self.subscribers = None;
            return;
        }
        let newer = |event: &&Event| self.last_sent.is_none_or(|last| event.id > last);
        let fresh: Vec<&Event> = core.journal().events().rev().take_while(newer).collect();
        for event in fresh.into_iter().rev() {
            self.last_sent = Some(event.id);
            // It fails if the last subscriber has just gone.
            let _ = subscribers.send(Arc::new(record(core, self.clock, event)));
        }
    }

    fn overview(&mut self, core: &Core) -> Arc<Snapshot> {
        let clock = self.clock;
        Arc::clone(self.snapshot.get_or_insert_with(|| Arc::new(Snapshot::new(core, clock))))
    }

    fn explain(&self, core: &Core, now: Time, job: JobIx) -> Explained {
        let jobs = &core.plan().jobs;
        Explained {
            explanation: core.explain(job),
            advertised: jobs.get(job.index()).is_some_and(|job| job.service.is_some()),
            names: jobs.iter().map(|job| job.name.clone()).collect(),
            now,
            clock: self.clock,
        }
    }

    fn subscribe(&mut self, core: &Core) -> EventStream {
        let past: Vec<Arc<EventRecord>> =
            core.journal().events().map(|event| Arc::new(record(core, self.clock, event))).collect();
        let live = match &self.subscribers {
            // The past events were sent to the other subscribers already, so both continue at the same event.
            Some(subscribers) => subscribers.subscribe(),
            None => {
                let (subscribers, live) = broadcast::channel(EVENT_RING);
                self.last_sent = past.last().map(|event| event.id);
                self.subscribers = Some(subscribers);
                live
            }
        };
        EventStream { past, live }
    }
}

fn record(core: &Core, clock: WallClock, event: &Event) -> EventRecord {
    EventRecord {
        id: event.id,
        time: clock.at(event.at),
        source: core.origin_name(event.origin),
        code: event.code,
        cause: event.cause,
        exit: event.exit,
    }
}

fn command(plan: &Plan, request: ControlRequest) -> Result<Request, JobLookupError> {
    let (name, action) = match request {
        ControlRequest::Supervisor(command) => return Ok(command),
        ControlRequest::Job(name, action) => (name, action),
    };
    let job = find_job(plan, &name)?;
    Ok(match action {
        JobAction::Start => Request::Start(job),
        JobAction::Stop => Request::Stop(job),
        JobAction::Restart => Request::Restart(job),
        JobAction::Signal(signal) => Request::Signal(job, signal),
    })
}

/// The job with this name. One of several jobs with the same name is `NAME:2`.
fn find_job(plan: &Plan, name: &str) -> Result<JobIx, JobLookupError> {
    let named = |name: &str| {
        let name = name.to_owned();
        plan.jobs.iter().enumerate().filter(move |(_, job)| job.name == name).map(|(nth, _)| JobIx::at(nth))
    };
    let not_found =
        || JobLookupError::NotFound(unknown_job_hint(name, plan.jobs.iter().map(|job| job.name.as_str())));
    match named(name).count() {
        1 => named(name).next().ok_or_else(not_found),
        0 => {
            let numbered = name
                .rsplit_once(':')
                .and_then(|(name, number)| named(name).nth(number.parse::<usize>().ok()?.checked_sub(1)?));
            numbered.ok_or_else(not_found)
        }
        count => Err(JobLookupError::Ambiguous(count)),
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
mod tests;
