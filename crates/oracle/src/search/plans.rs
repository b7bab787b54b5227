//! The plans of the exhaustive search: all pairs and triples of a few kinds of jobs.
//!
//! Job `a` is one of [`sources`]: it differs in what it does by itself. Job `b` is one of [`dependents`]: it waits for `a`,
//! for the watch, for a signal or for time. Job `c`, if there is one, waits for either. Each plan has reloads to itself,
//! to one with a changed `a`, to one with a changed `b`, and to one in which `a` is replaced by another job.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Backoff, Check, Command, EventPattern, Exec, Health, Job, OnCompletion, OnUnhealthy, Plan, Probe, Repeat,
    RequiredSource, Requirement, Restarts, Role, Signal, Status, Trigger, Watch, WatchKind,
};

use crate::random::{consul, plain_job, plain_plan, service};
use crate::scenario::{Scenario, Version};

/// A plan of the search, with the plans that reloads may use.
#[derive(Clone, Debug)]
pub struct SmallPlan {
    /// The kinds of its jobs.
    pub name: String,
    /// The plan, and the plans of reloads.
    pub versions: Vec<Plan>,
}

impl SmallPlan {
    fn new(jobs: &[&(&str, Job)]) -> Self {
        let name = jobs.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("+");
        let names = ["a", "b", "c"].into_iter();
        let named = jobs.iter().zip(names).map(|((_, job), name)| {
            let mut job = Job { name: name.into(), ..job.clone() };
            if job.service.is_some() {
                job.service = Some(service(name, job.service.and_then(|service| service.initial_status)));
            }
            job
        });
        let jobs: Vec<Job> = named.collect();
        let mut versions = vec![jobs.clone()];
        for changed in 0..2 {
            let mut other = jobs.clone();
            if let Some(Exec::Program(exec)) = other.get_mut(changed).map(|job| &mut job.exec) {
                exec.arguments.push("changed".into());
                versions.push(other);
            }
        }
        let mut other = jobs;
        other[0] = Job { name: "n".into(), ..plain_job("n") };
        other.reverse();
        versions.push(other);
        Self { name, versions: versions.into_iter().map(plan).collect() }
    }

    /// The same as a scenario, for the oracle.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let versions = self
            .versions
            .iter()
            .map(|plan| Version { plan: plan.clone(), scripts: Vec::new(), scaled_from: None })
            .collect();
        Scenario {
            versions,
            actions: Vec::new(),
            ready_at: Duration::ZERO,
            order: 0,
            late: false,
            max_steps: 0,
        }
    }
}

fn plan(jobs: Vec<Job>) -> Plan {
    let watched = |event: &EventPattern| matches!(event.source, Source::Watch(_));
    let watches = jobs.iter().any(|job| job.when.patterns().iter().any(watched));
    let watch = Watch {
        name: "w".into(),
        interval: Duration::from_secs(1),
        kind: WatchKind::Service { tag: None, dc: None },
    };
    Plan {
        watches: watches.then_some(watch).into_iter().collect(),
        catalog: consul(),
        stop_timeout: Duration::from_secs(1),
        ..plain_plan(jobs)
    }
}

/// The signal that a pattern waits for.
pub(super) fn signal_of(event: &EventPattern) -> Option<Signal> {
    match event.source {
        Source::Signal(signal) => Some(signal),
        _ => None,
    }
}

/// All pairs.
#[must_use]
pub fn pairs() -> Vec<SmallPlan> {
    let (sources, dependents) = (sources(), dependents());
    let pairs = sources.iter().flat_map(|a| dependents.iter().map(move |b| [a, b]));
    pairs.map(|jobs| SmallPlan::new(&jobs)).collect()
}

/// All triples.
#[must_use]
pub fn triples() -> Vec<SmallPlan> {
    let (sources, dependents, thirds) = (sources(), dependents(), thirds());
    let pairs = sources.iter().flat_map(|a| dependents.iter().map(move |b| (a, b)));
    let triples = pairs.flat_map(|(a, b)| thirds.iter().map(move |c| [a, b, c]));
    triples.map(|jobs| SmallPlan::new(&jobs)).collect()
}

