//! What the world does where the scenario says nothing: programs, checks, the catalog, watches, locks and files.
//!
//! A *task* exits by itself after a second; a *service* runs until it is stopped. A configuration does not
//! distinguish the two, but no job waits for the exit of a service, and a task has no health checks.

use std::collections::BTreeSet;
use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::JobIx;
use containerpilot_core::input::ExitStatus;
use containerpilot_core::plan::{
    DependencyEdge, DependencyKind, Dependent, Job, Plan, Repeat, Restarts, Role, Trigger, Watch,
};

use crate::scenario::{CheckAnswer, FileScript, Lifetime, LockChanges, Observation};
use crate::world::script::{
    AgentScript, CheckEnd, CheckScript, ProgramScript, Reaction, ReportScript, ResponseScript, Rest,
};

/// How long a task takes.
pub const TASK: Duration = Duration::from_secs(1);
/// How long a drain program takes.
const DRAIN: Duration = Duration::from_millis(100);
/// How long a program takes to exit on a signal.
const STOP: Duration = Duration::from_millis(100);
/// How long a check takes, and the rendering of a file.
pub const CHECK: Duration = Duration::from_millis(10);
/// When a watch of a service that no job of the configuration advertises sees an instance, and when the supervisor gets
/// a lock.
const SEEN: Duration = Duration::from_secs(1);
/// How long a request to Consul takes.
const REQUEST_MILLISECONDS: u64 = 5;
/// The system clock at the start: 2026-01-01T00:00:00Z.
pub const CLOCK: Duration = Duration::from_secs(1_767_225_600);
/// The end of a simulation whose scenario names no later time.
const END: Duration = Duration::from_secs(60);
/// How long a simulation continues after the last time that the scenario names.
const TIME_AFTER_LAST: Duration = Duration::from_secs(30);

/// When the supervisor is stopped, if it still runs. `last` is the last time that the scenario names.
pub(crate) fn end(last: Option<Duration>) -> Duration {
    last.map_or(END, |last| last.saturating_add(TIME_AFTER_LAST).max(END))
}

/// The jobs of a plan that others wait for to exit, or require.
pub struct AwaitedJobs(BTreeSet<String>);

impl AwaitedJobs {
    /// Those of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let is_named =
            |job: JobIx, name: &str| plan.jobs.get(job.index()).is_some_and(|job| job.name == name);
        let awaited = |edge: DependencyEdge| match (edge.kind, edge.source, edge.dependent) {
            (
                DependencyKind::Event { code: Code::ExitSuccess | Code::ExitFailed, .. },
                Source::Job(name),
                Dependent::Job(job),
            ) if !is_named(job, &name) => Some(name),
            // Without checks, the required job must have succeeded (W18).
            (DependencyKind::Requires { .. }, Source::Job(name), _) => Some(name),
            _ => None,
        };
        Self(plan.dependencies().into_iter().filter_map(awaited).collect())
    }
}

/// A run of the program of a job.
pub(crate) fn program(awaited: &AwaitedJobs, job: Option<&Job>) -> ProgramScript {
    let lifetime = job.map_or(Lifetime::Forever, |job| lifetime(awaited, job));
    ProgramScript {
        starts_in: Some(Duration::ZERO),
        start_error: None,
        exits_after: lifetime.time(),
        status: ExitStatus::Code(0),
        on_signal: Reaction::Exits(STOP, None),
        rest: Rest::Nothing,
        reports: ReportScript { ready: Some(Duration::ZERO), ..ReportScript::default() },
        ..ProgramScript::default()
    }
}

/// The result of a check, or of the test of a file, and how long it takes.
pub(crate) const fn check() -> (CheckAnswer, Duration) {
    (CheckAnswer::Pass, CHECK)
}

/// A run of a drain program.
pub(crate) const fn drain() -> CheckScript {
    CheckScript { takes: Some(DRAIN), end: CheckEnd::Passes, cancel_takes: Duration::ZERO }
}

/// The rendering of a file.
pub(crate) const fn file() -> FileScript {
    FileScript { takes: CHECK, fails: Vec::new(), tests: Vec::new() }
}

/// The Consul agent, as long as it is reachable.
pub(crate) const fn agent() -> AgentScript {
    AgentScript {
        deregister_critical_after: None,
        responses: Vec::new(),
        usual: ResponseScript::Done(REQUEST_MILLISECONDS),
        outages: Vec::new(),
        faults: Vec::new(),
        seed: 0,
    }
}

/// What a watch sees; `None` if it follows the catalog, because a job of the plan advertises what it watches.
pub(crate) fn observations(plan: &Plan, watch: &Watch) -> Option<Vec<Observation>> {
    let is_advertised = plan.jobs.iter().any(|job| job.is_seen_by(watch));
    (!is_advertised).then(|| vec![Observation { at: SEEN, instances: 1, value: None, generation: 0 }])
}

/// From when on the supervisor has a lock.
pub(crate) fn lock_changes() -> LockChanges {
    vec![(SEEN, true)]
}

/// How long a run of a job lasts.
#[must_use]
pub fn lifetime(awaited: &AwaitedJobs, job: &Job) -> Lifetime {
    match job.when.trigger {
        // It must exit before the next tick.
        Trigger::Interval { every: interval, .. } => Lifetime::For(TASK.min(interval / 2)),
        Trigger::Cron { .. } | Trigger::Manual if job.health.is_none() && job.service.is_none() => {
            Lifetime::For(TASK)
        }
        _ if is_task(awaited, job) => Lifetime::For(TASK),
        _ => Lifetime::Forever,
    }
}

fn is_task(awaited: &AwaitedJobs, job: &Job) -> bool {
    if job.health.is_some() || job.service.is_some() || job.restarts == Restarts::Unlimited {
        return false;
    }
    match job.role {
        Role::Main | Role::Coprocess | Role::Telemetry => return false,
        Role::Sensor(_) => return true,
        Role::User => {}
    }
    let each = job.when.repeat() == Repeat::Each;
    each || job.when.has_stop_event() || awaited.0.contains(&job.name)
}
