//! `health`: one line and an exit code, for an image's HEALTHCHECK.

use serde_json::Value;

use super::answer::Look;
use super::client::Client;
use super::flags::Arguments;
use super::{Failure, print, status, time_limit};

/// How many jobs are named.
const MOST: usize = 5;

pub(super) fn health(args: &Arguments) -> Result<(), Failure> {
    let client = match time_limit(args)? {
        Some(limit) => Client::of(args)?.with_timeout(limit),
        None => Client::of(args)?,
    };
    let (healthy, reason) = match args.rest.first() {
        None => {
            let mut answer = client.get("/v3/health")?;
            // Both answers are of one form; which it is says the body.
            if answer.status == 503 && answer.body.starts_with(b"{") {
                answer.status = 200;
            }
            let health = answer.json()?;
            (health.is("healthy") == Some(true), reason(&health))
        }
        Some(name) => {
            let name = name.to_string_lossy();
            let known = client.get("/v3/status")?.json()?;
            let job = status::job(&known, &name)?;
            match (job.text("health"), job.text("state")) {
                ("healthy", _) => (true, format!("{name} is healthy")),
                // Without checks, to run is all that can be asked of it.
                ("none", "running") => (true, format!("{name} is running; it has no checks")),
                ("none", state) => (false, format!("{name} is {state}")),
                ("unknown", "running") if known.is("maintenance") == Some(true) => {
                    (true, format!("{name} is not checked during maintenance"))
                }
                ("unknown", "running") => (false, format!("{name} has not passed its checks yet")),
                ("unknown", state) => (false, format!("{name} is {state}")),
                (health, _) => (false, format!("{name} is {health}{}", status::why_unhealthy(job))),
            }
        }
    };
    if healthy { print(&format!("{reason}\n")) } else { Err(Failure::Failed(reason)) }
}

/// The supervisor's reason, with the jobs that are to blame.
fn reason(health: &Value) -> String {
    let bad = health.list("jobs").iter().filter(|job| job.text("health") != "healthy");
    let mut bad: Vec<String> = bad
        .map(|job| format!("{} is {} and {}", job.text("name"), job.text("state"), job.text("health")))
        .collect();
    if health.is("healthy") == Some(true) || bad.is_empty() {
        return health.text("reason").to_owned();
    }
    if bad.len() > MOST {
        let others = bad.len() - MOST;
        bad.truncate(MOST);
        bad.push(format!("and {others} others"));
    }
    format!("{}: {}", health.text("reason"), bad.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::reason;

    #[test]
    fn x4_health_names_whom_to_look_at() {
        let job = |name: &str, health: &str| json!({ "name": name, "state": "running", "health": health });
        let mut health = json!({ "healthy": false, "reason": "1 of 2 are healthy", "jobs": [job("a", "healthy"), job("b", "unhealthy")] });
        assert_eq!(reason(&health), "1 of 2 are healthy: b is running and unhealthy");
        health["jobs"] = (0..7).map(|nth| job(&format!("j{nth}"), "unknown")).collect();
        assert!(reason(&health).ends_with("j4 is running and unknown, and 2 others"), "{}", reason(&health));
        health["healthy"] = true.into();
        assert_eq!(reason(&health), "1 of 2 are healthy");
    }
}
