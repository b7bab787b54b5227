//! Runs a scenario in the virtual world of [`containerpilot_simulation`], and has the [`Oracle`] check every step.
//!
//! The next step is the nearest item of the world or the core's own deadline; the order of items at the same
//! instant is random. A scenario may call the core some time after its deadlines, or not at all for a while. When nothing
//! is scheduled, or after a number of steps, the runner sends SIGTERM to the supervisor, and it must exit.

pub(crate) mod timeline;

use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::WatchIx;
use containerpilot_core::input::{Answer, Input};
use containerpilot_core::plan::{DEFAULT_STOP_ON, Signal};
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::rng::mix;
use containerpilot_core::rules::signals::reloads_at;
use containerpilot_core::{Core, Phase, Time};
use containerpilot_simulation::world::{Item, World};

use crate::agents;
use crate::invariants::oracle::{Oracle, Violation};
use crate::scenario::{Action, CLOCK, Progress, Scenario};
use crate::tape::Tape;
use crate::twin::Twin;

/// What happened in a scenario that broke no rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// How often the core was called.
    pub steps: u32,
    /// How many programs were started.
    pub runs: u64,
    /// How many events were sent.
    pub events: u64,
    /// How often another plan came into force.
    pub reloads: u64,
    /// How many jobs reloads have changed without a restart (R5).
    pub adjusted: u64,
    /// How often a plan with another number of replicas than in its configuration came into force (W20).
    pub scaled: u64,
    /// How many actions changed the state of a job or of the supervisor (W19).
    pub performed: u64,
    /// How many stop signals were others than the default ones (S8).
    pub stop_signals: u64,
}

/// The most steps of a shutdown.
const MAX_SHUTDOWN_STEPS: u32 = 3_000;
/// The most steps of agents in a minute between two steps of the core.
const MAX_AGENT_STEPS: u32 = 10_000;
/// The name of a difference between the core and its twin.
const TWIN: &str = "twin";
/// The name of a recording that leads somewhere else.
const RECORDING: &str = "B4";
const MINUTE: Duration = Duration::from_secs(60);

struct Runner<'a> {
    scenario: &'a Scenario,
    world: World<Progress<'a>>,
    core: Core,
    oracle: Oracle<'a>,
    twin: Option<Twin>,
    tape: Option<Tape>,
    requests: u64,
    totals: Totals,
}

/// Runs a scenario to its end, or to the first violation of a rule. Writes what happens to `timeline`.
pub fn run(scenario: &Scenario, timeline: Option<&mut String>) -> Result<Totals, Violation> {
    let mut core = Core::new(scenario.versions[0].plan.clone());
    core.step(Time::ZERO, Input::Clock { unix: CLOCK, asleep: Duration::ZERO }, &mut Vec::new());
    let mut world = World::new(Progress::new(scenario), core.shared_plan(), Some(scenario.order));
    world.schedule_input(scenario.ready_at, Input::Ready);
    for (nth, (at, _)) in scenario.actions.iter().enumerate() {
        world.schedule_event(*at, nth);
    }
    let oracle = Oracle::new(scenario);
    let twin = scenario.has_twin.then(|| Twin::new(&core, scenario.order)).transpose();
    let twin = twin.map_err(|what| oracle.violation(TWIN, what))?;
    let tape = scenario.recorded.map(Tape::new);
    Runner { scenario, world, core, oracle, twin, tape, requests: 0, totals: Totals::default() }.run(timeline)
}

/// A step as the oracle makes it. A whole step also changes some replies.
pub(crate) fn step_in_parts(core: &mut Core, now: Time, input: Input, effects: &mut Vec<Effect>) {
    core.begin(now, input, effects);
    while core.advance(effects) {}
}

#[derive(Clone, Copy)]
enum Next {
    /// An item of the world.
    Item(Time),
    /// Only a deadline of the core.
    Deadline(Time),
}

impl Next {
    const fn at(self) -> Time {
        match self {
            Self::Item(at) | Self::Deadline(at) => at,
        }
    }
}

