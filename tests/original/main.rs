//! What the integration tests of the original programs assert, asserted of this one: ContainerPilot 3.8.0 (`version3`) and
//! 2.7.8 (`version2`).
//!
//! The comment of each test names the test of the original and what that asserts. Where this program differs on purpose, the test asserts
//! what it does instead, and the comment names the row of `docs/compat.md`. Configurations, scripts and times are our own.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

#[expect(dead_code, reason = "tests/discovery uses more of it")]
#[path = "../support/consul.rs"]
mod consul;
mod container;
mod harness;
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
#[path = "../support/supervisor.rs"]
mod supervisor;
mod version2;
mod version3;
