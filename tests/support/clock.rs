//! Other wall clocks for a supervisor.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::deadline::InTime;

/// Runs a program and moves its wall clock by days, back and forth, at every read, or by `CLOCK_SHIFT` seconds. It uses
/// ptrace, because a preloaded library has no effect on a statically linked binary.
const CLOCK_JUMPS: &str = include_str!("clock_jumps.c");

/// Compiles [`CLOCK_JUMPS`] into a new folder. Returns the folder and, if there is a compiler, the program.
pub(crate) fn clock_jumps(test: &str) -> (PathBuf, Option<PathBuf>) {
    let folder = std::env::temp_dir().join(format!("containerpilot-{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("clock_jumps.c"), folder.join("clock_jumps"));
    fs::write(&source, CLOCK_JUMPS).unwrap();
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(&source).status_in_time();
    (folder, compiled.is_ok_and(|status| status.success()).then_some(program))
}
