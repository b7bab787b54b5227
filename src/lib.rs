//! containerpilot: an init system for containers.
//!
//! This is the runtime layer. It reads files, makes system calls, uses the network and prints; every decision is
//! made in `containerpilot-core`.

mod boot_clock;
mod cli;
mod control;
mod discovery;
mod error_text;
mod failpoints;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod load;
mod logs;
mod messages;
mod net;
mod process;
mod regular_file;
mod runtime;
mod telemetry;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod watches;

use std::ffi::OsString;

/// The version of the program, as the API, telemetry and `version` show it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[doc(hidden)]
pub use process::sys::enter;

/// Runs the program with these arguments, without the name of the program; returns the exit code.
#[must_use]
pub fn run(arguments: &[OsString]) -> u8 {
    cli::main(arguments)
}
