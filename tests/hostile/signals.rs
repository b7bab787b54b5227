//! Signals to a supervisor that has a configuration and is not PID 1 (S1).

use std::fs;

use super::fixture::{Hostile, Rank, as_init_and_child, permitted, request};
use crate::support::supervisor::wait_until;

const CONFIG: &str = "jobs: [{ name: 'main', exec: 'sleep 1000' }]";

/// The signals that stop the supervisor, and those that no process can catch.
const OTHERS: [i32; 5] = [2, 3, 9, 15, 19];

/// Whether a signal was sent and the supervisor has not taken it yet.
fn is_pending(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let sets = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:"));
    sets.into_iter().any(|set| u64::from_str_radix(set.trim(), 16).unwrap() & (1 << (signal - 1)) != 0)
}

#[test]
fn s1_no_signal_but_sigterm_sigint_and_sigquit_ends_the_supervisor() {
    if !permitted() {
        return;
    }
    let mut fatal = Vec::new();
    let mut hostile = Hostile::start(Rank::Child, 1, CONFIG);
    for signal in (1..=64).filter(|signal| !OTHERS.contains(signal)) {
        hostile.send(signal);
        wait_until("the signal is handled", || {
            hostile.has_exited() || signal == 17 || !is_pending(hostile.pid, signal)
        });
        if hostile.has_exited() || request(&hostile.socket(), "GET", "/v3/status").is_err() {
            fatal.push(signal);
            hostile = Hostile::start(Rank::Child, 1, CONFIG);
        }
    }
    assert!(fatal.is_empty(), "these signals end the supervisor or freeze it: {fatal:?}");
    hostile.stops();
}

#[test]
fn s1_sigquit_shuts_down_gracefully() {
    as_init_and_child(|rank| {
        let config = "jobs: [{ name: 'main', exec: ['@programs/on-signal.sh', 'TERM', 'echo bye; exit 0'] }]";
        let hostile = Hostile::start(rank, 2, config);
        hostile.await_ready(1);
        hostile.send(3);
        wait_until("it exits", || hostile.has_exited());
        let log = fs::read_to_string(hostile.run.file("log")).unwrap();
        assert!(log.contains("bye"), "the job was not stopped");
        assert_eq!(hostile.run.wait().0, 0);
    });
}
