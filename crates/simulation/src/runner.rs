//! Runs the real core in the virtual world of a scenario, and records what happens.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::{CheckRunId, EventId, JobIx, LockIx, RunId};
use containerpilot_core::input::Input;
use containerpilot_core::plan::{Level, Plan, Signal, Target, fmt_utc};
use containerpilot_core::rules::signals::reloads_at;
use containerpilot_core::{Core, Notice, Phase, Request, RequestId, Time};

use crate::behavior::{Behavior, Event};
use crate::defaults;
use crate::expect;
use crate::locks;
use crate::scenario::{Action, JobAction, Scenario};
use crate::timeline::{Abort, SimulationRun, What};
use crate::world::{Item, World};

/// How many items may happen at one instant before the simulation is aborted.
const MAX_ITEMS_PER_INSTANT: u32 = 200_000;
/// How many events of a job the journal keeps: more than a job can send at one instant.
const JOURNAL_EVENTS_PER_JOB: usize = 16;
/// The most entries of a timeline.
const MAX_ENTRIES: usize = 1_000_000;
/// The most steps of the core.
const MAX_STEPS: u64 = 100_000_000;

/// Runs a scenario to its end.
#[must_use]
pub fn simulate(plan: &Plan, scenario: &Scenario) -> SimulationRun {
    let mut plan = plan.clone();
    // The timeline shows warnings even if the log does not.
    plan.logging.level = Level::Warn;
    let mut core = Core::new(plan);
    core.set_journal_capacity(JOURNAL_EVENTS_PER_JOB * core.plan().jobs.len());
    let mut runner = Runner {
        plan: core.shared_plan(),
        world: World::new(Behavior::new(scenario, core.plan()), core.shared_plan(), None),
        probes: expect::probes(scenario).collect(),
        requests: 0,
        has_new_phases: false,
        last_event: EventId(0),
        places: Vec::new(),
        jobs: BTreeMap::new(),
        checks: BTreeMap::new(),
        failing: BTreeSet::new(),
        starts: BTreeMap::new(),
        sources: BTreeMap::new(),
        names: (core.shared_plan(), BTreeMap::new()),
        run: SimulationRun::default(),
        core,
    };
    runner.list_jobs();
    runner.schedule();
    runner.run(Time::ZERO + scenario.end());
    runner.run
}

struct Runner<'a> {
    core: Core,
    /// The plan that effects refer to.
    plan: Arc<Plan>,
    world: World<Behavior<'a>>,
    run: SimulationRun,
    /// The jobs whose state expectations must see, and when.
    probes: Vec<(Duration, String)>,
    requests: u64,
    /// Whether a job may be in another phase since they were recorded.
    has_new_phases: bool,
    /// The last event that was recorded.
    last_event: EventId,
    /// The index of each event's entry, by the number of the event.
    places: Vec<usize>,
    /// The job of each run, and the index of the entry that caused it.
    jobs: BTreeMap<RunId, (Arc<str>, Option<usize>)>,
    /// The job of each running check.
    checks: BTreeMap<CheckRunId, Arc<str>>,
    /// The jobs whose last check failed.
    failing: BTreeSet<Arc<str>>,
    /// The entry of each job's last start.
    starts: BTreeMap<String, usize>,
    sources: BTreeMap<String, Arc<str>>,
    /// The first job of each name in a plan.
    names: (Arc<Plan>, BTreeMap<String, JobIx>),
}

