//! The real binary in real containers. They need a Docker engine: `make test-docker` runs them, and `scripts/docker`
//! starts one.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

mod docker;
mod example;
#[expect(dead_code, reason = "the tests without containers use more of it")]
mod support;
