//! The world: it does what the core wants as the scenario has it, and turns that into inputs.
//!
//! Of what happens at the same moment, what was caused first happens first, as in the supervisor's loop.

mod programs;

use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::effect::Effect;
use containerpilot_core::ids::{CheckRunId, JobIx, RunId, WatchIx};
use containerpilot_core::input::{ExitStatus, Input, Instance};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Job, Plan, Signal, Watch};
use containerpilot_core::request::{Request, RequestId};
use containerpilot_core::state::timer_queue::{Place, TimerQueue};
use std::collections::BTreeMap;

use crate::catalog::{Catalog, News};
use crate::habits;
use crate::scenario::{Happening, Lasting, Order, Run, Scenario, Sight};
use crate::timeline::What;

/// Something that is going to happen.
#[derive(Debug)]
enum Coming {
    Input(Input),
    Start(RunId),
    Exit(RunId),
    Check(CheckRunId),
    Happening(usize),
    Forget(usize),
    Away(bool),
    Wake(String),
    Answer(String),
    Overdue(String),
    /// Watches of this name look.
    Look(String),
    /// Nothing, but somebody wants to see how it is then.
    Glance,
}

#[derive(Debug)]
struct Program {
    job: String,
    script: Run,
    lasts: Lasting,
    exit: Option<Place>,
    status: ExitStatus,
}

/// What the world has to say about itself, for the timeline.
#[derive(Debug)]
pub struct Note {
    /// To whom it happened.
    pub source: String,
    /// What.
    pub what: What,
    /// And more.
    pub note: String,
}

/// What happens next.
#[derive(Debug, Default)]
pub struct Turn {
    /// What the core is told; nothing if it does not concern it.
    pub input: Option<Input>,
    /// What is written down.
    pub notes: Vec<Note>,
}

/// The world.
pub struct World<'a> {
    scenario: &'a Scenario,
    plan: Arc<Plan>,
    now: Time,
    coming: TimerQueue<Coming>,
    programs: BTreeMap<RunId, Program>,
    probes: BTreeMap<CheckRunId, Place>,
    answers: BTreeMap<CheckRunId, Result<(), String>>,
    /// How many runs each job has had, by name.
    runs: BTreeMap<String, usize>,
    /// The run of each job that goes on, or for one without a program, since when it is checked.
    since: BTreeMap<String, (Run, Time)>,
    catalog: Catalog,
    wakes: BTreeMap<String, Place>,
    requests: u64,
    notes: Vec<Note>,
}

impl<'a> World<'a> {
    /// A world at its beginning.
    #[must_use]
    pub fn new(scenario: &'a Scenario, plan: Arc<Plan>, glances: impl Iterator<Item = Duration>) -> Self {
        let mut world = Self {
            scenario,
            plan,
            now: Time::ZERO,
            coming: TimerQueue::default(),
            programs: BTreeMap::new(),
            probes: BTreeMap::new(),
            answers: BTreeMap::new(),
            runs: BTreeMap::new(),
            since: BTreeMap::new(),
            catalog: Catalog::default(),
            wakes: BTreeMap::new(),
            requests: 0,
            notes: Vec::new(),
        };
        for span in &scenario.away {
            world.add(span.from, Coming::Away(true));
            if let Some(to) = span.to {
                world.add(to, Coming::Away(false));
            }
        }
        world.add(Duration::ZERO, Coming::Input(Input::Ready));
        for watch in Arc::clone(&world.plan).watches.iter() {
            for sight in world.sights(watch).unwrap_or_default() {
                world.add(sight.at, Coming::Look(watch.name.clone()));
            }
        }
        for (nth, (at, _)) in scenario.happenings.iter().enumerate() {
            world.add(*at, Coming::Happening(nth));
        }
        for (nth, (at, _)) in scenario.forgets.iter().enumerate() {
            world.add(*at, Coming::Forget(nth));
        }
        for at in glances {
            world.add(at, Coming::Glance);
        }
        world
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next thing happens.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.coming.next()
    }

    /// Time passes, and nothing happens.
    pub fn wait(&mut self, until: Time) {
        self.now = self.now.max(until);
    }

    fn add(&mut self, after: Duration, coming: Coming) -> Place {
        self.add_at(self.now + after, coming)
    }

    fn add_at(&mut self, at: Time, coming: Coming) -> Place {
        self.coming.add(at, coming)
    }

    fn elapsed(&self) -> Duration {
        self.now.since(Time::ZERO)
    }

