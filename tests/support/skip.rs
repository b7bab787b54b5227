//! Tests that cannot run on this machine.

use std::fs::File;
use std::io::Write;
use std::panic::Location;

/// Reports that the rest of a test is not run, and why: on standard error, and in the file that `scripts/test` prints
/// at the end.
#[track_caller]
pub(crate) fn skip(reason: &str) {
    let (thread, caller) = (std::thread::current(), Location::caller());
    let test = thread.name().filter(|name| *name != "main").unwrap_or(caller.file());
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os("CONTAINERPILOT_TEST_SKIPS") {
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        // One write, because tests of several processes append to it.
        file.write_all(format!("{test}: {reason}\n").as_bytes()).unwrap();
    }
}
