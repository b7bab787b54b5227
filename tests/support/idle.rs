//! Whether a supervisor sleeps.

use std::fs;
use std::time::{Duration, Instant};

use super::supervisor::wait_until;

/// Waits until no thread of a process was woken for some time.
pub(crate) fn wait_until_idle_for(time: Duration, pid: u32) {
    let mut last = (wake_ups(pid), Instant::now());
    wait_until(&format!("the supervisor has not woken up for {time:?}"), || {
        let count = wake_ups(pid);
        if count != last.0 {
            last = (count, Instant::now());
        }
        last.1.elapsed() > time
    });
}

/// How often the threads of a process were woken.
fn wake_ups(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let woken = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).map(str::to_owned);
        line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.map(|task| woken(task.unwrap())).sum()
}
