//! What the tests of several areas share. Each test binary includes this module once.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

pub(crate) mod certificates;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod consul;
pub(crate) mod deadline;
pub(crate) mod delegated;
pub(crate) mod failure;
pub(crate) mod http_client;
pub(crate) mod http_request;
pub(crate) mod http_server;
pub(crate) mod idle;
pub(crate) mod name_server;
pub(crate) mod processes;
pub(crate) mod program;
pub(crate) mod servers;
pub(crate) mod skip;
pub(crate) mod supervisor;
pub(crate) mod telemetry_client;
pub(crate) mod tmux;
