//! Faults that a world may have, each small enough to be described in a few words.
//!
//! There are two kinds. Something takes longer or happens at another time than by default; a configuration must
//! tolerate that. Or something *fails*; the consequences are worth knowing, but may be intended. `explore.rs` decides
//! which fault is of which kind, and what follows from that for a finding.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use containerpilot_config::duration::exact;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Catalog, Job, Plan, Role, Signal};
use containerpilot_core::rng::Rng;

use crate::defaults::{self, AwaitedJobs};
use crate::scenario::{Action, CheckAnswer, CheckAnswers, Lifetime, Observation, RunScript, Scenario};
use crate::world::script::Period;

/// A deviation from the default behavior.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A task takes longer.
    TakesLonger(String, Duration),
    /// A program takes longer to start.
    StartsLate(String, Duration),
    /// A job becomes healthy later.
    HealthyLate(String, Duration),
    /// A program takes longer to stop.
    StopsLate(String, Duration),
    /// A watch sees its first instance later.
    SeenLate(String, Duration),
    /// The supervisor receives SIGTERM.
    Stop(Duration),
    /// The supervisor receives a signal that jobs wait for.
    Signal(Signal, Duration),
    /// Maintenance mode.
    Maintenance(Duration, Duration),
    /// A program fails, the first time or every time.
    Fails(String, bool),
    /// A program cannot be started.
    CannotStart(String),
    /// A service exits by itself, every time.
    Dies(String, Duration),
    /// A job never becomes healthy.
    NeverHealthy(String),
    /// A job is unhealthy for a while.
    Unhealthy(String, Duration, Duration),
    /// A watch never sees an instance.
    NeverSeen(String),
    /// A watched service disappears and comes back.
    Vanishes(String, Duration, Duration),
    /// The catalog is unreachable for a while.
    CatalogOutage(Duration, Duration),
}

const SECOND: Duration = Duration::from_secs(1);

impl Fault {
    /// Every fault that makes sense for a plan, each once.
    #[must_use]
    pub fn all(plan: &Plan, scenario: &Scenario) -> Vec<Self> {
        let stop = plan.stop_on.first().copied().filter(|_| !plan.stop_on.contains(&Signal::TERM));
        let mut all = vec![stop.map_or(Self::Stop(10 * SECOND), |signal| Self::Signal(signal, 10 * SECOND))];
        let patterns = plan.jobs.iter().flat_map(|job| job.when.patterns());
        let signals: BTreeSet<Signal> = patterns
            .filter_map(|event| match event.source {
                Source::Signal(signal) => Some(signal),
                _ => None,
            })
            .collect();
        all.extend(signals.into_iter().map(|signal| Self::Signal(signal, 10 * SECOND)));
        let patterns = plan.jobs.iter().flat_map(|job| job.when.patterns());
        let maintained = |code: Code| matches!(code, Code::EnterMaintenance | Code::ExitMaintenance);
        if patterns.into_iter().any(|event| maintained(event.code)) {
            all.push(Self::Maintenance(10 * SECOND, 20 * SECOND));
        }
        let awaited = AwaitedJobs::of(plan);
        for job in plan.jobs.iter().filter(|job| job.role != Role::Telemetry) {
            all.extend(Self::of_job(&awaited, job));
        }
        for watch in &plan.watches {
            let advertised = plan.jobs.iter().any(|job| job.is_seen_by(watch));
            if !advertised || scenario.watches.contains_key(&watch.name) {
                let name = &watch.name;
                all.push(Self::SeenLate(name.clone(), 20 * SECOND));
                all.push(Self::NeverSeen(name.clone()));
                all.push(Self::Vanishes(name.clone(), 10 * SECOND, 30 * SECOND));
            }
        }
        if matches!(plan.catalog, Catalog::Consul(_)) {
            all.push(Self::CatalogOutage(5 * SECOND, 60 * SECOND));
        }
        all
    }

