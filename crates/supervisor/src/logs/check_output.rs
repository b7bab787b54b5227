//! The output of checks that have just started. Most checks write nothing and exit soon.
//!
//! The pipes of a new check stay here, and the log thread is not woken. They are passed to the log once the check has
//! run for [`DELAY`], or if it has exited and its pipes hold data or are still open in another process. So a silent
//! check does not wake the log thread.
//!
//! The first lines of a check are delayed by [`DELAY`] at most; a check that fills its pipe meanwhile waits.
//! Nothing is read here, and the output of a check is still logged before the entry about its exit (P4).

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use containerpilot_process::sys;

use crate::logs::{LogSource, Logs};
use containerpilot_core::SortedMap;

/// How long a check may run before the log reads its output.
const DELAY: Duration = Duration::from_millis(20);

/// The pipes of one check.
#[derive(Debug)]
struct Output {
    stdout: OwnedFd,
    stderr: OwnedFd,
    source: LogSource,
}

impl Output {
    /// Returns true if the pipes are empty and closed.
    fn is_finished(&self) -> bool {
        let mut fds = [&self.stdout, &self.stderr].map(|fd| sys::poll_fd(fd.as_raw_fd(), sys::POLLIN));
        let polled = sys::poll(&mut fds, Some(Duration::ZERO));
        polled.is_ok() && fds.iter().all(|fd| fd.revents == sys::POLLHUP)
    }

    fn follow(self, logs: &Logs) {
        logs.attach(self.stdout, self.stderr, self.source);
    }
}

/// The checks whose pipes the log does not have yet.
#[derive(Debug, Default)]
pub(crate) struct CheckOutputs {
    outputs: SortedMap<u32, Output>,
    /// When each of them is passed to the log, the oldest first; also some that have exited.
    due: VecDeque<(Instant, u32)>,
}

impl CheckOutputs {
    /// A check was started.
    pub(crate) fn started(&mut self, stdout: OwnedFd, stderr: OwnedFd, source: LogSource) {
        self.due.push_back((Instant::now() + DELAY, source.pid));
        self.outputs.insert(source.pid, Output { stdout, stderr, source });
    }

    /// A process has exited, a check or not. Passes its exit to the log, unless there is nothing to read.
    pub(crate) fn exited(&mut self, pid: u32, logs: &Logs) {
        if let Some(output) = self.outputs.remove(&pid) {
            self.forget_exited();
            if output.is_finished() {
                return;
            }
            output.follow(logs);
        }
        logs.process_exited(pid);
    }

    /// When the next pipes are passed to the log.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.front().map(|(due, _)| *due)
    }

    /// Passes the pipes of checks that have run for [`DELAY`] to the log.
    pub(crate) fn follow_due(&mut self, logs: &Logs) {
        let now = Instant::now();
        while let Some((_, pid)) = self.due.pop_front_if(|(due, _)| *due <= now) {
            if let Some(output) = self.outputs.remove(&pid) {
                output.follow(logs);
            }
        }
        self.forget_exited();
    }

    /// Passes all pipes to the log.
    pub(crate) fn follow_all(&mut self, logs: &Logs) {
        self.due.clear();
        for (_, output) in std::mem::take(&mut self.outputs) {
            output.follow(logs);
        }
    }

    /// Drops the deadlines of exited checks at the front, so that the loop does not wake up for them.
    fn forget_exited(&mut self) {
        while self.due.pop_front_if(|(_, pid)| !self.outputs.contains_key(pid)).is_some() {}
    }
}

#[cfg(test)]
mod tests;
