//! `health`: one line and an exit code, for the HEALTHCHECK of an image.

use containerpilot_api::responses::{Health, Job, Status};
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::time_limit;
use containerpilot_command_line::output::print;

use super::client::Client;

/// How many jobs are named.
const MAX_NAMED: usize = 5;

pub(super) fn health(args: &Arguments) -> Result<(), Failure> {
    let client = match time_limit(args)? {
        Some(limit) => Client::of(args).with_timeout(limit),
        None => Client::of(args),
    };
    let (healthy, reason) = match args.rest.first() {
        None => {
            let mut response = client.get("/v3/health")?;
            // An unhealthy container is reported with 503 and the same JSON.
            if response.status == 503 && response.body.starts_with(b"{") {
                response.status = 200;
            }
            let health: Health = response.json()?;
            (health.healthy, health.reason)
        }
        Some(name) => {
            let name = name.to_string_lossy();
            let status: Status = client.get("/v3/status")?.json()?;
            let jobs = status.jobs_named(&name)?;
            let all: Vec<(bool, String)> =
                jobs.iter().map(|job| job_health(&job.name, job, status.maintenance)).collect();
            let healthy = all.iter().all(|(healthy, _)| *healthy);
            let worst = all.into_iter().filter(|(one, _)| *one == healthy).map(|(_, reason)| reason);
            (healthy, worst.collect::<Vec<_>>().join("; "))
        }
    };
    if healthy { print(&format!("{reason}\n")) } else { Err(Failure::Failed(reason)) }
}

fn job_health(name: &str, job: &Job, maintenance: bool) -> (bool, String) {
    match (job.health.as_str(), job.state.as_str()) {
        ("healthy", _) => (true, format!("{name} is healthy")),
        // A job without checks is healthy while it runs.
        ("none", "running") => (true, format!("{name} is running; it has no checks")),
        ("none", state) => (false, format!("{name} {}", state_verb(state))),
        ("unknown", "running") if maintenance => {
            (true, format!("{name} is running; the container is in maintenance mode: checks are suspended"))
        }
        ("unknown", "running") => (false, format!("{name} has not passed its checks yet")),
        ("unknown", state) => (false, format!("{name} {}", state_verb(state))),
        (health, _) => {
            let why = job.failing_check().map_or_else(String::new, |why| format!(": {why}"));
            (false, format!("{name} is {health}{why}"))
        }
    }
}

/// The first sentences about jobs, and how many more there are.
pub(super) fn named(mut sentences: Vec<String>) -> String {
    if sentences.len() > MAX_NAMED {
        let others = sentences.len() - MAX_NAMED;
        sentences.truncate(MAX_NAMED);
        sentences.push(format!("and {others} more"));
    }
    sentences.join("; ")
}

/// `app is running but unhealthy`
pub(super) fn state_and_health(name: &str, state: &str, health: &str) -> String {
    match (state, health) {
        ("running", "unknown") => format!("{name} is running, health unknown"),
        (state, "unknown") => format!("{name} {}", state_verb(state)),
        ("running", "unhealthy") => format!("{name} is running but unhealthy"),
        ("failed", health) => format!("{name} has failed and is {health}"),
        (state, health) => format!("{name} is {state} and {health}"),
    }
}

/// `is running`, `has failed`
pub(super) fn state_verb(state: &str) -> String {
    match state {
        "failed" => "has failed".to_owned(),
        "skipped" | "stopped" => format!("was {state}"),
        state => format!("is {state}"),
    }
}