const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn job() -> Job {
    let backoff = Backoff { initial: millis(500), max: millis(500), reset: millis(1_000) };
    Job { backoff: Some(backoff), ..plain_job("job") }
}

fn healthy(on_unhealthy: OnUnhealthy) -> Option<Health> {
    let check = Check {
        name: "check".into(),
        probe: Probe::Exec(Command { program: "check".into(), arguments: Vec::new() }),
        interval: millis(200),
        timeout: millis(200),
        failures: 1,
        successes: 1,
        start_period: Duration::ZERO,
        raw_output: false,
    };
    Some(Health { checks: vec![check], ttl: Duration::from_secs(15), heartbeat: None, on_unhealthy })
}

/// What job `a` does by itself.
fn sources() -> Vec<(&'static str, Job)> {
    let checked = || Job { health: healthy(OnUnhealthy::Report), ..job() };
    let advertised = || Job { service: Some(service("a", None)), ..checked() };
    let mut draining = advertised();
    draining.stop.drain = millis(500);
    let mut periodic = job();
    periodic.when.trigger = Trigger::every(millis(1_000));
    (periodic.timeout, periodic.restarts) = (Some(millis(1_000)), Restarts::Unlimited);
    let mut limited = periodic.clone();
    (limited.timeout, limited.restarts) = (None, Restarts::Limited(1));
    let mut late = job();
    late.when.trigger = event(Source::Signal(Signal::HUP), Code::Signal, Repeat::Each);
    late.when.timeout = Some(millis(500));
    let mut hooked = job();
    hooked.stop.hook_timeout = Some(millis(500));
    vec![
        ("once", job()),
        ("restarts", Job { restarts: Restarts::Limited(1), ..job() }),
        ("unlimited", Job { restarts: Restarts::Unlimited, ..job() }),
        ("checked", checked()),
        ("advertised", advertised()),
        ("interval", periodic),
        ("draining", draining),
        ("interval2", limited),
        ("initial", Job { service: Some(service("a", Some(Status::Warning))), ..checked() }),
        (
            "unhealthy-restart",
            Job { health: healthy(OnUnhealthy::Restart), restarts: Restarts::Limited(1), ..advertised() },
        ),
        ("elsewhere", Job { exec: Exec::Nothing, ..advertised() }),
        ("timeout", Job { timeout: Some(millis(1_000)), ..job() }),
        ("on-failure", Job { on_failure: OnCompletion::Shutdown, ..job() }),
        ("on-success", Job { on_success: OnCompletion::Shutdown, ..job() }),
        ("hook-timeout", hooked),
        ("start-timeout", late),
        ("coprocess", Job { role: Role::Coprocess, restarts: Restarts::Unlimited, ..job() }),
    ]
}

fn pattern(source: Source, code: Code) -> EventPattern {
    EventPattern { source, code }
}

fn event(source: Source, code: Code, repeat: Repeat) -> Trigger {
    Trigger::Event { event: pattern(source, code), repeat }
}

fn of_job(name: &str) -> Source {
    Source::Job(name.into())
}

fn triggered(trigger: Trigger) -> Job {
    let mut job = job();
    job.when.trigger = trigger;
    job
}

/// Requires job `a` (W18).
fn requires(bind: bool) -> Vec<Requirement> {
    vec![Requirement { source: RequiredSource::Job("a".into()), bind }]
}

