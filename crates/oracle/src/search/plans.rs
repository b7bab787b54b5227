//! The plans of the exhaustive search: all pairs and triples of a few kinds of jobs.
//!
//! Job `a` is one of [`sources`]: it differs in what it does by itself. Job `b` is one of [`dependents`]: it waits for `a`,
//! for the watch, for a signal or for time. Job `c`, if there is one, waits for either. Each plan has reloads to itself,
//! to one with a changed `a`, to one with a changed `b`, to one that adjusts `a` without a restart, and to one in which `a` is
//! replaced by another job. Some pairs have two replicas of `a`, and can be scaled.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    Action, Backoff, Check, Command, Drain, EventPattern, Exec, Health, Job, OnCompletion, OnUnhealthy, Plan,
    Probe, Ready, Repeat, ReplicaGroup, RequiredSource, Requirement, Restarts, Role, Signal, Status, Target,
    Trigger, Watch, WatchKind,
};

use crate::random::{consul, every_minute, plain_job, plain_plan, service};
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
        versions.push(adjusted(jobs.clone()));
        let mut other = jobs;
        other[0] = Job { name: "n".into(), ..plain_job("n") };
        other.reverse();
        versions.push(other);
        Self { name, versions: versions.into_iter().map(plan).collect() }
    }

    /// Two replicas of a job, and a job that waits for them, with other numbers of replicas (W20).
    fn with_replicas(a: &(&str, Job), b: &(&str, Job)) -> Self {
        let template = Job { name: "a".into(), ..a.1.clone() };
        let group = ReplicaGroup { template, configured: 2, count: 2, ports: None };
        let jobs = group.jobs().chain([Job { name: "b".into(), ..b.1.clone() }]);
        let mut first = plan(jobs.collect());
        first.replicas.push(group);
        let scaled = [1, 3].into_iter().filter_map(|count| first.scaled("a", count).ok());
        let versions = std::iter::once(first.clone()).chain(scaled).collect();
        Self { name: format!("replicas-{}+{}", a.0, b.0), versions }
    }

    /// The same as a scenario, for the oracle.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let versions = self
            .versions
            .iter()
            .map(|plan| {
                let scaled = plan.replicas.first().filter(|group| group.count != group.configured);
                let scaled_from = scaled.map(|group| (0, group.count));
                Version { plan: plan.clone(), scripts: Vec::new(), scaled_from }
            })
            .collect();
        Scenario {
            versions,
            actions: Vec::new(),
            ready_at: Duration::ZERO,
            order: 0,
            late: false,
            max_steps: 0,
            has_twin: false,
            recorded: None,
        }
    }
}

/// The jobs with another definition of the first one that its process keeps (R5).
fn adjusted(mut jobs: Vec<Job>) -> Vec<Job> {
    if let Some(job) = jobs.first_mut() {
        job.restarts = match job.restarts {
            Restarts::Limited(most) => Restarts::Limited(most + 1),
            Restarts::Unlimited => Restarts::Limited(0),
        };
        job.stop.drain = Drain::For(millis(300));
        for check in job.health.iter_mut().flat_map(|health| &mut health.checks) {
            check.interval = millis(300);
        }
    }
    jobs
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
    let with_replicas = |a: &'static str, b: &'static str| {
        let named = |jobs: &[(&'static str, Job)], name| jobs.iter().find(|(one, _)| *one == name).cloned();
        Some(SmallPlan::with_replicas(&named(&sources, a)?, &named(&dependents, b)?))
    };
    let replicas = ["once", "restarts", "checked"].into_iter().flat_map(|a| {
        let waits =
            ["once-exit-success", "each-exit-failed", "once-healthy", "each-stopped", "requires", "bound"];
        waits.into_iter().filter_map(move |b| with_replicas(a, b))
    });
    let replicas: Vec<SmallPlan> = replicas.collect();
    pairs.map(|jobs| SmallPlan::new(&jobs)).chain(replicas).collect()
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
    draining.stop.drain = Drain::For(millis(500));
    let mut drain_program = advertised();
    drain_program.stop.drain = Drain::Until {
        program: Command { program: "drain".into(), arguments: Vec::new() },
        timeout: Some(millis(500)),
    };
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
    let mut ready = Job { ready: Some(Ready::Notify { watchdog: None }), ..checked() };
    for check in ready.health.iter_mut().flat_map(|health| &mut health.checks) {
        check.probe = Probe::Ready;
    }
    let mut cron = triggered(Trigger::Cron { cron: every_minute(), after: None });
    cron.restarts = Restarts::Limited(1);
    vec![
        ("ready", ready),
        ("cron", cron),
        ("once", job()),
        ("restarts", Job { restarts: Restarts::Limited(1), ..job() }),
        ("unlimited", Job { restarts: Restarts::Unlimited, ..job() }),
        ("checked", checked()),
        ("advertised", advertised()),
        ("interval", periodic),
        ("draining", draining),
        ("drain program", drain_program),
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
    if job.is_stop_hook() {
        // Five minutes (S15) would be thousands of checks.
        job.timeout = Some(millis(1_500));
    }
    job
}

/// Requires job `a` (W18).
fn requires(bind: bool) -> Vec<Requirement> {
    vec![Requirement { source: RequiredSource::Job("a".into()), bind }]
}

/// A job with an action (W19).
fn acts(action: Action, trigger: Trigger) -> Job {
    Job { exec: Exec::Action(action), ..triggered(trigger) }
}

fn a() -> Target {
    Target::Job("a".into())
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
        ("each-ready", after(Code::Ready, each)),
        ("do-stop", acts(Action::Stop(a()), event(hup(), Code::Signal, each))),
        ("do-restart", acts(Action::Restart(a()), event(hup(), Code::Signal, each))),
        ("do-start", acts(Action::Start(a()), event(of_job("a"), Code::Stopped, each))),
        ("do-kill", acts(Action::Signal(Signal::KILL, a()), event(hup(), Code::Signal, once))),
        ("do-shutdown", acts(Action::Shutdown(7), event(of_job("a"), Code::ExitFailed, once))),
        ("do-maintenance", acts(Action::Maintenance(true), event(of_job("a"), Code::Unhealthy, each))),
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