impl Runner<'_> {
    fn run(mut self, mut timeline: Option<&mut String>) -> Result<Totals, Violation> {
        let mut effects = Vec::new();
        let mut stop_requests = 0;
        let mut last_stop_step = 0;
        while self.core.phase() != Phase::Exited {
            let mut next = self.next();
            while let Some(until) = next.map(Next::at)
                && self.run_agents(until)?
            {
                next = self.next();
            }
            let limit = if stop_requests == 0 {
                self.scenario.max_steps
            } else {
                last_stop_step + MAX_SHUTDOWN_STEPS
            };
            let input = match next {
                Some(next) if self.totals.steps < limit => self.take(next),
                next => {
                    if next.is_none() {
                        self.oracle.check_idle(&self.core)?;
                    }
                    stop_requests += 1;
                    last_stop_step = self.totals.steps;
                    match stop_requests {
                        1 => Input::Signal(self.stop_signal(0)),
                        // The same signal again at once would count as one (S1).
                        2 => Input::Signal(self.stop_signal(1)),
                        // If signals are forwarded, the program decides when it exits (S7).
                        3 if self.scenario.versions[0].plan.pass_signals => {
                            self.world.end_all_programs();
                            Input::Tick
                        }
                        _ => {
                            return Err(self
                                .oracle
                                .violation("S4", "the supervisor was asked to stop and does not exit"));
                        }
                    }
                }
            };
            self.totals.steps += 1;
            if let Input::Signal(signal) = &input
                && self.core.plan().stop_on.contains(signal)
                && !DEFAULT_STOP_ON.contains(signal)
            {
                self.totals.stop_signals += 1;
            }
            effects.clear();
            let shown = timeline.is_some().then(|| format!("{input:?}"));
            let now = self.reported_time();
            if let Some(tape) = &mut self.tape {
                tape.before_step(&self.core, now, &input);
            }
            let checked = self.oracle.step(&mut self.core, now, &input, &mut effects);
            if let (Some(timeline), Some(input)) = (timeline.as_deref_mut(), shown) {
                timeline::write(timeline, self.world.now(), &input, &effects, &self.core);
            }
            checked?;
            if let Some(tape) = &mut self.tape {
                tape.after_step(&self.core, &effects);
            }
            if let Some(twin) = &mut self.twin {
                let same = twin.step(&self.core, step_in_parts, (now, &input), &effects);
                same.map_err(|what| self.oracle.violation(TWIN, what))?;
            }
            for effect in &effects {
                self.carry_out(effect)?;
            }
        }
        self.oracle.check_end(&self.core)?;
        if let Some(twin) = &mut self.twin {
            twin.read_back(&self.core, self.world.now()).map_err(|what| self.oracle.violation(TWIN, what))?;
        }
        if let Some(tape) = &self.tape {
            tape.check(step_in_parts, self.scenario.order)
                .map_err(|what| self.oracle.violation(RECORDING, what))?;
        }
        let now = self.world.now();
        for agent in self.world.agents() {
            agents::leave(agent, now).map_err(|what| self.oracle.violation("S6", what))?;
        }
        self.totals.events = self.oracle.events();
        self.totals.performed = self.oracle.performed();
        Ok(self.totals)
    }

    /// The time that the core gets. A clock that was read a little early must do no harm.
    fn reported_time(&self) -> Time {
        let (now, random) = (self.world.now(), mix(self.scenario.order ^ u64::from(self.totals.steps)));
        if self.scenario.late && random.is_multiple_of(16) {
            return Time::from_nanos(now.as_nanos().saturating_sub(random % 50_000_000));
        }
        now
    }

    fn next(&self) -> Option<Next> {
        let late = self.scenario.late;
        let deadline = self.core.next_deadline().map(|deadline| {
            let slip = if late {
                // Up to 20 ms, and in half of the cases nothing.
                let slip = mix(self.scenario.order ^ deadline.as_nanos()) % 40_000;
                Duration::from_micros(slip.saturating_sub(20_000))
            } else {
                Duration::ZERO
            };
            (deadline + slip).max(self.world.now())
        });
        match (self.world.next(), deadline) {
            (Some(at), Some(deadline)) if at < deadline || (late && at == deadline) => Some(Next::Item(at)),
            (_, Some(deadline)) => Some(Next::Deadline(deadline)),
            (at, None) => at.map(Next::Item),
        }
    }

    fn take(&mut self, next: Next) -> Input {
        match next {
            Next::Deadline(at) => {
                self.world.wait(at);
                Input::Tick
            }
            Next::Item(_) => match self.world.take() {
                Item::Input(input) => input,
                Item::Script(nth) => self.act(nth),
                Item::Nothing => Input::Tick,
            },
        }
    }

    fn act(&mut self, nth: usize) -> Input {
        match &self.scenario.actions[nth].1 {
            // R1: it requests a reload, unless a job waits for it.
            Action::Signal(signal) if reloads_at(self.core.plan(), *signal) => self.reload(nth),
            Action::Signal(signal) => Input::Signal(*signal),
            Action::Request(command) => self.command(command.clone()),
            Action::Reload(version) => self.reload(*version),
            Action::Instances(watch, instances) => match watch.checked_rem(self.world.plan().watches.len()) {
                Some(watch) => Input::Watched {
                    watch: WatchIx::at(watch),
                    answer: Ok(Answer::Instances(instances.clone())),
                },
                None => Input::Tick,
            },
            Action::Clock(unix) => Input::Clock { unix: *unix, asleep: Duration::ZERO },
            Action::Nothing => Input::Tick,
            Action::Pause(time) => {
                self.world.pause(*time);
                self.oracle.allow_lateness();
                Input::Tick
            }
        }
    }

    /// A signal that shuts down (S8); if there is only one, that one.
    fn stop_signal(&self, nth: usize) -> Signal {
        let stop_on = &self.core.plan().stop_on;
        stop_on.get(nth).or(stop_on.first()).copied().unwrap_or(Signal::TERM)
    }

    fn command(&mut self, command: Request) -> Input {
        self.requests += 1;
        Input::Request { id: RequestId(self.requests), request: command }
    }

    fn reload(&mut self, version: usize) -> Input {
        let versions = &self.scenario.versions;
        let count = versions.iter().filter(|version| version.scaled_from.is_none()).count();
        let version = &versions[version % count];
        self.command(Request::Reload(Box::new(version.plan.clone())))
    }

    fn carry_out(&mut self, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Kill { run, .. } | Effect::CancelStart { run } if !self.world.has_process(*run) => {
                return Err(self.oracle.violation("P4", "a signal is sent to a process that does not exist"));
            }
            Effect::Spawn { .. } => self.totals.runs += 1,
            Effect::PlanReplaced { .. } => {
                self.totals.reloads += 1;
                let version = self.oracle.version();
                self.world.script.version = version;
                self.totals.scaled += u64::from(self.scenario.versions[version].scaled_from.is_some());
            }
            Effect::Reply { reply: Reply::Reloaded(changes), .. } => {
                self.totals.adjusted += changes.adjusted.len() as u64;
            }
            _ => {}
        }
        self.world.carry_out(effect);
        Ok(())
    }

    /// Runs the agents up to a time, but no further than to the first input. Returns true if there was one.
    fn run_agents(&mut self, until: Time) -> Result<bool, Violation> {
        let (mut steps, mut since) = (0, self.world.now());
        while steps < MAX_AGENT_STEPS {
            let Some((at, nth)) = self.world.next_agent().filter(|(at, _)| *at <= until) else {
                return Ok(false);
            };
            // A job may wait for days, if the system clock is set back (W15).
            if at.since(since) > MINUTE {
                (steps, since) = (0, at);
            }
            steps += 1;
            let broken = |what| self.oracle.violation("D5", format!("job {nth}: {what}"));
            let Some(agent) = self.world.agent(nth) else { return Ok(false) };
            agents::check(agent, at).map_err(broken)?;
            let input = self.world.step_agent(nth, at);
            let Some(agent) = self.world.agent(nth) else { return Ok(false) };
            agents::check_contract(agent).map_err(broken)?;
            if input {
                return Ok(true);
            }
        }
        Err(self.oracle.violation("D5", "the catalog receives requests without an end"))
    }
}
