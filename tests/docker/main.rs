//! In real containers. `make test-docker` runs these; `scripts/docker` gives them an engine.
//!
//! No image is pulled: there is one of nothing but the binary, and one that has a static busybox too.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

mod codes;
mod engine;
mod health;
mod images;
mod limits;
mod names;
mod orders;
#[path = "../support/deadline.rs"]
mod deadline;
mod reaping;
mod rights;
