//! A state of the search: a core, its oracle, and its world.

use std::panic::{AssertUnwindSafe, catch_unwind};

use containerpilot_core::ids::{RunId, WatchIx};
use containerpilot_core::input::{Answer, Input, Instance, Remains, StartError, StartErrorKind};
use containerpilot_core::plan::Signal;
use containerpilot_core::request::{Request, RequestId};
use containerpilot_core::state::fingerprint::Fingerprint;
use containerpilot_core::{Core, Effect, Notice, Phase, Time};
use containerpilot_simulation::world::pid_of;

use super::limits::Limits;
use super::moves::Move;
use super::world::{Program, World};
use crate::invariants::oracle::{Oracle, Violation};
use crate::scenario::{CLOCK, Scenario};

/// A state of the search.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub(super) core: Core,
    oracle: Oracle<'a>,
    pub(super) world: World,
    pub(super) now: Time,
}

impl<'a> Node<'a> {
    /// The state before the startup.
    #[must_use]
    pub fn new(scenario: &'a Scenario, limits: Limits) -> Self {
        let mut core = Core::new(scenario.versions[0].plan.clone());
        core.step(
            Time::ZERO,
            Input::Clock { unix: CLOCK, asleep: std::time::Duration::ZERO },
            &mut Vec::new(),
        );
        Self { core, oracle: Oracle::new(scenario), world: World::new(limits), now: Time::ZERO }
    }

