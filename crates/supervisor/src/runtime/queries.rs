//! The loop's end of queries and control requests: replies to them, and streams events.
//!
//! Events are broadcast through a bounded ring that the loop never waits for: a slow client sees a gap.

use std::sync::Arc;
use std::time::SystemTime;

use containerpilot_core::ids::{EventId, JobIx};
use containerpilot_core::plan::Plan;
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::state::journal::{Event, Start};
use containerpilot_core::{Core, Input, SortedMap, Time};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_process::spawn::{Execution, Spawner};
use containerpilot_views::catalog::CatalogReport;
use containerpilot_views::clock::WallClock;
use containerpilot_views::explanation::{Explained, explain};
use containerpilot_views::journal::{JournalRecord, records};
use containerpilot_views::lookup::{LookupError, find_job, find_jobs};
use containerpilot_views::snapshot::{PublicSnapshot, Snapshot};
use tokio::sync::{broadcast, oneshot};

use crate::discovery::Discovery;
use crate::messages::query::{ControlRequest, EventStream, ExecutionError, JobAction, LoopQuery};

/// How many events are kept for slow clients.
const EVENT_RING: usize = 4096;

/// Replies to queries.
#[derive(Debug)]
pub(crate) struct QueryHandler {
    clock: WallClock,
    next: u64,
    waiting: SortedMap<RequestId, oneshot::Sender<Result<Reply, LookupError>>>,
    /// The last snapshot, until the state changes.
    snapshot: Option<Arc<Snapshot>>,
    /// Where the processes of runs are.
    processes: RunProcesses,
    subscribers: Option<broadcast::Sender<Arc<JournalRecord>>>,
    /// The last event that was sent to the subscribers.
    last_sent: Option<EventId>,
    /// How many starts the journal had recorded then.
    starts_sent: u64,
}

impl QueryHandler {
    /// `now` is the wall-clock time of the core's origin.
    pub(crate) fn new(now: SystemTime) -> Self {
        Self {
            clock: WallClock(now),
            next: 0,
            waiting: SortedMap::new(),
            snapshot: None,
            processes: RunProcesses::default(),
            subscribers: None,
            last_sent: None,
            starts_sent: 0,
        }
    }

    /// Where the processes of runs are now.
    pub(crate) fn set_processes(&mut self, processes: RunProcesses) {
        if self.processes != processes {
            self.processes = processes;
            self.snapshot = None;
        }
    }

    /// Replies to a query, or returns the input for the core that replies to it.
    ///
    /// The core must have made a step just now: its replies describe its last step.
    pub(crate) fn handle(
        &mut self,
        core: &Core,
        catalog: &Discovery,
        now: Time,
        query: LoopQuery,
    ) -> Option<Input> {
        self.clock.follow(now, SystemTime::now());
        // Sending fails if the client has gone.
        match query {
            LoopQuery::Overview(reply) => drop(reply.send(self.overview(core, catalog))),
            LoopQuery::Explain(subject, shown, reply) => {
                let subject = explain(core, catalog, &subject, shown);
                let explained = |subject| Explained { subject, now, clock: self.clock };
                drop(reply.send(subject.map(explained)));
            }
            LoopQuery::PublicOverview(shown, reply) => {
                let (catalog, processes) = (CatalogReport::new(catalog, core.plan()), self.processes.clone());
                drop(reply.send(PublicSnapshot::new(core, shown, self.clock, catalog, processes)));
            }
            LoopQuery::Name(name, reply) => {
                let found = match find_job(core.plan(), &name) {
                    Ok(job) => Ok(core.plan().jobs.get(job.index()).map_or(name, |job| job.name.clone())),
                    Err(LookupError::Ambiguous(_)) => Ok(name),
                    Err(error) => Err(error),
                };
                drop(reply.send(found));
            }
            LoopQuery::Events(reply) => drop(reply.send(self.subscribe(core))),
            // The loop handles them itself.
            LoopQuery::Reload(_) | LoopQuery::Execution(..) | LoopQuery::Recording(_) => {}
            LoopQuery::ControlRequest(request, reply) => match command(core.plan(), request) {
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
        let journal = core.journal();
        let newer = |event: &&Event| self.last_sent.is_none_or(|last| event.id > last);
        let events: Vec<&Event> = journal.events().rev().take_while(newer).collect();
        let starts =
            usize::try_from(journal.start_count().saturating_sub(self.starts_sent)).unwrap_or(usize::MAX);
        let starts: Vec<&Start> = journal.starts().rev().take(starts).collect();
        self.last_sent = events.first().map(|event| event.id).or(self.last_sent);
        self.starts_sent = journal.start_count();
        for record in records(core, self.clock, events.into_iter().rev(), starts.into_iter().rev()) {
            // It fails if the last subscriber has just gone.
            let _ = subscribers.send(record);
        }
    }

    pub(crate) fn overview(&mut self, core: &Core, catalog: &Discovery) -> Arc<Snapshot> {
        let (clock, processes) = (self.clock, self.processes.clone());
        let catalog = || CatalogReport::new(catalog, core.plan());
        let snapshot = || Arc::new(Snapshot::new(core, clock, catalog(), processes));
        Arc::clone(self.snapshot.get_or_insert_with(snapshot))
    }

    fn subscribe(&mut self, core: &Core) -> EventStream {
        let journal = core.journal();
        let past = records(core, self.clock, journal.events(), journal.starts());
        let live = match &self.subscribers {
            // The past events were sent to the other subscribers already, so both continue at the same event.
            Some(subscribers) => subscribers.subscribe(),
            None => {
                let (subscribers, live) = broadcast::channel(EVENT_RING);
                self.last_sent = journal.events().next_back().map(|event| event.id);
                self.starts_sent = journal.start_count();
                self.subscribers = Some(subscribers);
                live
            }
        };
        EventStream { past, live }
    }
}

/// X12: what a process of this job would get now.
pub(crate) fn execution(core: &Core, spawner: &mut Spawner, name: &str) -> Result<Execution, ExecutionError> {
    let job = find_job(core.plan(), name)?;
    let planned = core.plan().jobs.get(job.index()).ok_or(LookupError::NoAnswer)?;
    spawner.execution(&planned.process, &core.environment(job)).map_err(ExecutionError::Setup)
}

fn command(plan: &Plan, request: ControlRequest) -> Result<Request, LookupError> {
    let (name, action) = match request {
        ControlRequest::Supervisor(command) => return Ok(command),
        ControlRequest::Job(name, action) => (name, action),
    };
    let jobs = find_jobs(plan, &name)?;
    let request = |job: &JobIx| match action {
        JobAction::Start => Request::Start(*job),
        JobAction::Stop => Request::Stop(*job),
        JobAction::Restart => Request::Restart(*job),
        JobAction::RollingRestart => Request::RollingRestart(jobs.clone()),
        JobAction::Signal(signal) => Request::Signal(*job, signal),
    };
    Ok(match jobs.as_slice() {
        _ if action == JobAction::RollingRestart => Request::RollingRestart(jobs),
        [job] => request(job),
        several => Request::Several(several.iter().map(request).collect()),
    })
}

#[cfg(test)]
mod tests;
