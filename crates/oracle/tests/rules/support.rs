//! A core under test, and plain plans.

use std::time::Duration;

use containerpilot_core::effect::Effect;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, Remains};
use containerpilot_core::plan::{
    Check, Command, EventPattern, Health, Job, OnUnhealthy, Plan, Probe, Repeat, Role, Signal, Trigger,
};
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::{Core, State, Time};
use containerpilot_oracle::random::{plain_job, plain_plan};
use containerpilot_simulation::world::pid_of;

/// A core, and the time.
pub(crate) struct TestCore {
    pub(crate) core: Core,
    pub(crate) now: u64,
}

impl TestCore {
    pub(crate) fn new(jobs: Vec<Job>) -> Self {
        Self::of(plain_plan(jobs))
    }

    pub(crate) fn of(plan: Plan) -> Self {
        Self { core: Core::new(plan), now: 0 }
    }

    /// Steps the core with an input, this many milliseconds after the start.
    pub(crate) fn at(&mut self, now: u64, input: Input) -> Vec<Effect> {
        self.now = now;
        let mut effects = Vec::new();
        self.core.step(Time::from_nanos(now * 1_000_000), input, &mut effects);
        effects
    }

    pub(crate) fn started(&mut self, run: u64) -> Vec<Effect> {
        self.at(self.now, Input::Started { run: RunId(run), pid: pid_of(RunId(run)) })
    }

    pub(crate) fn exited(&mut self, now: u64, run: u64, code: u8) -> Vec<Effect> {
        self.at(
            now,
            Input::Exited { run: RunId(run), status: ExitStatus::Code(code), remains: Remains::Nothing },
        )
    }

    pub(crate) fn checked(&mut self, now: u64, check: u64, passes: bool) -> Vec<Effect> {
        let result = if passes { Ok(()) } else { Err("no".into()) };
        self.at(now, Input::CheckDone { check: CheckRunId(check), result })
    }

    pub(crate) fn state(&self, job: u32) -> State {
        self.core.status(JobIx(job)).state
    }

    pub(crate) fn count(&self, code: Code) -> usize {
        self.core.journal().events().filter(|event| event.code == code).count()
    }
}

pub(crate) fn when(name: &str, source: &str, code: Code, repeat: Repeat) -> Job {
    let trigger = Trigger::Event { event: event(source, code), repeat };
    with_trigger(name, trigger)
}

pub(crate) fn with_trigger(name: &str, trigger: Trigger) -> Job {
    let mut job = plain_job(name);
    job.when.trigger = trigger;
    job
}

pub(crate) fn event(source: &str, code: Code) -> EventPattern {
    let source = if source == "global" { Source::Global } else { Source::Job(source.into()) };
    EventPattern { source, code }
}

pub(crate) fn check(probe: Probe) -> Check {
    let second = Duration::from_secs(1);
    Check {
        name: "check".into(),
        probe,
        interval: second,
        timeout: second,
        failures: 1,
        successes: 1,
        start_period: Duration::ZERO,
        raw_output: false,
    }
}

pub(crate) fn with_health(mut job: Job, checks: Vec<Check>, on_unhealthy: OnUnhealthy) -> Job {
    job.health = Some(Health { checks, ttl: Duration::from_secs(15), heartbeat: None, on_unhealthy });
    job
}

pub(crate) fn exec() -> Probe {
    Probe::Exec(Command { program: "check".into(), arguments: Vec::new() })
}

pub(crate) fn spawned(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Spawn { .. })).count()
}

pub(crate) fn killed(effects: &[Effect]) -> Vec<u8> {
    let signal = |effect: &Effect| match effect {
        Effect::Kill { signal, .. } => Some(signal.0),
        _ => None,
    };
    effects.iter().filter_map(signal).collect()
}

pub(crate) fn exits(effects: &[Effect]) -> Option<u8> {
    effects.iter().find_map(|effect| match effect {
        Effect::Exit(exit) => Some(exit.code),
        _ => None,
    })
}

pub(crate) fn maintenance(on: bool) -> Input {
    Input::Request { id: RequestId(1), request: Request::Maintenance(on) }
}

pub(crate) fn by_hand(request: Request) -> Input {
    Input::Request { id: RequestId(1), request }
}

pub(crate) fn coprocess(name: &str) -> Job {
    let mut job = plain_job(name);
    job.role = Role::Coprocess;
    job
}

/// A reload to the same plan.
pub(crate) fn reload(core: &TestCore, id: u64) -> Input {
    let command = Request::Reload(Box::new(core.core.plan().clone()));
    Input::Request { id: RequestId(id), request: command }
}

/// How many reload requests were answered with success, and how many were refused.
pub(crate) fn reload_answers(effects: &[Effect]) -> (usize, usize) {
    let count = |done: bool| {
        let fits = |answer: &Reply| match answer {
            Reply::Reloaded(_) => done,
            Reply::Refused(_) => !done,
            _ => false,
        };
        effects.iter().filter(|effect| matches!(effect, Effect::Reply { reply, .. } if fits(reply))).count()
    };
    (count(true), count(false))
}

pub(crate) const TERM: Input = Input::Signal(Signal::TERM);
