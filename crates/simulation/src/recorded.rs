//! What the world around a core did (B5): programs, checks, watches, locks, files and people, seen from its steps.
//!
//! [`Observer`] looks at each step, whether it is played from a recording or simulated. A [`RecordedWorld`] becomes a
//! [`Scenario`](crate::scenario::Scenario) in `script.rs`: there, programs last as long as they did, from their start.
//! The clocks of a recording and of a simulation differ in milliseconds, because a supervisor is a little late with
//! everything. So that this does not add up, the world is first simulated with the times at which things happened
//! ([`RecordedWorld::aligned`]), and the durations are those of that simulation.

mod observer;
mod other_plan;
mod script;

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::answer::Answer;
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::{Core, Effect, Input, Time};

pub use self::observer::Observer;
pub use self::other_plan::OtherWorld;
pub(crate) use self::script::NextChecks;
pub use self::script::{RecordedScenario, scaled_plans};
use crate::runner::simulate_as_recorded;
use crate::scenario::{Action, CheckAnswer};

/// Looks at the steps of a core.
pub trait Observe {
    /// The core will be told this.
    fn before_step(&mut self, core: &Core, at: Time, input: &Input);

    /// It has decided this.
    fn after_step(&mut self, core: &Core, at: Time, effects: &[Effect]);
}

/// What the world did. Times are those of the core.
#[derive(Clone, Debug, Default)]
pub struct RecordedWorld {
    /// When the supervisor was ready, or when the first step was seen.
    pub begin: Time,
    /// True if the startup was seen.
    pub has_begin: bool,
    /// The system clock at the beginning, if it is known: the time since 1970.
    pub clock: Option<Duration>,
    /// The last step.
    pub end: Time,
    /// True if the supervisor has exited.
    pub has_exited: bool,
    pub(crate) jobs: BTreeMap<String, RecordedJob>,
    /// What watches have found, without repetitions. Those of the configuration are all in it.
    pub(crate) watches: BTreeMap<String, Vec<(Time, Answer)>>,
    /// When the supervisor got and lost locks. Those of the configuration are all in it.
    pub(crate) locks: BTreeMap<String, Vec<(Time, bool)>>,
    pub(crate) files: BTreeMap<String, RecordedFile>,
    pub(crate) actions: Vec<(Time, Action)>,
    /// What a scenario cannot say, as sentences.
    pub left_out: Vec<String>,
}

/// What a job did.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedJob {
    pub(crate) runs: Vec<RecordedRun>,
    /// The checks of a job without a program.
    pub(crate) checks: Vec<RecordedCheck>,
    /// The state at the beginning, if the startup was not seen.
    pub(crate) before: Option<&'static str>,
}

/// A run of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedRun {
    pub(crate) spawned: Time,
    pub(crate) started: Option<Time>,
    pub(crate) failed: Option<(Time, StartErrorKind)>,
    /// True if the start was given up.
    pub(crate) canceled: bool,
    /// What was sent to it: when, the signal, and whether the run was to end by it.
    pub(crate) signals: Vec<(Time, Signal, bool)>,
    pub(crate) exited: Option<(Time, ExitStatus)>,
    /// True if other processes were left in its group.
    pub(crate) has_rest: bool,
    /// When they were gone.
    pub(crate) gone: Option<Time>,
    /// True if its job has `ready`, and how often it must say that it is alive.
    pub(crate) says_ready: bool,
    pub(crate) watchdog: Option<Duration>,
    pub(crate) ready: Option<Time>,
    pub(crate) alive: Option<Time>,
    pub(crate) drain: Option<RecordedCheck>,
    pub(crate) checks: Vec<RecordedCheck>,
}

/// A check, a drain program or the test of a file.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCheck {
    pub(crate) name: String,
    pub(crate) started: Time,
    /// When it was done, or its time was over.
    pub(crate) done: Option<Time>,
    pub(crate) answer: CheckAnswer,
    /// True if something followed from it.
    pub(crate) matters: bool,
    /// True if it was canceled before it was done.
    pub(crate) is_canceled: bool,
}

