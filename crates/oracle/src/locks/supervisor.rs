//! A supervisor with one job that requires the lock: the real core and the real requests, in a world of its own.

use containerpilot_core::catalog::lock_requests::LockRequests;
use containerpilot_core::ids::{JobIx, LockIx};
use containerpilot_core::lock_report::LockReport;
use containerpilot_core::plan::{Lock, Plan, RequiredSource, Requirement, Restarts};
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_simulation::world::script::{ProgramScript, Reaction, Script};
use containerpilot_simulation::world::{Item, World};

use super::schedule::Program;
use crate::random::{consul, plain_job, plain_plan};
use crate::twin::Pair;

impl Script for Program {
    type Event = ();

    fn program(&mut self, _plan: &Plan, _job: JobIx, _now: Time) -> ProgramScript {
        ProgramScript {
            exits_after: self.exits_after,
            on_signal: self.on_term.map_or(Reaction::Ignores, |after| Reaction::Exits(after, None)),
            dies_after: Some(self.dies_after),
            ..ProgramScript::default()
        }
    }
}

/// One life of a supervisor.
pub(super) struct Supervisor {
    core: Pair,
    world: World<Program>,
    pub(super) requests: LockRequests,
    reported: Option<LockReport>,
    /// The number of the request in progress.
    pub(super) request: u64,
    pub(super) frozen_until: Time,
    pub(super) is_over: bool,
}

/// The fencing number of a process that was created.
pub(super) type Fencing = Option<u64>;

pub(super) fn plan(lock: &Lock, program: Program) -> Plan {
    let mut job = plain_job("app");
    job.restarts = Restarts::Unlimited;
    job.requires = vec![Requirement { source: RequiredSource::Lock(lock.name.clone()), bind: true }];
    job.stop.drain = containerpilot_core::plan::Drain::For(program.drain);
    Plan { locks: vec![lock.clone()], catalog: consul(), ..plain_plan(vec![job]) }
}

impl Supervisor {
    pub(super) fn new(lock: &Lock, program: Program, seed: u64) -> Self {
        let plan = plan(lock, program);
        let stop_time = plan.lock_stop_times().first().copied().unwrap_or_default();
        let core = Core::new(plan);
        Self {
            requests: LockRequests::new(lock, stop_time, seed),
            world: World::new(program, core.shared_plan(), None),
            core: Pair::new(core, seed),
            reported: None,
            request: 0,
            frozen_until: Time::ZERO,
            is_over: false,
        }
    }

    /// When its core or its process has something to do.
    pub(super) fn next(&self) -> Option<Time> {
        self.world.next().into_iter().chain(self.core.next_deadline()).min()
    }

    /// Takes what is due.
    pub(super) fn take(&mut self, now: Time) -> Input {
        self.world.wait(now);
        match self.world.advance(self.core.next_deadline()) {
            Some(Item::Input(input)) => input,
            Some(Item::Script(()) | Item::Nothing) | None => Input::Tick,
        }
    }

    /// Returns true if a process runs.
    pub(super) fn runs_at(&self, now: Time) -> bool {
        self.world.has_processes_at(now)
    }

    /// Passes on what is known about the lock, if that has changed.
    pub(super) fn report(&mut self, now: Time, created: &mut Vec<Fencing>) -> Result<(), String> {
        let report = self.requests.report();
        if self.reported.as_ref() != Some(&report) {
            self.reported = Some(report.clone());
            self.input(now, Input::Lock { lock: LockIx(0), report }, created)?;
        }
        Ok(())
    }

    pub(super) fn input(
        &mut self,
        now: Time,
        input: Input,
        created: &mut Vec<Fencing>,
    ) -> Result<(), String> {
        self.world.wait(now);
        let mut effects = Vec::new();
        self.core.step(now, input, &mut effects)?;
        for effect in effects {
            self.world.carry_out(&effect);
            match effect {
                Effect::Spawn { environment, .. } => {
                    let mut all = environment.iter();
                    let number = all.find(|(name, _)| name.starts_with("CONTAINERPILOT_LOCK_"));
                    created.push(number.and_then(|(_, value)| value.parse().ok()));
                }
                Effect::ReleaseLock { .. } => self.requests.release(now),
                Effect::Exit(_) => {
                    self.is_over = true;
                    self.requests.release(now);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
