//! containerpilot: an init system for containers.
//!
//! The binary is the thinnest of the three floors: it reads files, asks the system, prints, and decides nothing.

mod cli;
mod files;
mod host;
#[cfg_attr(not(test), expect(dead_code, reason = "the runtime that will use it is not here yet"))]
mod logs;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    cli::main(&args)
}