/// How a file was rendered.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedFile {
    /// When a rendering or the writing began and was done.
    pub(crate) spans: Vec<(Time, Time)>,
    /// The renderings: when each began, and whether it succeeded.
    pub(crate) renderings: Vec<(Time, bool)>,
    pub(crate) tests: Vec<RecordedCheck>,
}

impl RecordedWorld {
    /// A time of the core in a simulation of this world.
    #[must_use]
    pub fn since_begin(&self, at: Time) -> Duration {
        at.since(self.begin)
    }

    pub(crate) fn simulated(&self, at: Time) -> Time {
        Time::ZERO + self.since_begin(at)
    }

    /// The same world, as a simulation sees it: everything happens at the same times, as far as it does in a simulation.
    #[must_use]
    pub fn aligned(&self, plan: &Plan) -> Self {
        let scenario = self.scenario(&[]).scenario;
        let mut observer = Observer::default();
        let _ = simulate_as_recorded(plan, &scenario, self, &mut observer);
        let mut aligned = observer.world();
        let until = Time::ZERO + scenario.end();
        aligned.end_at(until);
        // What did not happen in the simulation stays as it was recorded.
        for (name, recorded) in &self.jobs {
            let job = aligned.jobs.entry(name.clone()).or_default();
            let rest =
                recorded.runs.iter().skip(job.runs.len()).map(|run| run.moved(|at| self.simulated(at)));
            job.runs.extend(rest);
            job.runs.truncate(recorded.runs.len());
            for (run, recorded) in job.runs.iter_mut().zip(&recorded.runs) {
                if recorded.exited.is_none() && recorded.failed.is_none() {
                    run.exited = None;
                }
            }
            job.before = recorded.before;
            job.checks.truncate(recorded.checks.len());
        }
        aligned.jobs.retain(|name, _| self.jobs.contains_key(name));
        Self {
            begin: Time::ZERO,
            end: self.simulated(self.end),
            has_begin: self.has_begin,
            has_exited: self.has_exited,
            clock: self.clock,
            watches: moved(&self.watches, |at| self.simulated(at)),
            locks: moved(&self.locks, |at| self.simulated(at)),
            actions: self.actions.iter().map(|(at, what)| (self.simulated(*at), what.clone())).collect(),
            left_out: self.left_out.clone(),
            ..aligned
        }
    }

    /// Removes what happened after a time, such as the end of a simulation.
    fn end_at(&mut self, end: Time) {
        for job in self.jobs.values_mut() {
            job.runs.retain(|run| run.spawned < end);
            job.checks.retain(|check| check.started < end);
            for run in &mut job.runs {
                run.exited = run.exited.filter(|(at, _)| *at < end);
                run.signals.retain(|(at, ..)| *at < end);
                run.checks.retain(|check| check.started < end);
            }
        }
    }
}

fn moved<T: Clone>(
    all: &BTreeMap<String, Vec<(Time, T)>>,
    to: impl Fn(Time) -> Time,
) -> BTreeMap<String, Vec<(Time, T)>> {
    let each = |list: &Vec<(Time, T)>| list.iter().map(|(at, what)| (to(*at), what.clone())).collect();
    all.iter().map(|(name, list)| (name.clone(), each(list))).collect()
}

impl RecordedRun {
    /// The same at other times.
    fn moved(&self, to: impl Fn(Time) -> Time) -> Self {
        let check = |check: &RecordedCheck| check.moved(&to);
        Self {
            spawned: to(self.spawned),
            started: self.started.map(&to),
            failed: self.failed.map(|(at, why)| (to(at), why)),
            signals: self.signals.iter().map(|(at, signal, ends)| (to(*at), *signal, *ends)).collect(),
            exited: self.exited.map(|(at, status)| (to(at), status)),
            gone: self.gone.map(&to),
            ready: self.ready.map(&to),
            alive: self.alive.map(&to),
            drain: self.drain.as_ref().map(check),
            checks: self.checks.iter().map(check).collect(),
            ..*self
        }
    }
}

impl RecordedCheck {
    fn moved(&self, to: impl Fn(Time) -> Time) -> Self {
        Self { started: to(self.started), done: self.done.map(to), ..self.clone() }
    }
}
