//! Runs the real core in the virtual world of a scenario, and records what happens.

use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::{JobIx, LockIx};
use containerpilot_core::input::Input;
use containerpilot_core::plan::{Level, Plan, Signal, Target, fmt_utc};
use containerpilot_core::rules::signals::reloads_at;
use containerpilot_core::{Core, Phase, Request, RequestId, Time};

use crate::behavior::{Behavior, Event};
use crate::defaults;
use crate::expect;
use crate::locks;
use crate::recorded::{Observe, RecordedWorld};
use crate::scenario::{Action, JobAction, Scenario};
use crate::timeline::{Abort, SimulationRun, What};
use crate::timeline_writer::TimelineWriter;
use crate::world::{CatalogChange, Item, World};

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
    run(plan, scenario, None, None)
}

/// Runs a scenario to its end, and shows each step.
#[must_use]
pub fn simulate_observed(plan: &Plan, scenario: &Scenario, observer: &mut dyn Observe) -> SimulationRun {
    run(plan, scenario, None, Some(observer))
}

/// Runs the scenario of a recorded world, with the times of that world.
pub(crate) fn simulate_as_recorded(
    plan: &Plan,
    scenario: &Scenario,
    recorded: &RecordedWorld,
    observer: &mut dyn Observe,
) -> SimulationRun {
    run(plan, scenario, Some(recorded), Some(observer))
}

fn run(
    plan: &Plan,
    scenario: &Scenario,
    recorded: Option<&RecordedWorld>,
    observer: Option<&mut dyn Observe>,
) -> SimulationRun {
    let mut plan = plan.clone();
    // The timeline shows warnings even if the log does not.
    plan.logging.level = Level::Warn;
    let mut core = Core::new(plan);
    core.set_journal_capacity(JOURNAL_EVENTS_PER_JOB * core.plan().jobs.len());
    let behavior = match recorded {
        Some(recorded) => Behavior::as_recorded(scenario, recorded, core.plan()),
        None => Behavior::new(scenario, core.plan()),
    };
    let mut runner = Runner {
        world: World::new(behavior, core.shared_plan(), None),
        observer,
        probes: expect::probes(scenario).collect(),
        requests: 0,
        timeline: TimelineWriter::new(&core),
        core,
    };
    runner.schedule();
    runner.run(Time::ZERO + scenario.end());
    runner.timeline.run
}

struct Runner<'a, 'o> {
    core: Core,
    world: World<Behavior<'a>>,
    timeline: TimelineWriter,
    /// The jobs whose state expectations must see, and when.
    probes: Vec<(Duration, String)>,
    requests: u64,
    observer: Option<&'o mut dyn Observe>,
}

