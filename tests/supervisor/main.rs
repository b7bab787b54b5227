//! The supervisor from outside: real processes, as a plain process and as PID 1 (P, S).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it does not expect")]

mod badluck;
mod coprocesses;
mod events;
mod health;
mod jobs;
mod legacy;
mod logging;
mod panics;
mod processes;
mod quickstart;
mod stopping;
mod support;