    fn of_job(awaited: &AwaitedJobs, job: &Job) -> Vec<Self> {
        let name = || job.name.clone();
        let mut all = Vec::new();
        if job.exec.is_some() {
            all.push(Self::StartsLate(name(), 2 * SECOND));
            all.push(Self::StopsLate(name(), SECOND));
            all.push(Self::CannotStart(name()));
            match defaults::lifetime(awaited, job) {
                Lifetime::For(_) => {
                    all.push(Self::TakesLonger(name(), slow_task(job)));
                    all.push(Self::Fails(name(), true));
                    all.push(Self::Fails(name(), false));
                }
                Lifetime::Forever => all.push(Self::Dies(name(), 15 * SECOND)),
            }
        }
        let checked = |health: &containerpilot_core::plan::Health| {
            health.checks.iter().any(|check| !check.probe.is_passive())
        };
        if job.health.as_ref().is_some_and(checked) {
            all.push(Self::HealthyLate(name(), 20 * SECOND));
            all.push(Self::NeverHealthy(name()));
            all.push(Self::Unhealthy(name(), 10 * SECOND, 40 * SECOND));
        }
        all
    }

    /// The same fault at another, random time.
    #[must_use]
    pub fn varied(self, rng: &mut Rng) -> Self {
        let mut other = |time: Duration| rng.part(time, 1, 200);
        match self {
            Self::TakesLonger(name, time) => Self::TakesLonger(name, other(time / 2)),
            Self::StartsLate(name, time) => Self::StartsLate(name, other(time)),
            Self::HealthyLate(name, time) => Self::HealthyLate(name, other(time)),
            Self::StopsLate(name, time) => Self::StopsLate(name, other(time / 2)),
            Self::SeenLate(name, time) => Self::SeenLate(name, other(time)),
            Self::Stop(time) => Self::Stop(other(time)),
            Self::Signal(signal, time) => Self::Signal(signal, other(time)),
            Self::Maintenance(from, to) => {
                let (from, to) = (other(from), other(to));
                Self::Maintenance(from, from + to)
            }
            Self::Dies(name, time) => Self::Dies(name, other(time)),
            Self::Unhealthy(name, from, to) => {
                let (from, to) = (other(from), other(to));
                Self::Unhealthy(name, from, from + to)
            }
            Self::Vanishes(name, from, to) => {
                let (from, to) = (other(from), other(to));
                Self::Vanishes(name, from, from + to)
            }
            Self::CatalogOutage(from, to) => {
                let (from, to) = (other(from), other(to));
                Self::CatalogOutage(from, from + to)
            }
            same @ (Self::Fails(..) | Self::CannotStart(_) | Self::NeverHealthy(_) | Self::NeverSeen(_)) => {
                same
            }
        }
    }

    /// Adds the fault to a scenario.
    pub fn apply(&self, scenario: &mut Scenario) {
        match self {
            Self::TakesLonger(job, time) => {
                each_run(scenario, job, |run| run.lasts = Some(Lifetime::For(*time)))
            }
            Self::StartsLate(job, time) => {
                each_run(scenario, job, |run| run.starts_in = Some(Lifetime::For(*time)))
            }
            Self::HealthyLate(job, time) => {
                each_run(scenario, job, |run| run.healthy_after = Some(Lifetime::For(*time)));
            }
            Self::StopsLate(job, time) => {
                each_run(scenario, job, |run| run.stops_in = Some(Lifetime::For(*time)));
            }
            Self::CannotStart(job) => {
                each_run(scenario, job, |run| run.fails = Some(StartErrorKind::NotFound));
            }
            Self::Dies(job, time) => each_run(scenario, job, |run| {
                (run.lasts, run.status) = (Some(Lifetime::For(*time)), Some(ExitStatus::Code(1)));
            }),
            Self::NeverHealthy(job) => {
                each_run(scenario, job, |run| run.healthy_after = Some(Lifetime::Forever));
                let all = Period { from: Duration::ZERO, to: None };
                answer(scenario, job, all);
            }
            Self::Unhealthy(job, from, to) => answer(scenario, job, Period { from: *from, to: Some(*to) }),
            Self::Fails(job, every) => {
                let script = scenario.jobs.entry(job.clone()).or_default();
                let first = script.runs.first().cloned().unwrap_or_default();
                let failing = RunScript { status: Some(ExitStatus::Code(1)), ..first.clone() };
                if *every {
                    script.runs = vec![failing];
                } else {
                    script.runs =
                        std::iter::once(failing).chain(script.runs.iter().skip(1).cloned()).collect();
                    if script.runs.len() == 1 {
                        script.runs.push(first);
                    }
                }
            }
            Self::SeenLate(watch, at) => see(scenario, watch, vec![(*at, 1)]),
            Self::NeverSeen(watch) => see(scenario, watch, vec![(Duration::ZERO, 0)]),
            Self::Vanishes(watch, from, to) => {
                see(scenario, watch, vec![(Duration::ZERO, 1), (*from, 0), (*to, 1)]);
            }
            Self::Stop(at) => scenario.actions.push((*at, Action::Signal(Signal::TERM))),
            Self::Signal(signal, at) => scenario.actions.push((*at, Action::Signal(*signal))),
            Self::Maintenance(from, to) => {
                scenario.actions.push((*from, Action::Maintenance(true)));
                scenario.actions.push((*to, Action::Maintenance(false)));
            }
            Self::CatalogOutage(from, to) => scenario.outages.push(Period { from: *from, to: Some(*to) }),
        }
        scenario.actions.sort_by_key(|(at, _)| *at);
    }
}

