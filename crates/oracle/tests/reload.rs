//! R3, R4: a reload of the same plan changes nothing, and a reload of another one leads to the same state as a start with
//! it. Plans are random; the world has no faults: every program starts at once, runs until its stop signal, and then exits
//! at once; every check passes; the catalog confirms.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::effect::{DesiredService, Effect};
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, Remains};
use containerpilot_core::plan::{DEFAULT_STOP_ON, Drain, Plan, Role, Signal, Trigger};
use containerpilot_core::request::{Reply, Request, RequestId};
use containerpilot_core::rng::Rng;
use containerpilot_core::{Core, Phase, Time};
use containerpilot_oracle::nth_seed;
use containerpilot_oracle::random::scenario;
use containerpilot_simulation::world::pid_of;

/// A core in a world without faults.
struct CalmWorld {
    core: Core,
    now: Time,
    running: BTreeMap<RunId, JobIx>,
    answers: Vec<Reply>,
    /// The number of effects, without answers and log entries.
    effects_seen: usize,
}

impl CalmWorld {
    fn new(plan: Plan) -> Self {
        let mut world = Self {
            core: Core::new(plan),
            now: Time::ZERO,
            running: BTreeMap::new(),
            answers: Vec::new(),
            effects_seen: 0,
        };
        world.step(Input::Ready);
        world
    }

    fn step(&mut self, input: Input) {
        let mut inputs = std::collections::VecDeque::from([input]);
        let mut steps = 0;
        while let Some(input) = inputs.pop_front() {
            steps += 1;
            assert!(steps < 10_000, "the steps have no end");
            let mut effects = Vec::new();
            self.core.step(self.now, input, &mut effects);
            for effect in effects {
                self.effects_seen += usize::from(!matches!(effect, Effect::Reply { .. } | Effect::Log(_)));
                match effect {
                    Effect::Spawn { job, run, .. } => {
                        assert!(!self.running.values().any(|other| *other == job), "P6: a second process");
                        self.running.insert(run, job);
                        inputs.push_back(Input::Started { run, pid: pid_of(run) });
                    }
                    Effect::Kill { run, signal, .. } if self.running.remove(&run).is_some() => {
                        let status = ExitStatus::Signal(signal);
                        inputs.push_back(Input::Exited { run, status, remains: Remains::Nothing });
                    }
                    Effect::RunCheck { run, .. } => inputs.push_back(passed(run)),
                    Effect::Advertise { job, desired: DesiredService::Absent } => {
                        inputs.push_back(Input::Deregistered { job });
                    }
                    Effect::PlanReplaced { moves, .. } => {
                        self.running = std::mem::take(&mut self.running)
                            .into_iter()
                            .filter_map(|(run, job)| Some((run, moves.job(job)?)))
                            .collect();
                        inputs = inputs.into_iter().filter_map(|input| moves.input(input)).collect();
                    }
                    Effect::Reply { reply: answer, .. } => self.answers.push(answer),
                    _ => {}
                }
            }
        }
    }

    /// Waits for a number of deadlines.
    fn wait(&mut self, deadlines: usize) {
        for _ in 0..deadlines {
            let Some(next) = self.core.next_deadline().filter(|_| self.core.phase() == Phase::Running) else {
                return;
            };
            self.now = self.now.max(next);
            self.step(Input::Tick);
        }
    }

    fn reload(&mut self, plan: &Plan) -> Option<Reply> {
        let command = Request::Reload(Box::new(plan.clone()));
        self.step(Input::Request { id: RequestId(1), request: command });
        self.wait(3);
        self.answers.pop()
    }

    /// The state, the health and the desired catalog status of each job.
    fn state(&self) -> Vec<(String, &'static str, Option<bool>, DesiredService)> {
        let jobs = self.core.plan().jobs.iter().enumerate();
        jobs.map(|(nth, job)| {
            let status = self.core.status(JobIx::at(nth));
            (job.name.clone(), status.word(), status.healthy, status.desired)
        })
        .collect()
    }
}

fn passed(check: CheckRunId) -> Input {
    Input::CheckDone { check, result: Ok(()) }
}

