//! The real binary in real containers. `make test-docker` runs these tests; `scripts/docker` starts an engine for them.
//!
//! No image is pulled. One image contains only the binary, the other also a static busybox.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

mod compose_files;
#[path = "../support/deadline.rs"]
mod deadline;
#[path = "../support/docker_compose.rs"]
mod docker_compose;
mod engine;
mod exit_codes;
mod health;
mod images;
mod limits;
mod name_resolution;
mod reaping;
mod signals;
mod users;
