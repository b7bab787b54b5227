//! The real binary with real processes, files, sockets, Consul, Prometheus and browsers.
//!
//! One binary for all areas: it is linked once, and its threads are busy until the last test ends. An area is a module:
//! `cargo test --test integration hostile::`. A test runs beside all others, so it changes nothing of its own process:
//! no environment variable, working directory, umask, limit or signal handler, and it waits only for its own children.
//! What needs a process of its own is a binary of its own: `faults` (traces processes), `soak` and `outside`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod cli;
mod cli_edge_cases;
mod commands;
mod control;
mod discovery;
mod documentation;
mod failed_tests;
mod hostile;
mod original;
mod otlp;
mod page;
mod peers;
mod readiness;
mod recipes;
mod reload;
mod rules;
mod security;
mod structure;
mod supervisor;
mod support;
mod telemetry;
mod watches;
