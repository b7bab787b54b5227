//! Ends the processes that a test has started, wherever their parents are.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::deadline::holds_within;

/// How long killed processes may take to disappear.
const LIMIT: Duration = Duration::from_secs(10);

/// Kills every process with this entry (`NAME=value`) in its environment, and waits until all of them are gone.
pub(crate) fn end_all(entry: &str) {
    // Again and again, because one of them may have started another one meanwhile.
    holds_within(LIMIT, || {
        let found = with_entry(entry);
        found.iter().for_each(|pid| send(*pid, Signal::SIGKILL));
        found.is_empty()
    });
}

/// The processes with an entry in the environment that they were started with. A zombie has none.
fn with_entry(entry: &str) -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let has_entry = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
    };
    pids.filter(|pid| *pid != own).filter(has_entry).collect()
}

/// Sends a signal to a process that may be gone already.
pub(crate) fn send(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal);
}
