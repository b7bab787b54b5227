//! What other threads ask of the loop, and how it answers.
//!
//! The [`QueryHandle`] is the askers' end: a question goes through the receiver, the answer comes back through a channel of its
//! own. The loop does no more for an answer than to copy what it knows; names, times and forms are the asker's work.
//! Events are told as they happen to whoever listens, through a ring that the loop never waits for: who is too slow
//! finds that something is missing.

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
use std::collections::BTreeMap;
use tokio::sync::{broadcast, oneshot};

use crate::runtime::channel::{LoopMessage, LoopSender};
use crate::runtime::reload::{Asker, Outcome};

/// How many events are kept for those who listen and have not heard them yet.
const RING: usize = 4096;
/// How far the system's clock may go from ours before we follow it.
const DRIFT: Duration = Duration::from_secs(1);

/// Something that is asked, with the way back.
#[derive(Debug)]
pub(crate) enum Query {
    /// Everything that is known.
    Overview(oneshot::Sender<Arc<Snapshot>>),
    /// Why a job runs, or does not.
    Explain(String, oneshot::Sender<Result<Explained, Unclear>>),
    /// Whether there is a job of that name, for what is kept by name; of several, any will do.
    Name(String, oneshot::Sender<Result<String, Unclear>>),
    /// The events that are remembered, and those that come.
    Events(oneshot::Sender<Listening>),
    /// Something is to be done.
    ControlRequest(ControlRequest, oneshot::Sender<Result<Reply, Unclear>>),
    /// The configuration is to be read anew.
    Reload(Asker),
}

/// Something that is to be done.
#[derive(Debug)]
pub(crate) enum ControlRequest {
    /// To a job.
    Job(String, JobAction),
    /// To the whole.
    Whole(Request),
}

/// Something that can be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobAction {
    Start,
    Stop,
    Restart,
    Signal(Signal),
}

/// Why a name does not say which job is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// There is none of that name; this one is near.
    Nobody(Option<String>),
    /// There are so many of that name.
    Several(usize),
    /// The supervisor is leaving, and answers nothing any more.
    Leaving,
}

/// Everything that is known at a moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) overview: Overview,
    /// Which jobs are advertised, in the order of the overview.
    pub(crate) advertised: Vec<bool>,
    /// What the plan says of each job, in the same order.
    pub(crate) planned: Vec<Planned>,
    /// The names of those events' sources that are no more, by their places.
    pub(crate) former: BTreeMap<u32, String>,
    pub(crate) wall: Wall,
}

/// What is to be known of a job besides what it is doing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planned {
    /// Where it is advertised.
    pub(crate) service: Option<(IpAddr, u16)>,
    /// Whether it has checks.
    pub(crate) has_health: bool,
    /// Whether it runs now and then, so that it is in order when it does not.
    pub(crate) now_and_then: bool,
}

impl Planned {
    fn new(job: &Job) -> Self {
        Self {
            service: job.service.as_ref().map(|service| (service.address, service.port)),
            has_health: job.health.is_some(),
            now_and_then: job.when.repeat() == Repeat::Each,
        }
    }
}

impl Snapshot {
    /// Everything that a core knows.
    pub(crate) fn new(core: &Core, wall: Wall) -> Self {
        let jobs = &core.plan().jobs;
        let overview = core.overview();
        let causes = overview.jobs.iter().filter_map(|job| job.cause.map(|cause| cause.origin));
        let former = causes.filter_map(|origin| match origin {
            Origin::Removed(place) => Some((place, core.origin_name(origin))),
            Origin::Global | Origin::Job(_) | Origin::Watch(_) | Origin::Signal(_) => None,
        });
        Self {
            former: former.collect(),
            overview,
            advertised: jobs.iter().map(|job| job.service.is_some()).collect(),
            planned: jobs.iter().map(Planned::new).collect(),
            wall,
        }
    }

    /// Each job, with what the plan says of it.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (&JobOverview, Planned)> {
        let planned = self.planned.iter().copied().chain(std::iter::repeat_with(Planned::default));
        self.overview.jobs.iter().zip(planned)
    }
}

/// Why a job runs, or does not, at a moment.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    pub(crate) advertised: bool,
    /// The names of all jobs, to which the explanation refers by their places.
    pub(crate) names: Vec<String>,
    pub(crate) now: Time,
    pub(crate) wall: Wall,
}

/// What was when somebody began to listen, and what comes.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) remembered: Vec<Arc<Told>>,
    pub(crate) coming: broadcast::Receiver<Arc<Told>>,
}

