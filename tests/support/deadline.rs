//! Deadlines for what a test waits for, so that no test hangs.

use std::io::Result;
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::gettid;

use super::processes::send;
use super::supervisor::child_pids;

/// How long a command of a test may run. `docker build` and package tools are the slowest.
const LIMIT: Duration = Duration::from_secs(300);

/// Returns when `holds` returns true. Panics after `limit`; `what` describes the condition that did not become true.
pub(crate) fn wait_until_within(limit: Duration, what: impl FnOnce() -> String, holds: impl FnMut() -> bool) {
    assert!(holds_within(limit, holds), "timed out after {limit:?} waiting until {}", what());
}

/// Returns true when `holds` returns true, or false after `limit`.
pub(crate) fn holds_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Commands that are killed at a deadline. The test then fails because of their exit status, and says which it was.
pub(crate) trait InTime {
    /// [`Command::output`], or [`Child::wait_with_output`], with a deadline.
    fn output_in_time(self) -> Result<Output>;

    /// [`Command::status`], or [`Child::wait`], with a deadline.
    fn status_in_time(self) -> Result<ExitStatus>;
}

impl InTime for &mut Command {
    fn output_in_time(self) -> Result<Output> {
        in_time(&format!("{:?}", self.get_program()), || self.output())
    }

    fn status_in_time(self) -> Result<ExitStatus> {
        in_time(&format!("{:?}", self.get_program()), || self.status())
    }
}

impl InTime for Child {
    fn output_in_time(self) -> Result<Output> {
        in_time(&format!("process {}", self.id()), || self.wait_with_output())
    }

    fn status_in_time(mut self) -> Result<ExitStatus> {
        in_time(&format!("process {}", self.id()), || self.wait())
    }
}

/// Runs a function that waits for children of this thread. They and their descendants are killed after [`LIMIT`].
fn in_time<T>(what: &str, wait: impl FnOnce() -> T) -> T {
    let (waits, ended) = mpsc::channel::<()>();
    let (process, thread) = (std::process::id(), gettid());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{what} did not exit within {LIMIT:?}, sending SIGKILL");
                let children = format!("/proc/{process}/task/{thread}/children");
                let children = std::fs::read_to_string(children).unwrap_or_default();
                children.split_whitespace().filter_map(|pid| pid.parse().ok()).for_each(kill_tree);
            }
        });
        let result = wait();
        drop(waits);
        result
    })
}

/// Kills a process and its descendants, which may hold the other end of a pipe.
fn kill_tree(pid: u32) {
    // SIGSTOP keeps it from starting new processes while its children are listed.
    send(pid, Signal::SIGSTOP);
    child_pids(pid).into_iter().for_each(kill_tree);
    send(pid, Signal::SIGKILL);
}
