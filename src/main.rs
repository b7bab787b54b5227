//! containerpilot: an init system for containers.
//!
//! The binary is the thinnest of the three floors: it reads files, asks the system, prints, and decides nothing.
//!
//! The entry is our own, see `sys`: what the standard library does before `main` costs a tenth of our start.
#![cfg_attr(not(test), no_main)]

mod cli;
mod control;
mod discovery;
mod effects;
mod files;
mod host;
mod inquiry;
mod json;
mod logs;
mod mailbox;
mod memory;
mod mishap;
mod net;
mod probe;
mod quiet;
mod reaper;
mod reload;
mod resolve;
mod runtime;
mod signals;
mod source;
mod spawn;
mod sys;
mod telemetry;
#[cfg(test)]
mod testing;
mod users;

#[cfg(not(test))]
sys::entry!(cli::main);

/// The tests have an entry of their own.
#[cfg(test)]
fn main() {
    cli::main(&[]);
}