/// An event, as it is told to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) id: EventId,
    pub(crate) time: SystemTime,
    pub(crate) source: String,
    pub(crate) code: Code,
    pub(crate) cause: Option<EventId>,
    pub(crate) exit: Option<ExitStatus>,
}

/// The time on the wall at the beginning of the core's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wall(pub(crate) SystemTime);

impl Wall {
    /// The time on the wall at a moment of the core's.
    pub(crate) fn at(self, moment: Time) -> SystemTime {
        self.0 + Duration::from_nanos(moment.as_nanos())
    }

    /// The same moment has the same time every time it is asked for, unless somebody has set the clock.
    fn follow(&mut self, now: Time, clock: SystemTime) {
        let shown = self.at(now);
        let drift = clock.duration_since(shown).unwrap_or_else(|early| early.duration());
        if drift > DRIFT {
            self.0 = clock.checked_sub(Duration::from_nanos(now.as_nanos())).unwrap_or(self.0);
        }
    }
}

/// An asker's end.
#[derive(Clone, Debug)]
pub(crate) struct QueryHandle(LoopSender);

impl QueryHandle {
    pub(crate) fn new(sender: LoopSender) -> Self {
        Self(sender)
    }

    /// Everything that is known; nothing if the supervisor is leaving.
    pub(crate) async fn overview(&self) -> Option<Arc<Snapshot>> {
        self.ask(Query::Overview).await
    }

    /// Why a job runs, or does not.
    pub(crate) async fn explain(&self, job: String) -> Result<Explained, Unclear> {
        self.ask(|answer| Query::Explain(job, answer)).await.unwrap_or(Err(Unclear::Leaving))
    }

    /// The name that the jobs of a name have.
    pub(crate) async fn name(&self, job: String) -> Result<String, Unclear> {
        self.ask(|answer| Query::Name(job, answer)).await.unwrap_or(Err(Unclear::Leaving))
    }

    /// The events that are remembered, and those that come; nothing if the supervisor is leaving.
    pub(crate) async fn events(&self) -> Option<Listening> {
        self.ask(Query::Events).await
    }

    /// Has something done.
    pub(crate) async fn request(&self, request: ControlRequest) -> Result<Reply, Unclear> {
        self.ask(|answer| Query::ControlRequest(request, answer)).await.unwrap_or(Err(Unclear::Leaving))
    }

    /// Has the configuration read anew, or, `dry`, says what that would do; nothing if the supervisor is leaving.
    pub(crate) async fn reload(&self, dry: bool) -> Option<Outcome> {
        self.ask(|answer| Query::Reload(Asker { dry, answer: Some(answer) })).await
    }

    /// Has something written to the log.
    pub(crate) fn say(&self, level: Level, message: String) {
        self.0.send(LoopMessage::Said(level, message));
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Query) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        self.0.send(LoopMessage::Query(question(sender)));
        answer.await.ok()
    }
}

/// The loop's end: who waits for what.
#[derive(Debug)]
pub(crate) struct QueryHandler {
    wall: Wall,
    next: u64,
    waiting: BTreeMap<RequestId, oneshot::Sender<Result<Reply, Unclear>>>,
    /// What was told last, as long as nothing has happened since.
    snapshot: Option<Arc<Snapshot>>,
    listeners: Option<broadcast::Sender<Arc<Told>>>,
    /// The last event that was told to listeners.
    told: Option<EventId>,
}

impl QueryHandler {
    /// Nobody has asked anything, at the beginning of the core's time.
    pub(crate) fn new(now: SystemTime) -> Self {
        Self {
            wall: Wall(now),
            next: 0,
            waiting: BTreeMap::new(),
            snapshot: None,
            listeners: None,
            told: None,
        }
    }

    /// Answers what can be answered at once. What has to be asked of the core is given back.
    ///
    /// The core must just have been told the time: what it says is true of its last step.
    pub(crate) fn hear(&mut self, core: &Core, now: Time, question: Query) -> Option<Input> {
        self.wall.follow(now, SystemTime::now());
        // Whoever does not wait for an answer any more does not get one.
        match question {
            Query::Overview(answer) => drop(answer.send(self.overview(core))),
            Query::Explain(name, answer) => {
                let explained = job_meant(core.plan(), &name).map(|job| self.explain(core, now, job));
                drop(answer.send(explained));
            }
            Query::Name(name, answer) => {
                let found = match job_meant(core.plan(), &name) {
                    Ok(job) => Ok(core.plan().jobs.get(job.index()).map_or(name, |job| job.name.clone())),
                    Err(Unclear::Several(_)) => Ok(name),
                    Err(unclear) => Err(unclear),
                };
                drop(answer.send(found));
            }
            Query::Events(answer) => drop(answer.send(self.listen(core))),
            // The loop has seen to it.
            Query::Reload(_) => {}
            Query::ControlRequest(request, answer) => match command(core.plan(), request) {
                Ok(command) => {
                    let id = self.number();
                    self.waiting.insert(id, answer);
                    return Some(Input::Request { id, request: command });
                }
                Err(unclear) => drop(answer.send(Err(unclear))),
            },
        }
        None
    }

