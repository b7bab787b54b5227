//! `health`: one line and an exit code, for an image's HEALTHCHECK.

use super::answer::Look;
use super::client::Client;
use super::flags::Arguments;
use super::{Failure, print, status, time_limit};

pub(super) fn health(args: &Arguments) -> Result<(), Failure> {
    let client = match time_limit(args)? {
        Some(limit) => Client::of(args)?.patient(limit),
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
            (health.is("healthy") == Some(true), health.text("reason").to_owned())
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