    /// The phase of the supervisor.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.core.phase()
    }

    pub(super) fn violation(&self, rule: &'static str, what: &str) -> Violation {
        self.oracle.violation(rule, what)
    }

    pub(super) fn has_timer(&self) -> bool {
        self.core.next_deadline().is_some()
    }

    /// Two states with the same fingerprint have the same future.
    #[must_use]
    pub fn fingerprint(&self) -> u128 {
        let mut print = Fingerprint::new(self.now);
        self.core.fingerprint(&mut print);
        self.oracle.fingerprint(&mut print);
        self.world.fingerprint(&mut print);
        print.value()
    }

    /// A start of which the core wants to know how it stands.
    pub(super) fn inspected_start(&self) -> Option<RunId> {
        self.world.inspected.first().copied()
    }

    /// Returns true if nothing can happen any more, except from outside.
    pub(super) fn is_quiet(&self) -> Result<bool, Violation> {
        if self.has_timer() || self.world.is_pending() || !self.world.ready {
            return Ok(false);
        }
        self.oracle.check_idle(&self.core)?;
        Ok(true)
    }

    /// Makes a move.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn apply(&mut self, choice: Move, scenario: &Scenario) -> Result<(), Violation> {
        self.apply_and_show(choice, scenario, |_, _, _, _| {})
    }

    /// Makes a move, and shows the step: its time, input, effects and the core after it.
    pub(super) fn apply_and_show(
        &mut self,
        choice: Move,
        scenario: &Scenario,
        show: impl FnOnce(Time, &Input, &[Effect], &Core),
    ) -> Result<(), Violation> {
        if choice == Move::Race {
            self.now = self.core.next_deadline().unwrap_or(self.now);
            self.world.faults -= 1;
            return Ok(());
        }
        let input = self.input(choice, scenario);
        let mut effects = Vec::new();
        // A panic must not hide the moves that lead to it.
        let step = AssertUnwindSafe(|| self.oracle.step(&mut self.core, self.now, &input, &mut effects));
        let checked = catch_unwind(step).unwrap_or_else(|_| Err(self.violation("core", "the core panics")));
        show(self.now, &input, &effects, &self.core);
        checked?;
        for effect in &effects {
            self.world.carry_out(effect).map_err(|what| self.violation("P4", what))?;
        }
        if self.phase() == Phase::Exited { self.oracle.check_end(&self.core) } else { Ok(()) }
    }

    /// The input of a move, which is no longer pending.
    fn input(&mut self, choice: Move, scenario: &Scenario) -> Input {
        let world = &mut self.world;
        match choice {
            Move::Ready => {
                world.ready = true;
                Input::Ready
            }
            Move::Started(run) => {
                let signal = match world.runs.get(&run) {
                    Some(Program::Starting(signal)) => *signal,
                    _ => None,
                };
                world.runs.insert(run, Program::Running(signal));
                world.inspected.remove(&run);
                Input::Started { run, pid: pid_of(run) }
            }
            Move::StartPending(run) => {
                world.inspected.remove(&run);
                Input::StartPending { run }
            }
            Move::StartFailed(run) => {
                world.runs.remove(&run);
                world.inspected.remove(&run);
                world.faults -= 1;
                let why = StartError { kind: StartErrorKind::NotFound, message: "not found".into() };
                Input::StartFailed { run, why }
            }
            Move::KilledBeforeExec(run, signal) => {
                world.runs.remove(&run);
                world.inspected.remove(&run);
                let why = StartError { kind: StartErrorKind::Killed(signal), message: "killed".into() };
                Input::StartFailed { run, why }
            }
            Move::Exited(run, status, orphans) => {
                world.runs.remove(&run);
                let remains = if orphans {
                    world.faults -= 1;
                    world.rests.insert(run);
                    Remains::Group("another process".into())
                } else {
                    Remains::Nothing
                };
                Input::Exited { run, status, remains }
            }
            Move::Gone(run) => {
                world.rests.remove(&run);
                Input::OrphansGone { run }
            }
            Move::SaysReady(run) => Input::Notified { run, notice: Notice::Ready },
            Move::SaysStopping(run) => {
                world.faults -= 1;
                Input::Notified { run, notice: Notice::Stopping }
            }
            Move::Checked(check, passes) => {
                world.checks.remove(&check);
                Input::CheckDone { check, result: if passes { Ok(()) } else { Err("failed".into()) } }
            }
            Move::Deregistered(job) => {
                world.leaving.remove(&job);
                Input::Deregistered { job }
            }
            Move::Timer => {
                self.now = self.core.next_deadline().unwrap_or(self.now);
                Input::Tick
            }
            Move::Pause => {
                world.faults -= 1;
                let next = self.core.next_deadline().unwrap_or(self.now);
                self.now = self.now + next.since(self.now) / 2;
                Input::Tick
            }
            Move::Race => Input::Tick,
            Move::Terminate => {
                world.terminated = true;
                // One is enough to see that they are refused.
                world.outside = world.outside.min(1);
                Input::Signal(Signal::TERM)
            }
            Move::Interrupt => {
                world.interrupted = true;
                Input::Signal(Signal::INT)
            }
            Move::Signal(_)
            | Move::Instance(_)
            | Move::Maintenance(_)
            | Move::Start(_)
            | Move::Stop(_)
            | Move::Restart(_)
            | Move::Reload(_)
            | Move::Scale(_) => self.input_from_outside(choice, scenario),
        }
    }

    fn input_from_outside(&mut self, choice: Move, scenario: &Scenario) -> Input {
        let world = &mut self.world;
        world.outside = world.outside.saturating_sub(1);
        world.early |= !world.ready;
        let request = match choice {
            Move::Signal(signal) => return Input::Signal(signal),
            Move::Instance(there) => {
                world.instance = there;
                let instance = Instance {
                    id: "w-1".into(),
                    address: "10.0.0.1".into(),
                    port: 80,
                    ..Instance::default()
                };
                let instances = if there { vec![instance] } else { Vec::new() };
                return Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Instances(instances)) };
            }
            Move::Maintenance(on) => {
                world.maintenance = on;
                Request::Maintenance(on)
            }
            Move::Start(job) => Request::Start(job),
            Move::Stop(job) => Request::Stop(job),
            Move::Restart(job) => Request::Restart(job),
            Move::Scale(count) => Request::Scale("a".into(), count),
            Move::Reload(version) => Request::Reload(Box::new(scenario.versions[version].plan.clone())),
            _ => return Input::Tick,
        };
        world.requests += 1;
        Input::Request { id: RequestId(world.requests), request }
    }
}
