//! The telemetry server of the real binary, read by an HTTP client and by a real Prometheus (T1–T3).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod client;
#[path = "../support/delegated.rs"]
#[expect(dead_code, reason = "tests/hostile uses more of it")]
mod delegated;
#[path = "../support/idle.rs"]
mod idle;
mod page;
mod pages;
mod prometheus;
mod sensors;
mod server;
#[path = "../support/supervisor.rs"]
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
mod supervisor;
mod usage;
