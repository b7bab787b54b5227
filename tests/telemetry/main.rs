//! Telemetry from outside: the real binary, read as a scheduler and a real Prometheus read it (T1–T3).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod client;
mod pages;
mod prometheus;
mod sensors;
mod start;
#[path = "../support/supervisor.rs"]
#[expect(dead_code, reason = "the tests of the supervisor need more of it")]
mod supervisor;