/// A random plan whose state does not depend on its history: no exit events, ticks and start timeouts.
fn stable_plan(seed: u64) -> Plan {
    let mut plan = scenario(seed).versions.swap_remove(0).plan;
    plan.stop_timeout = Duration::from_secs(5);
    plan.pass_signals = false;
    plan.stop_on = DEFAULT_STOP_ON.into();
    let is_stable = |code: Code| matches!(code, Code::Startup | Code::Healthy);
    plan.jobs.retain(|job| {
        let patterns = job.when.patterns();
        !job.when.is_periodic()
            && job.when.trigger != Trigger::Never
            && patterns.iter().all(|event| is_stable(event.code))
            && (job.exec.is_some() || job.health.is_some())
            // An action has ended before the reload, and may signal another job.
            && job.exec.action().is_none()
    });
    for job in &mut plan.jobs {
        (job.when.timeout, job.timeout) = (None, None);
        job.stop.drain = Drain::NONE;
        // The number of checks so far does not count.
        let checks = job.health.iter_mut().flat_map(|health| &mut health.checks);
        checks.for_each(|check| check.successes = 1);
    }
    let mut names = std::collections::BTreeSet::new();
    plan.jobs.retain(|job| names.insert(job.name.clone()));
    plan
}

#[test]
fn r3_a_reload_of_the_same_plan_changes_nothing() {
    for nth in 0..2_000 {
        let mut plan = stable_plan(nth_seed(1, nth));
        // C6: coprocesses are restarted by every reload; see the next test.
        plan.jobs.retain(|job| job.role != Role::Coprocess);
        let mut world = CalmWorld::new(plan.clone());
        if world.core.phase() != Phase::Running {
            continue;
        }
        world.wait(3);
        let (before, effects_seen) = (world.state(), world.effects_seen);
        let command = Request::Reload(Box::new(plan));
        world.step(Input::Request { id: RequestId(1), request: command });
        assert_eq!(world.state(), before, "schedule {nth}");
        let Some(Reply::Reloaded(changes)) = world.answers.pop() else { panic!("schedule {nth}: no answer") };
        assert!(changes.restarted.is_empty() && changes.started.is_empty() && changes.stopped.is_empty());
        assert_eq!(world.effects_seen, effects_seen, "schedule {nth}: the reload had effects");
    }
}

#[test]
fn c6_a_reload_of_the_same_plan_restarts_only_coprocesses() {
    let mut seen = 0;
    for nth in 0..2_000 {
        let plan = stable_plan(nth_seed(1, nth));
        let coprocesses = plan.jobs.iter().filter(|job| job.role == Role::Coprocess);
        let coprocesses: Vec<String> = coprocesses.map(|job| job.name.clone()).collect();
        let mut world = CalmWorld::new(plan.clone());
        if coprocesses.is_empty() || world.core.phase() != Phase::Running {
            continue;
        }
        world.wait(3);
        let command = Request::Reload(Box::new(plan));
        world.step(Input::Request { id: RequestId(1), request: command });
        world.wait(10);
        let Some(Reply::Reloaded(changes)) = world.answers.pop() else { panic!("schedule {nth}: no answer") };
        assert!(changes.started.is_empty() && changes.stopped.is_empty(), "schedule {nth}");
        assert_eq!(changes.restarted, coprocesses, "schedule {nth}");
        seen += 1;
    }
    assert!(seen > 50, "only {seen} plans had coprocesses");
}

#[test]
fn r3_a_reload_leads_to_the_same_state_as_a_start() {
    let mut compared = 0;
    for nth in 0..5_000 {
        let seed = nth_seed(2, nth);
        let mut rng = Rng::from_seed(seed);
        let first = stable_plan(seed);
        let mut second = stable_plan(nth_seed(3, nth));
        // Some jobs are in both plans.
        for job in &first.jobs {
            if let Some(same) = second.jobs.iter_mut().find(|other| other.name == job.name)
                && rng.percent(60)
            {
                *same = job.clone();
            }
        }
        (second.watches, second.catalog) = (first.watches.clone(), first.catalog.clone());
        let mut world = CalmWorld::new(first);
        let mut start = CalmWorld::new(second.clone());
        start.wait(4);
        if world.core.phase() != Phase::Running || start.core.phase() != Phase::Running {
            continue;
        }
        world.wait(usize::try_from(rng.below(4)).unwrap_or(0));
        let answer = world.reload(&second);
        let Some(Reply::Reloaded(changes)) = answer else { panic!("schedule {nth}: {answer:?}") };
        assert_eq!(*world.core.plan(), second);
        for (is, expected) in world.state().into_iter().zip(start.state()) {
            // A kept job keeps running even if nothing in the new plan would have started it.
            let goes_on = changes.kept.contains(&is.0) && is.1 == "running" && expected.1 != "running";
            assert!(goes_on || is == expected, "schedule {nth}: {is:?} instead of {expected:?}");
        }
        compared += 1;
        world.step(Input::Signal(Signal::TERM));
        assert_eq!(world.core.phase(), Phase::Exited, "schedule {nth}");
    }
    assert!(compared > 1_000, "only {compared} plans were compared");
}