/// How long a slow task takes. A stop hook takes less: that a very slow one exceeds the stop timeout is obvious.
fn slow_task(job: &Job) -> Duration {
    if job.is_stop_hook() { 2 * SECOND } else { 20 * SECOND }
}

fn each_run(scenario: &mut Scenario, job: &str, change: impl Fn(&mut RunScript)) {
    let script = scenario.jobs.entry(job.to_owned()).or_default();
    if script.runs.is_empty() {
        script.runs.push(RunScript::default());
    }
    script.runs.iter_mut().for_each(change);
}

fn answer(scenario: &mut Scenario, job: &str, period: Period) {
    let script = scenario.jobs.entry(job.to_owned()).or_default();
    script.checks.push(CheckAnswers {
        check: None,
        period,
        answer: CheckAnswer::Fail,
        takes: defaults::CHECK,
    });
}

fn see(scenario: &mut Scenario, watch: &str, observations: Vec<(Duration, u16)>) {
    let observations = observations.into_iter().map(|(at, instances)| Observation {
        at,
        instances,
        value: None,
        generation: 0,
    });
    scenario.watches.insert(watch.to_owned(), observations.collect());
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakesLonger(job, took) => write!(out, "{job} takes {}", exact(*took)),
            Self::StartsLate(job, took) => write!(out, "{job} takes {} to start", exact(*took)),
            Self::HealthyLate(job, took) => write!(out, "{job} becomes healthy only after {}", exact(*took)),
            Self::StopsLate(job, took) => write!(out, "{job} takes {} to stop", exact(*took)),
            Self::SeenLate(watch, at) => write!(out, "watch.{watch} sees no instance before {}", exact(*at)),
            Self::Stop(at) => write!(out, "SIGTERM arrives at {}", exact(*at)),
            Self::Signal(signal, at) => {
                write!(out, "{} arrives at {}", signal, exact(*at))
            }
            Self::Maintenance(from, to) => {
                write!(out, "maintenance mode lasts from {} to {}", exact(*from), exact(*to))
            }
            Self::Fails(job, true) => write!(out, "{job} fails every time"),
            Self::Fails(job, false) => write!(out, "{job} fails the first time"),
            Self::CannotStart(job) => write!(out, "{job} cannot be started"),
            Self::Dies(job, after) => write!(out, "{job} fails after {}", exact(*after)),
            Self::NeverHealthy(job) => write!(out, "{job} never becomes healthy"),
            Self::Unhealthy(job, from, to) => {
                write!(out, "{job} is unhealthy from {} to {}", exact(*from), exact(*to))
            }
            Self::NeverSeen(watch) => write!(out, "watch.{watch} never sees an instance"),
            Self::Vanishes(watch, from, to) => {
                write!(out, "watch.{watch} sees no instance from {} to {}", exact(*from), exact(*to))
            }
            Self::CatalogOutage(from, to) => {
                write!(out, "the catalog is unreachable from {} to {}", exact(*from), exact(*to))
            }
        }
    }
}
