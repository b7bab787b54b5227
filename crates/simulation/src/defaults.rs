//! What a program usually does, where the scenario says nothing.
//!
//! A *task* ends by itself after a second, a *service* runs until it is stopped. A configuration does not say which is
//! which, but it shows: nobody waits for the end of a service, and nobody checks the health of a task.

use std::time::Duration;

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Job, Plan, Repeat, Restarts, Role, Trigger};

use crate::scenario::Lifetime;

/// How long a task takes.
pub const TASK: Duration = Duration::from_secs(1);
/// How long a program takes to obey a signal that asks it to end.
pub const STOP: Duration = Duration::from_millis(100);
/// How long a check takes.
pub const CHECK: Duration = Duration::from_millis(10);
/// When a watch that no job of the configuration is behind sees an instance.
pub const SEEN: Duration = Duration::from_secs(1);
/// How long a request to the catalog takes.
pub const REQUEST_MILLISECONDS: u64 = 5;

/// How long a run of a job lasts.
#[must_use]
pub fn lifetime(plan: &Plan, job: &Job) -> Lifetime {
    match job.when.trigger {
        // It must not be late for its next turn.
        Trigger::Interval(interval) => Lifetime::For(TASK.min(interval / 2)),
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
    let farewell = |code: Code| matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown);
    let is_hook = job.when.patterns().iter().any(|event| farewell(event.code));
    each || is_hook || is_awaited(plan, &job.name)
}

/// Whether another job waits for the end of this one.
fn is_awaited(plan: &Plan, name: &str) -> bool {
    let end = |code: Code| matches!(code, Code::ExitSuccess | Code::ExitFailed);
    let patterns = plan.jobs.iter().filter(|job| job.name != name).flat_map(|job| job.when.patterns());
    patterns.into_iter().any(|event| end(event.code) && event.source == Source::Job(name.to_owned()))
}
