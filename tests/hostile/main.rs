//! Hostile jobs: no matter what a job does, the supervisor answers `ping` within a second and obeys SIGTERM within the time that
//! its stop timeout allows.
//!
//! Each test runs the real binary in a PID namespace of its own, as PID 1 or as a child of a small init, so that nothing
//! survives the test. The hostile programs are in `hostile.c`. Only root can start jobs as another user, so the tests
//! are skipped for other users.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod before_exec;
mod cgroups;
mod configuration;
#[path = "../support/delegated.rs"]
mod delegated;
mod escapes;
mod fixture;
#[path = "../support/http_request.rs"]
#[expect(dead_code, reason = "tests/discovery uses more of it")]
mod http_request;
mod loading;
mod notices;
mod output;
mod resources;
mod servers;
mod signals;
mod stop_budget;
#[expect(dead_code, reason = "tests/supervisor uses more of it")]
#[path = "../support/supervisor.rs"]
mod supervisor;
