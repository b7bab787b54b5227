//! The export of the real binary to a collector, which reads requests with the messages that are generated from OpenTelemetry's
//! official definitions (T6). Debian has no package of a collector.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod collector;
#[path = "../support/idle.rs"]
mod idle;
mod logs;
mod metrics;
mod outages;
#[path = "../support/supervisor.rs"]
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
mod supervisor;
mod traces;