/// What job `b` waits for.
fn dependents() -> Vec<(&'static str, Job)> {
    let (once, each) = (Repeat::Once, Repeat::Each);
    let after = |code, repeat| triggered(event(of_job("a"), code, repeat));
    let watch = || Source::Watch("w".into());
    let hup = || Source::Signal(Signal::HUP);
    let mut timed = after(Code::Healthy, once);
    timed.when.timeout = Some(millis(500));
    let mut periodic = triggered(Trigger::every(millis(1_000)));
    (periodic.timeout, periodic.restarts) = (Some(millis(1_000)), Restarts::Unlimited);
    vec![
        ("startup", job()),
        ("once-exit-success", after(Code::ExitSuccess, once)),
        ("each-exit-failed", after(Code::ExitFailed, each)),
        ("once-healthy", after(Code::Healthy, once)),
        ("each-unhealthy", after(Code::Unhealthy, each)),
        ("once-stopping", after(Code::Stopping, once)),
        ("each-stopping", after(Code::Stopping, each)),
        ("once-stopped", after(Code::Stopped, once)),
        ("each-signal", triggered(event(hup(), Code::Signal, each))),
        ("each-changed", triggered(event(watch(), Code::Changed, each))),
        (
            "all",
            triggered(Trigger::All {
                conditions: vec![pattern(of_job("a"), Code::Healthy), pattern(watch(), Code::Healthy)],
                repeat: each,
            }),
        ),
        (
            "any",
            triggered(Trigger::Any {
                conditions: vec![pattern(of_job("a"), Code::ExitSuccess), pattern(hup(), Code::Signal)],
                repeat: each,
            }),
        ),
        ("interval", periodic),
        ("restarting-hook", Job { restarts: Restarts::Limited(2), ..after(Code::Stopping, once) }),
        ("each-exit-success", Job { restarts: Restarts::Limited(1), ..after(Code::ExitSuccess, each) }),
        ("once-exit-failed", after(Code::ExitFailed, once)),
        ("each-healthy", after(Code::Healthy, each)),
        ("once-unhealthy", after(Code::Unhealthy, once)),
        ("each-stopped", after(Code::Stopped, each)),
        ("once-timer-expired", after(Code::TimerExpired, once)),
        ("once-watch-healthy", triggered(event(watch(), Code::Healthy, once))),
        ("each-watch-unhealthy", triggered(event(watch(), Code::Unhealthy, each))),
        ("shutdown", triggered(event(Source::Global, Code::Shutdown, once))),
        ("maintenance", triggered(event(Source::Global, Code::EnterMaintenance, each))),
        ("healthy-in-time", timed),
        ("requires", Job { requires: requires(false), ..job() }),
        ("bound", Job { requires: requires(true), restarts: Restarts::Limited(1), ..job() }),
        (
            "all-exits",
            triggered(Trigger::All {
                conditions: vec![pattern(of_job("a"), Code::ExitSuccess), pattern(hup(), Code::Signal)],
                repeat: once,
            }),
        ),
    ]
}

/// What job `c` waits for.
fn thirds() -> Vec<(&'static str, Job)> {
    let (once, each) = (Repeat::Once, Repeat::Each);
    let after = |source, code, repeat| triggered(event(of_job(source), code, repeat));
    vec![
        ("each-b-exit-success", after("b", Code::ExitSuccess, each)),
        ("once-a-stopping", after("a", Code::Stopping, once)),
        ("once-b-stopping", Job { restarts: Restarts::Limited(1), ..after("b", Code::Stopping, once) }),
        ("once-b-stopped", after("b", Code::Stopped, once)),
        (
            "all-a-b",
            triggered(Trigger::All {
                conditions: vec![
                    pattern(of_job("a"), Code::ExitSuccess),
                    pattern(of_job("b"), Code::ExitSuccess),
                ],
                repeat: once,
            }),
        ),
        (
            "each-a-b-stopping",
            triggered(Trigger::Any {
                conditions: vec![pattern(of_job("a"), Code::Stopping), pattern(of_job("b"), Code::Stopping)],
                repeat: each,
            }),
        ),
        (
            "any-a-b",
            triggered(Trigger::Any {
                conditions: vec![
                    pattern(of_job("a"), Code::ExitFailed),
                    pattern(of_job("b"), Code::ExitFailed),
                ],
                repeat: each,
            }),
        ),
    ]
}
