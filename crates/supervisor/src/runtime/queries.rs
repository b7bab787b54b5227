//! The loop's end of queries and control requests: replies to them, and streams events.
//!
//! Events are broadcast through a bounded ring that the loop never waits for: a slow client sees a gap.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use containerpilot_api::SubjectKind;
use containerpilot_api::job_names::{self, NamedJob, unknown_name_hint};
use containerpilot_core::SortedMap;
use containerpilot_core::ids::{EventId, FileIx, JobIx, LockIx, WatchIx};
use containerpilot_core::plan::{Command, Plan, Target};
use containerpilot_core::report::graph::{Graph, Scope};
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::state::journal::{Event, Start};
use containerpilot_core::{Core, Input, Time};
use containerpilot_core::{inserted, sort_by};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_process::spawn::{Execution, Spawner};
use tokio::sync::{broadcast, oneshot};

use crate::discovery::Discovery;
use crate::messages::query::{
    ControlRequest, EventRecord, EventStream, ExecutionError, Explained, ExplainedJob, ExplainedSubject,
    JobAction, JournalRecord, LookupError, LoopQuery, PublicSnapshot, Snapshot, StartRecord, Subject,
    WallClock,
};

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
                let redacted = core.redacted(shown);
                let renamed = if shown.commands { Vec::new() } else { core.command_names() };
                drop(reply.send(PublicSnapshot {
                    snapshot: Snapshot::new(
                        &redacted,
                        self.clock,
                        catalog.report(core.plan()),
                        self.processes.clone(),
                    ),
                    graph: Graph::of(redacted.plan(), Scope::Running),
                    renamed: inserted(renamed),
                }));
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
        let snapshot = || Arc::new(Snapshot::new(core, clock, catalog.report(core.plan()), processes));
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

/// Events and starts in the order in which they happened.
fn records<'a>(
    core: &Core,
    clock: WallClock,
    events: impl Iterator<Item = &'a Event>,
    starts: impl Iterator<Item = &'a Start>,
) -> Vec<Arc<JournalRecord>> {
    let events = events.map(|event| {
        let Event { id, cause, at, origin, code, detail } = *event;
        let (time, source) = (clock.at(at), core.origin_name(origin));
        (id, JournalRecord::Event(EventRecord { id, time, source, code, cause, detail }))
    });
    let starts = starts.map(|start| {
        let Start { run, after, at, origin, pid, trigger, tick, cron, restarts } = *start;
        let (time, source) = (clock.at(at), core.origin_name(origin));
        (
            after,
            JournalRecord::Start(StartRecord {
                run,
                after,
                time,
                source,
                pid,
                trigger,
                tick,
                cron,
                restarts,
            }),
        )
    });
    let mut records: Vec<(EventId, JournalRecord)> = events.chain(starts).collect();
    // A stable sort: an event comes before the starts after it.
    sort_by(&mut records, |(place, _), (other, _)| place.cmp(other));
    records.into_iter().map(|(_, record)| Arc::new(record)).collect()
}

/// X12: what a process of this job would get now.
pub(crate) fn execution(core: &Core, spawner: &mut Spawner, name: &str) -> Result<Execution, ExecutionError> {
    let job = find_job(core.plan(), name)?;
    let planned = core.plan().jobs.get(job.index()).ok_or(LookupError::NoAnswer)?;
    spawner.execution(&planned.process, &core.environment(job)).map_err(ExecutionError::Setup)
}

/// Why something is in its current state, without the texts that are not disclosed.
fn explain(
    core: &Core,
    catalog: &Discovery,
    subject: &Subject,
    shown: Option<Disclosure>,
) -> Result<ExplainedSubject, LookupError> {
    let viewed = shown.map_or(Cow::Borrowed(core), |shown| Cow::Owned(core.redacted(shown)));
    let name = &subject.name;
    Ok(match subject.kind {
        SubjectKind::Watch => {
            let names: Vec<&str> = viewed.plan().watches.iter().map(|watch| watch.name.as_str()).collect();
            let watch = WatchIx::at(find(subject.kind, name, &names)?);
            let explained = viewed.explain_watch(watch, catalog.watch_trouble(name).as_ref());
            ExplainedSubject::Watch(explained.ok_or(LookupError::NoAnswer)?)
        }
        SubjectKind::Lock => {
            let names: Vec<&str> = viewed.plan().locks.iter().map(|lock| lock.name.as_str()).collect();
            let lock = LockIx::at(find(subject.kind, name, &names)?);
            let explained = viewed.explain_lock(lock, catalog.lock_trouble(name).as_ref());
            ExplainedSubject::Lock(explained.ok_or(LookupError::NoAnswer)?)
        }
        SubjectKind::File => {
            let names: Vec<&str> = viewed.plan().files.iter().map(|file| file.name.as_str()).collect();
            let file = FileIx::at(find(subject.kind, name, &names)?);
            ExplainedSubject::File(viewed.explain_file(file).ok_or(LookupError::NoAnswer)?)
        }
        SubjectKind::Job => {
            let job = find_job(viewed.plan(), name)?;
            // Not of the copy: a name may be another one there.
            let planned = core.plan().jobs.get(job.index()).ok_or(LookupError::NoAnswer)?;
            let service = planned.service.as_ref().map(|service| catalog.known(service));
            let mut explanation = viewed.explain(job, service.as_ref());
            explanation.add_troubles(|watch| catalog.watch_trouble(watch));
            let command = planned.exec.program().filter(|_| shown.is_none_or(|shown| shown.commands));
            ExplainedSubject::Job(Box::new(ExplainedJob {
                explanation,
                service,
                names: viewed.plan().jobs.iter().map(|job| job.name.clone()).collect(),
                logged_as: planned.name.clone(),
                command: command.map(Command::line),
            }))
        }
    })
}

/// The place of a watch, lock or file with this name.
fn find(kind: SubjectKind, name: &str, known: &[&str]) -> Result<usize, LookupError> {
    let place = known.iter().position(|other| *other == name);
    place.ok_or_else(|| LookupError::NotFound(unknown_name_hint(kind, name, known)))
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

/// The job with this name, or all jobs of a group or all replicas of a job (W20, W22).
fn find_jobs(plan: &Plan, name: &str) -> Result<Vec<JobIx>, LookupError> {
    match find_job(plan, name) {
        Err(error @ (LookupError::NotFound(_) | LookupError::Replicas(_))) => {
            let target = Target::named(name);
            let included = plan.jobs.iter().enumerate().filter(|(_, job)| target.includes(job));
            let jobs: Vec<JobIx> = included.map(|(nth, _)| JobIx::at(nth)).collect();
            if jobs.is_empty() { Err(error) } else { Ok(jobs) }
        }
        found => found.map(|job| vec![job]),
    }
}

/// The job with this name. One of several jobs with the same name is `NAME:2`.
fn find_job(plan: &Plan, name: &str) -> Result<JobIx, LookupError> {
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    // `service.NAME` is the job that advertises the service.
    let job = match name.strip_prefix("service.") {
        Some(service) if !names.contains(&name) => service,
        _ => name,
    };
    match job_names::find_job(job, &names) {
        NamedJob::At(place) => Ok(JobIx::at(place)),
        NamedJob::Ambiguous(count) => Err(LookupError::Ambiguous(count)),
        NamedJob::Unknown => Err(match plan.jobs.iter().filter(|job| job.is_replica_of(name)).count() {
            0 => LookupError::NotFound(unknown_name_hint(SubjectKind::Job, name, &names)),
            replicas => LookupError::Replicas(replicas),
        }),
    }
}

#[cfg(test)]
mod tests;
