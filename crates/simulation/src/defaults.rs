//! What a program does by default.
//!
//! A *task* exits by itself after a second; a *service* runs until it is stopped. A configuration does not
//! distinguish the two, but no job waits for the exit of a service, and a task has no health checks.

use std::collections::BTreeSet;
use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{
    DependencyEdge, DependencyKind, Dependent, Job, Plan, Repeat, Restarts, Role, Trigger,
};

use crate::scenario::Lifetime;

/// How long a task takes.
pub const TASK: Duration = Duration::from_secs(1);
/// How long a drain program takes.
pub const DRAIN: Duration = Duration::from_millis(100);
/// How long a program takes to exit on a signal.
pub const STOP: Duration = Duration::from_millis(100);
/// How long a check takes.
pub const CHECK: Duration = Duration::from_millis(10);
/// When a watch of a service that no job of the configuration advertises sees an instance.
pub const SEEN: Duration = Duration::from_secs(1);
/// How long a request to Consul takes.
pub const REQUEST_MILLISECONDS: u64 = 5;

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