impl Runner<'_> {
    fn schedule(&mut self) {
        let scenario = self.world.script.scenario;
        for outage in &scenario.outages {
            self.world.schedule_event(outage.from, Event::Outage(true));
            if let Some(to) = outage.to {
                self.world.schedule_event(to, Event::Outage(false));
            }
        }
        let unix = scenario.clock.unwrap_or(defaults::CLOCK);
        self.core.step(Time::ZERO, Input::Clock { unix, asleep: Duration::ZERO }, &mut Vec::new());
        self.world.schedule_input(Duration::ZERO, Input::Ready);
        for watch in &self.core.shared_plan().watches {
            let observations = self.world.script.observations(self.core.plan(), watch);
            for observation in observations.iter().flatten() {
                self.world.schedule_watch(observation.at, watch.name.clone());
            }
            // D15: files are told that nothing is in the catalog yet.
            if observations.is_none() && !self.core.plan().files.is_empty() {
                self.world.schedule_watch(Duration::ZERO, watch.name.clone());
            }
        }
        let plan = self.core.shared_plan();
        for (nth, lock) in plan.locks.iter().enumerate().filter(|_| plan.has_shared_locks()) {
            for (at, report) in locks::reports(scenario, lock) {
                self.world.schedule_input(at, Input::Lock { lock: LockIx::at(nth), report });
            }
        }
        for (nth, (at, _)) in scenario.actions.iter().enumerate() {
            self.world.schedule_event(*at, Event::Action(nth));
        }
        for (nth, (at, _)) in scenario.forgets.iter().enumerate() {
            self.world.schedule_event(*at, Event::Forget(nth));
        }
        for (at, _) in &self.probes {
            self.world.schedule_event(*at, Event::Probe);
        }
    }

    fn run(&mut self, end: Time) {
        let (mut moment, mut at_once) = (Time::ZERO, 0);
        let mut stopping = false;
        while self.core.phase() != Phase::Exited && self.run.abort.is_none() {
            let agent = self.world.next_agent();
            let deadline = self.core.next_deadline();
            let times = [self.world.next(), deadline, agent.map(|(at, _)| at)];
            let next = times.into_iter().flatten().min().map(|at| at.max(self.world.now()));
            if next.is_none_or(|at| at > self.world.now()) {
                self.note_phases();
            }
            match next {
                Some(at) if stopping || at < end => {
                    if let Some((_, agent)) = agent.filter(|(due, _)| *due <= at) {
                        self.world.wait(at);
                        self.world.step_agent(agent, at);
                        self.write_changes();
                    } else if self.world.next().is_some_and(|next| next <= at) {
                        self.take();
                    } else {
                        self.world.wait(at);
                        self.step(Input::Tick);
                    }
                }
                _ if !stopping => {
                    // Items that are due at the very end do not happen any more.
                    self.world.wait(Time::from_nanos(end.as_nanos().saturating_sub(1)));
                    self.step(Input::Tick);
                    self.note_phases();
                    self.view_all(end);
                    stopping = true;
                    self.world.wait(end);
                    self.run.stop_requested_at = Some(end);
                    // S8: the first of the signals that shut down.
                    let signal = self.core.plan().stop_on.first().copied().unwrap_or(Signal::TERM);
                    let note = format!("{signal} to the supervisor: the simulation ends");
                    self.write("", What::Request, None, note);
                    self.step(Input::Signal(signal));
                }
                // Only a plan that forwards every signal, or a bug, leads here.
                _ => self.run.abort = Some(Abort::Stuck),
            }
            if self.world.now() > moment {
                (moment, at_once) = (self.world.now(), 0);
            }
            at_once += 1;
            if at_once > MAX_ITEMS_PER_INSTANT {
                self.run.abort = Some(Abort::NoTimePasses);
            }
            if self.run.entries.len() > MAX_ENTRIES || self.run.steps > MAX_STEPS {
                self.run.abort = Some(Abort::TooMuch);
            }
        }
        self.note_phases();
        if !stopping {
            self.view_all(self.world.now());
        }
    }

    fn take(&mut self) {
        let scenario = self.world.script.scenario;
        match self.world.take() {
            Item::Nothing => {}
            Item::Input(input) => self.step(input),
            Item::Script(Event::Probe) => self.step(Input::Tick),
            Item::Script(Event::Action(nth)) => {
                if let Some((_, action)) = scenario.actions.get(nth) {
                    let input = self.act(action);
                    self.step(input);
                }
            }
            Item::Script(Event::Forget(nth)) => {
                let Some((_, name)) = scenario.forgets.get(nth) else { return };
                if self.job_named(name).is_some_and(|job| self.world.forget_service(job)) {
                    self.write(name, What::Forgotten, None, "the catalog has lost its service".to_owned());
                }
            }
            Item::Script(Event::Outage(starts)) => {
                // An outage that ends during another one is not the end of both.
                if starts || scenario.outage_at(self.world.now().since(Time::ZERO)).is_none() {
                    self.write("catalog", What::CatalogOutage(starts), None, String::new());
                }
            }
        }
    }

    /// Applies an action of the scenario to the supervisor.
    fn act(&mut self, action: &Action) -> Input {
        self.requests += 1;
        let id = RequestId(self.requests);
        let (note, command) = match action {
            // R1
            Action::Signal(signal) if reloads_at(&self.plan, *signal) => {
                let command = Request::Reload(Box::new((*self.plan).clone()));
                ("SIGHUP: reloading the configuration".to_owned(), command)
            }
            Action::Signal(signal) => {
                self.write("", What::Request, None, format!("{signal} to the supervisor"));
                return Input::Signal(*signal);
            }
            Action::Clock(unix) => {
                self.write("", What::Request, None, format!("the system clock is set to {}", fmt_utc(*unix)));
                return Input::Clock { unix: *unix, asleep: Duration::ZERO };
            }
            Action::Maintenance(on) => {
                let word = if *on { "enable" } else { "disable" };
                (format!("maintenance {word}"), Request::Maintenance(*on))
            }
            Action::Reload(path, plan) => (format!("reload, with {path}"), Request::Reload(plan.clone())),
            Action::Scale(name, count) => {
                (format!("scale {name}={count}"), Request::Scale(name.clone(), *count))
            }
            Action::Job(action, name) => self.job_request(*action, name),
        };
        self.write("", What::Request, None, note);
        Input::Request { id, request: command }
    }

    /// A command for a job, or for all replicas of a job (W20).
    fn job_request(&self, action: JobAction, name: &str) -> (String, Request) {
        let target = Target::named(name);
        let jobs = self.core.plan().jobs.iter().enumerate().filter(|(_, job)| target.includes(job));
        let mut jobs: Vec<JobIx> = jobs.map(|(nth, _)| JobIx::at(nth)).collect();
        if let Some(one) = self.core.job_named(name).or(jobs.is_empty().then_some(JobIx(u32::MAX))) {
            jobs = vec![one];
        }
        let each = |request: &dyn Fn(JobIx) -> Request| match jobs.as_slice() {
            [job] => request(*job),
            several => Request::Several(several.iter().map(|job| request(*job)).collect()),
        };
        match action {
            JobAction::Start => (format!("start {name}"), each(&Request::Start)),
            JobAction::Stop => (format!("stop {name}"), each(&Request::Stop)),
            JobAction::Restart => (format!("restart {name}"), each(&Request::Restart)),
            JobAction::RollingRestart => {
                (format!("rolling restart of {name}"), Request::RollingRestart(jobs))
            }
            JobAction::Send(signal) => {
                (format!("send {signal} to {name}"), each(&|job| Request::Signal(job, signal)))
            }
        }
    }

    /// Carries out an effect, and what the agents of the catalog do about it at once.
    fn carry_out(&mut self, effect: &Effect) {
        self.world.carry_out(effect);
        self.write_changes();
        let now = self.world.now();
        while let Some((at, agent)) = self.world.next_agent().filter(|(at, _)| *at <= now) {
            self.world.step_agent(agent, at);
            self.write_changes();
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        let at = self.world.now();
        let routine = matches!(
            input,
            Input::CheckDone { result: Ok(()), .. }
                | Input::Notified { notice: Notice::Watchdog, .. }
                | Input::Tick
        );
        let is_tick = matches!(input, Input::Tick);
        let before = self.run.entries.len();
        if let Input::CheckDone { check, result } = &input {
            self.checked(*check, result);
        }
        // A request at this instant is the cause of everything that has no other cause.
        let request = self.run.entries.last().filter(|entry| entry.at == at && entry.what == What::Request);
        let origin = if self.run.entries.len() > before || request.is_some() {
            self.run.entries.len().checked_sub(1)
        } else {
            None
        };
        let started = match &input {
            Input::Started { run, .. } => Some(*run),
            _ => None,
        };
        self.run.steps += 1;
        // A job that is removed at the same instant has no phase after it.
        if matches!(input, Input::Request { .. }) || self.core.is_reloading() {
            self.note_phases();
        }
        self.core.step(at, input, &mut effects);
        if let Some(run) = started {
            self.started(run);
        }
        let nothing = |effect: &Effect| matches!(effect, Effect::RunCheck { .. } | Effect::Heartbeat { .. });
        let new_events = self.new_events();
        let quiet = routine && new_events.is_empty() && effects.iter().all(nothing);
        self.write_events(&new_events, origin);
        for effect in &effects {
            self.write_effect(effect);
            self.carry_out(effect);
        }
        if effects.iter().any(|effect| matches!(effect, Effect::PlanReplaced { .. })) {
            self.list_jobs();
        }
        self.has_new_phases |= !quiet;
        if is_tick {
            self.probe();
        }
    }
}