    fn away(&self) -> bool {
        self.scenario.away_at(self.elapsed()).is_some()
    }

    fn note(&mut self, source: &str, what: What, note: impl Into<String>) {
        self.notes.push(Note { source: source.to_owned(), what, note: note.into() });
    }

    /// The next thing happens.
    pub fn take(&mut self) -> Turn {
        let Some((at, coming)) = self.coming.pop() else { return Turn::default() };
        self.now = self.now.max(at);
        let input = match coming {
            Coming::Input(input) => Some(input),
            Coming::Start(run) => Some(self.start(run)),
            Coming::Exit(run) => Some(self.exit(run)),
            Coming::Check(run) => {
                self.probes.remove(&run);
                let result = self.answers.remove(&run).unwrap_or(Ok(()));
                Some(Input::CheckDone { check: run, result })
            }
            Coming::Happening(nth) => {
                self.scenario.happenings.get(nth).map(|(_, happening)| self.happen(happening))
            }
            Coming::Look(name) => {
                self.look(&name);
                None
            }
            Coming::Glance => Some(Input::Tick),
            other => {
                self.of_the_catalog(other);
                None
            }
        };
        Turn { input, notes: std::mem::take(&mut self.notes) }
    }

    fn of_the_catalog(&mut self, coming: Coming) {
        let away = self.away();
        let news = match coming {
            Coming::Wake(id) => {
                self.wakes.remove(&id);
                self.catalog.work(&id, self.now, away)
            }
            Coming::Answer(id) => self.catalog.answered(&id, self.now, away),
            Coming::Overdue(id) => self.catalog.overdue(&id, self.now),
            Coming::Forget(nth) => {
                let scenario = self.scenario;
                let Some((_, name)) = scenario.forgets.get(nth) else { return };
                if let Some(id) = self.catalog.forget(&self.plan, name) {
                    self.note(name, What::Forgotten, "the catalog has lost its service");
                    vec![News::Changed(id, None)]
                } else {
                    Vec::new()
                }
            }
            Coming::Away(begins) => {
                // One that ends while another goes on is no return.
                if begins || !away {
                    self.note("catalog", What::CatalogAway(begins), "");
                }
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.hear(news);
    }

    fn hear(&mut self, news: Vec<News>) {
        for one in news {
            match one {
                News::Wake(id, at) => {
                    if let Some(place) = self.wakes.remove(&id) {
                        self.coming.remove(place);
                    }
                    let place = self.add_at(at, Coming::Wake(id.clone()));
                    self.wakes.insert(id, place);
                }
                News::Answer(id, at) => {
                    self.add_at(at, Coming::Answer(id));
                }
                News::Trusted(id, until) => {
                    self.add_at(until, Coming::Overdue(id));
                }
                News::Withdrawn(job) => {
                    self.add(Duration::ZERO, Coming::Input(Input::Deregistered { job }));
                }
                News::Changed(id, status) => {
                    let plan = Arc::clone(&self.plan);
                    let Some(name) = self.catalog.name_of(&plan, &id) else { continue };
                    let forgotten = self.notes.iter().any(|note| note.what == What::Forgotten);
                    match status {
                        Some(status) => self.note(name, What::InCatalog(status.into()), ""),
                        None if forgotten => {}
                        None => self.note(name, What::Withdrawn, ""),
                    }
                    self.look(name);
                }
            }
        }
    }

    /// What the scenario has a watch see; nothing if it follows the catalog.
    fn sights(&self, watch: &Watch) -> Option<Vec<Sight>> {
        if let Some(sights) = self.scenario.watches.get(&watch.name) {
            return Some(sights.clone());
        }
        let advertised = |job: &Job| job.service.as_ref().is_some_and(|service| service.name == watch.name);
        let known = self.plan.jobs.iter().any(advertised);
        (!known).then(|| vec![Sight { at: habits::SEEN, instances: 1, generation: 0 }])
    }

    /// Watches of a name look: at once, or when the catalog is back.
    fn look(&mut self, name: &str) {
        match self.scenario.away_at(self.elapsed()) {
            Some(Some(back)) => {
                let at = Time::ZERO + back;
                let known = |coming: &Coming| matches!(coming, Coming::Look(one) if one == name);
                if !self.coming.at(at).any(known) {
                    self.add_at(at, Coming::Look(name.to_owned()));
                }
            }
            Some(None) => {}
            None => {
                let plan = Arc::clone(&self.plan);
                let watches = plan.watches.iter().enumerate().filter(|(_, watch)| watch.name == name);
                for (nth, watch) in watches {
                    if let Some(instances) = self.seen(watch) {
                        let input = Input::Instances { watch: WatchIx::at(nth), instances };
                        self.add(Duration::ZERO, Coming::Input(input));
                    }
                }
            }
        }
    }

    /// What a watch sees now; nothing if it has not looked yet.
    fn seen(&self, watch: &Watch) -> Option<Vec<Instance>> {
        let Some(sights) = self.sights(watch) else { return Some(self.catalog.healthy(watch)) };
        let now = self.elapsed();
        let sight = sights.iter().rev().find(|sight| sight.at <= now)?;
        let instance = |nth: u16| Instance {
            id: format!("{}-{}", watch.name, u32::from(nth) + sight.generation.saturating_mul(1_000)),
            address: "192.0.2.1".to_owned(),
            port: nth.saturating_add(1),
        };
        Some((0..sight.instances).map(instance).collect())
    }

    fn happen(&mut self, happening: &Happening) -> Input {
        self.requests += 1;
        let id = RequestId(self.requests);
        match happening {
            Happening::Signal(signal) => {
                if !self.plan.pass_signals && *signal == Signal::HUP && !self.waits_for_hangup() {
                    // R1: the configuration is read again.
                    let command = Request::Reload(Box::new((*self.plan).clone()));
                    self.note("", What::Asked, "SIGHUP: the configuration is read again");
                    return Input::Request { id, request: command };
                }
                let name = containerpilot_config::kinds::signal_name(*signal);
                self.note("", What::Asked, format!("{name} to the supervisor"));
                Input::Signal(*signal)
            }
            Happening::Maintenance(on) => {
                self.note("", What::Asked, if *on { "maintenance enable" } else { "maintenance disable" });
                Input::Request { id, request: Request::Maintenance(*on) }
            }
            Happening::Reload(path, plan) => {
                self.note("", What::Asked, format!("reload, with {path}"));
                Input::Request { id, request: Request::Reload(plan.clone()) }
            }
            Happening::Order(order, name) => {
                let place = self.plan.jobs.iter().position(|job| job.name == *name);
                let job = place.map_or(JobIx(u32::MAX), JobIx::at);
                let (word, command) = match order {
                    Order::Start => ("start".to_owned(), Request::Start(job)),
                    Order::Stop => ("stop".to_owned(), Request::Stop(job)),
                    Order::Restart => ("restart".to_owned(), Request::Restart(job)),
                    Order::Send(signal) => {
                        let signal_name = containerpilot_config::kinds::signal_name(*signal);
                        (format!("send {signal_name} to"), Request::Signal(job, *signal))
                    }
                };
                self.note("", What::Asked, format!("{word} {name}"));
                Input::Request { id, request: command }
            }
        }
    }

    fn waits_for_hangup(&self) -> bool {
        use containerpilot_core::event::{Source, UserSignal};
        let mut patterns = self.plan.jobs.iter().flat_map(|job| job.when.patterns());
        patterns.any(|event| event.source == Source::Signal(UserSignal::Hup))
    }

    /// Does what the core wants.
    pub fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::Spawn { job, run, .. } => self.spawn(*job, *run),
            Effect::Kill { run, signal, .. } => self.signal(*run, *signal),
            Effect::RunCheck { job, check, run, .. } => self.probe(*job, *check, *run),
            Effect::CancelCheck { run } => self.cancel(*run),
            Effect::Advertise { job, desired } => {
                let plan = Arc::clone(&self.plan);
                let news = self.catalog.advertise(&plan, *job, *desired, self.now, self.away());
                self.hear(news);
            }
            Effect::Heartbeat { job } => {
                let plan = Arc::clone(&self.plan);
                let news = self.catalog.heartbeat(&plan, *job, self.now, self.away());
                self.hear(news);
            }
            Effect::PlanReplaced { plan, moves } => self.replanned(plan, moves),
            Effect::KillOrphans { .. } | Effect::Reply { .. } | Effect::Log(_) | Effect::Exit { .. } => {}
        }
    }

    /// What it has to say since it was last asked.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn replanned(&mut self, plan: &Arc<Plan>, moves: &Moves) {
        self.plan = Arc::clone(plan);
        self.coming.change(|coming| match coming {
            Coming::Input(input) => moves.input(input).map(Coming::Input),
            other => Some(other),
        });
        let names: Vec<String> = plan.watches.iter().map(|watch| watch.name.clone()).collect();
        for name in names {
            self.look(&name);
        }
    }
}
