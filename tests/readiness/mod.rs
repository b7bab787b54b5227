//! Readiness and the watchdog (H11, H12), with the real binary and with real programs.

mod programs;
mod rules;

use serde_json::Value;
use std::process::Command;

use crate::support::deadline::InTime;
use crate::support::supervisor::Supervisor;

/// What `status --format json JOB` prints.
fn job(run: &Supervisor, name: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_containerpilot"))
        .args(["status", name, "--format", "json"])
        .env("CONTAINERPILOT_SOCKET", run.file("socket"))
        .output_in_time()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits until a job is healthy.
fn wait_healthy(run: &Supervisor, name: &str) {
    crate::support::supervisor::wait_until(&format!("{name} is healthy"), || {
        job(run, name)["health"] == "healthy"
    });
}
