//! What a program does by default.
//!
//! A *task* exits by itself after a second; a *service* runs until it is stopped. A configuration does not
//! distinguish the two, but no job waits for the exit of a service, and a task has no health checks.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Job, Plan, Repeat, RequiredSource, Restarts, Role, Trigger};

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

/// How long a run of a job lasts.
#[must_use]
pub fn lifetime(plan: &Plan, job: &Job) -> Lifetime {
    match job.when.trigger {
        // It must exit before the next tick.
        Trigger::Interval { every: interval, .. } => Lifetime::For(TASK.min(interval / 2)),
        Trigger::Cron { .. } | Trigger::Manual if job.health.is_none() && job.service.is_none() => {
            Lifetime::For(TASK)
        }
        _ if is_task(plan, job) => Lifetime::For(TASK),
        _ => Lifetime::Forever,
    }
}

fn is_task(plan: &Plan, job: &Job) -> bool {
    if job.health.is_some() || job.service.is_some() || job.restarts == Restarts::Unlimited {
        return false;
    }
    match job.role {
        Role::Main | Role::Coprocess | Role::Telemetry => return false,
        Role::Sensor(_) => return true,
        Role::User => {}
    }
    let each = job.when.repeat() == Repeat::Each;
    each || job.when.has_stop_event() || is_awaited(plan, &job.name)
}

/// Returns true if another job waits for the exit of this one, or requires it.
fn is_awaited(plan: &Plan, name: &str) -> bool {
    let is_exit = |code: Code| matches!(code, Code::ExitSuccess | Code::ExitFailed);
    let patterns = plan.jobs.iter().filter(|job| job.name != name).flat_map(|job| job.when.patterns());
    patterns.into_iter().any(|event| is_exit(event.code) && event.source == Source::Job(name.to_owned()))
        || plan.jobs.iter().any(|job| requires(job, name))
}

/// Returns true if a job requires another one (W18). Without checks, that one must have succeeded.
fn requires(job: &Job, name: &str) -> bool {
    job.requires.iter().any(|one| matches!(&one.source, RequiredSource::Job(source) if source == name))
}