impl Runner<'_, '_> {
    fn schedule(&mut self) {
        let scenario = self.world.script.scenario;
        for outage in &scenario.outages {
            self.world.schedule_event(outage.from, Event::Outage(true));
            if let Some(to) = outage.to {
                self.world.schedule_event(to, Event::Outage(false));
            }
        }
        let unix = scenario.clock.unwrap_or(defaults::CLOCK);
        let clock = Input::Clock { unix, asleep: Duration::ZERO };
        if let Some(observer) = &mut self.observer {
            observer.before_step(&self.core, Time::ZERO, &clock);
        }
        let mut effects = Vec::new();
        self.core.step(Time::ZERO, clock, &mut effects);
        if let Some(observer) = &mut self.observer {
            observer.after_step(&self.core, Time::ZERO, &effects);
        }
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
        while self.core.phase() != Phase::Exited && self.timeline.run.abort.is_none() {
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
                    self.timeline.view_all(&self.core, end);
                    stopping = true;
                    self.world.wait(end);
                    self.timeline.run.stop_requested_at = Some(end);
                    // S8: the first of the signals that shut down.
                    let signal = self.core.plan().stop_on.first().copied().unwrap_or(Signal::TERM);
                    let note = format!("{signal} to the supervisor: the simulation ends");
                    self.write("", What::Request, note);
                    self.step(Input::Signal(signal));
                }
                // Only a plan that forwards every signal, or a bug, leads here.
                _ => self.timeline.run.abort = Some(Abort::Stuck),
            }
            if self.world.now() > moment {
                (moment, at_once) = (self.world.now(), 0);
            }
            at_once += 1;
            if at_once > MAX_ITEMS_PER_INSTANT {
                self.timeline.run.abort = Some(Abort::NoTimePasses);
            }
            if self.timeline.run.entries.len() > MAX_ENTRIES || self.timeline.run.steps > MAX_STEPS {
                self.timeline.run.abort = Some(Abort::TooMuch);
            }
        }
        self.note_phases();
        if !stopping {
            self.timeline.view_all(&self.core, self.world.now());
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
                if self.core.job_named(name).is_some_and(|job| self.world.forget_service(job)) {
                    self.write(name, What::Forgotten, "the catalog has lost its service".to_owned());
                }
            }
            Item::Script(Event::Outage(starts)) => {
                // An outage that ends during another one is not the end of both.
                if starts || scenario.outage_at(self.world.now().since(Time::ZERO)).is_none() {
                    self.write("catalog", What::CatalogOutage(starts), String::new());
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
            Action::Signal(signal) if reloads_at(&self.timeline.plan, *signal) => {
                let command = Request::Reload(Box::new((*self.timeline.plan).clone()));
                ("SIGHUP: reloading the configuration".to_owned(), command)
            }
            Action::Signal(signal) => {
                self.write("", What::Request, format!("{signal} to the supervisor"));
                return Input::Signal(*signal);
            }
            Action::Clock(unix) => {
                self.write("", What::Request, format!("the system clock is set to {}", fmt_utc(*unix)));
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
            Action::PutVariable(name, value) => {
                (format!("putenv {name}"), Request::SetVariables(vec![(name.clone(), value.clone())]))
            }
            Action::Job(action, name) => self.job_request(*action, name),
        };
        self.write("", What::Request, note);
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
        let is_tick = matches!(input, Input::Tick);
        self.timeline.now = at;
        let before = self.timeline.before_step(&self.core, &input);
        if let Some(observer) = &mut self.observer {
            observer.before_step(&self.core, at, &input);
        }
        self.core.step(at, input, &mut effects);
        if let Some(observer) = &mut self.observer {
            observer.after_step(&self.core, at, &effects);
        }
        self.timeline.after_step(&self.core, &before, &effects);
        for effect in &effects {
            if let Effect::PlanReplaced { plan, .. } = effect {
                self.world.script.set_plan(plan);
            }
            self.timeline.write_effect(&self.core, effect);
            self.carry_out(effect);
        }
        if is_tick {
            self.probe();
        }
    }

    fn write(&mut self, source: &str, what: What, note: String) {
        self.timeline.now = self.world.now();
        self.timeline.write(source, what, None, note);
    }

    fn note_phases(&mut self) {
        self.timeline.now = self.world.now();
        self.timeline.note_phases(&self.core);
    }

    fn write_changes(&mut self) {
        for CatalogChange { job, status } in self.world.take_changes() {
            let plan = Arc::clone(self.world.plan());
            let Some(job) = plan.jobs.get(job.index()) else { continue };
            let kind = status.map_or(What::Deregistered, What::InCatalog);
            self.write(&job.name, kind, String::new());
        }
    }

    /// Records the state of jobs that expectations must see at this instant.
    fn probe(&mut self) {
        let now = self.world.now();
        for (at, name) in &self.probes {
            if Time::ZERO + *at == now
                && let Some(job) = self.core.job_named(name)
            {
                let view = TimelineWriter::view(&self.core, job);
                self.timeline.run.views.insert((now, name.clone()), view);
            }
        }
    }
}
