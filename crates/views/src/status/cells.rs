//! The cells of a job in tables.

use containerpilot_api::responses::Job;
use containerpilot_text::screen::{Cell, Tone};

pub fn state(job: &Job) -> Cell {
    let tone = match job.state.as_str() {
        "running" => Tone::Good,
        "failed" => Tone::Bad,
        "complete" | "stopped" => Tone::Faint,
        _ => Tone::Waiting,
    };
    (tone, job.state.clone())
}

pub fn health(job: &Job) -> Cell {
    match (job.health.as_str(), job.state.as_str()) {
        ("healthy", _) => (Tone::Good, "healthy".to_owned()),
        ("unhealthy", _) => (Tone::Bad, "unhealthy".to_owned()),
        // Only a running job is expected to be healthy.
        ("unknown", "running") => (Tone::Waiting, "unknown".to_owned()),
        _ => (Tone::Plain, "-".to_owned()),
    }
}
