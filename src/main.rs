//! containerpilot: an init system for containers.
//!
//! The binary is the thinnest of the three floors: it reads files, asks the system, prints, and decides nothing.

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

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    ExitCode::from(cli::main(&arguments))
}
