//! containerpilot: an init system for containers.
//!
//! The binary is the thinnest of the three floors: it reads files, asks the system, prints, and decides nothing.

mod cli;
mod discovery;
mod effects;
mod files;
mod host;
mod inquiry;
mod logs;
mod mailbox;
mod net;
mod probe;
mod reaper;
mod runtime;
mod signals;
mod spawn;
mod sys;
#[expect(dead_code, reason = "the server that shows them follows")]
mod telemetry;
#[cfg(test)]
mod testing;
mod users;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    cli::main(&args)
}
