//! The export of the real binary to a collector, which reads requests with the messages that are generated from OpenTelemetry's
//! official definitions, and to a real one, which passes everything on to that (T6).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

#[path = "../support/certificates.rs"]
mod certificates;
mod collector;
#[path = "../support/idle.rs"]
mod idle;
mod logs;
mod metrics;
mod outages;
mod real_collector;
#[path = "../support/supervisor.rs"]
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
mod supervisor;
mod traces;