    /// A number for another request.
    pub(crate) fn number(&mut self) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        id
    }

    /// Passes an answer of the core on.
    #[inline(never)]
    pub(crate) fn reply(&mut self, id: RequestId, answer: Reply) {
        if let Some(waiting) = self.waiting.remove(&id) {
            drop(waiting.send(Ok(answer)));
        }
    }

    /// Something has happened: what was known is out of date, and new events are told to those who listen.
    #[inline(never)]
    pub(crate) fn happened(&mut self, core: &Core) {
        self.snapshot = None;
        let Some(listeners) = &self.listeners else { return };
        if listeners.receiver_count() == 0 {
            self.listeners = None;
            return;
        }
        let newer = |event: &&Event| self.told.is_none_or(|told| event.id > told);
        let fresh: Vec<&Event> = core.journal().events().rev().take_while(newer).collect();
        for event in fresh.into_iter().rev() {
            self.told = Some(event.id);
            // Without a listener it is lost, as it should be.
            let _ = listeners.send(Arc::new(tell(core, self.wall, event)));
        }
    }

    fn overview(&mut self, core: &Core) -> Arc<Snapshot> {
        let wall = self.wall;
        Arc::clone(self.snapshot.get_or_insert_with(|| Arc::new(Snapshot::new(core, wall))))
    }

    fn explain(&self, core: &Core, now: Time, job: JobIx) -> Explained {
        let jobs = &core.plan().jobs;
        Explained {
            explanation: core.explain(job),
            advertised: jobs.get(job.index()).is_some_and(|job| job.service.is_some()),
            names: jobs.iter().map(|job| job.name.clone()).collect(),
            now,
            wall: self.wall,
        }
    }

    fn listen(&mut self, core: &Core) -> Listening {
        let remembered: Vec<Arc<Told>> =
            core.journal().events().map(|event| Arc::new(tell(core, self.wall, event))).collect();
        let coming = match &self.listeners {
            // What has happened was told to the others already, so both go on from the same place.
            Some(listeners) => listeners.subscribe(),
            None => {
                let (listeners, coming) = broadcast::channel(RING);
                self.told = remembered.last().map(|event| event.id);
                self.listeners = Some(listeners);
                coming
            }
        };
        Listening { remembered, coming }
    }
}

fn tell(core: &Core, wall: Wall, event: &Event) -> Told {
    Told {
        id: event.id,
        time: wall.at(event.at),
        source: core.origin_name(event.origin),
        code: event.code,
        cause: event.cause,
        exit: event.exit,
    }
}

fn command(plan: &Plan, request: ControlRequest) -> Result<Request, Unclear> {
    let (name, act) = match request {
        ControlRequest::Whole(command) => return Ok(command),
        ControlRequest::Job(name, act) => (name, act),
    };
    let job = job_meant(plan, &name)?;
    Ok(match act {
        JobAction::Start => Request::Start(job),
        JobAction::Stop => Request::Stop(job),
        JobAction::Restart => Request::Restart(job),
        JobAction::Signal(signal) => Request::Signal(job, signal),
    })
}

/// The job that a name means: the one that is called so, or, of several, the one whose number stands behind the name.
fn job_meant(plan: &Plan, name: &str) -> Result<JobIx, Unclear> {
    let named = |name: &str| {
        let name = name.to_owned();
        plan.jobs.iter().enumerate().filter(move |(_, job)| job.name == name).map(|(nth, _)| JobIx::at(nth))
    };
    match named(name).count() {
        1 => named(name).next().ok_or(Unclear::Nobody(None)),
        0 => {
            let numbered = name
                .rsplit_once(':')
                .and_then(|(name, number)| named(name).nth(number.parse::<usize>().ok()?.checked_sub(1)?));
            let near = || suggest::nearest(name, plan.jobs.iter().map(|job| job.name.as_str()));
            numbered.ok_or_else(|| Unclear::Nobody(near().map(str::to_owned)))
        }
        several => Err(Unclear::Several(several)),
    }
}

#[cfg(test)]
mod tests;
