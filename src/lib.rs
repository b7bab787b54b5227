//! containerpilot: an init system for containers.
//!
//! This is the runtime layer. It reads files, makes system calls, talks to the network and prints; every decision is
//! made in `containerpilot-core`.

mod cli;
mod control;
mod discovery;
#[doc(hidden)]
pub mod fuzzing;
mod load;
mod logs;
mod net;
mod process;
mod runtime;
mod telemetry;
#[cfg(test)]
mod test_support;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    ExitCode::from(cli::main(&arguments))
}
