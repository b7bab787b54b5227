//! The loop's end of queries and control requests: replies to them, and streams events.
//!
//! Events are broadcast through a bounded ring that the loop never waits for: a slow client sees a gap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::plan::Plan;
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::state::journal::Event;
use containerpilot_core::{Core, Input, Time};
use tokio::sync::{broadcast, oneshot};

use crate::messages::query::{
    ControlRequest, EventRecord, EventStream, Explained, JobAction, JobLookupError, Query, Snapshot,
    WallClock, unknown_job_hint,
};

/// How many events are kept for slow clients.
const EVENT_RING: usize = 4096;

/// Replies to queries.
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

#[cfg(test)]
mod tests;
