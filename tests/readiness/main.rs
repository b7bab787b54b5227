//! Readiness and the watchdog (H11, H12), with the real binary and with real programs.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod programs;
mod rules;
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
#[path = "../support/supervisor.rs"]
mod supervisor;

use serde_json::Value;
use std::process::Command;

use crate::supervisor::Supervisor;

/// What `status --format json JOB` prints.
fn job(run: &Supervisor, name: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_containerpilot"))
        .args(["status", name, "--format", "json"])
        .env("CONTAINERPILOT_SOCKET", run.file("socket"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits until a job is healthy.
fn wait_healthy(run: &Supervisor, name: &str) {
    supervisor::wait_until(&format!("{name} is healthy"), || job(run, name)["health"] == "healthy");
}
