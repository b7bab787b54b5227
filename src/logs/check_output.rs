//! The output of checks that have just begun. Most checks say nothing and end soon.
//!
//! As long as it is not known that a check has something to say, its pipes stay here and the log is told nothing of it: a
//! check that ends in silence then costs the log's thread nothing at all, neither a wake-up at its beginning nor one at its
//! end. Once it has run for [`A_WHILE`], or has ended and left something in its pipes or someone who holds them, they are
//! the log's, as those of a job are from the first moment on.
//!
//! So a check's first lines come that much later, at most, and a pipe takes 64 KiB meanwhile before the check has to wait.
//! Nothing is read here, and what a check has written still comes before anything that is said of its end (P4).

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use std::collections::BTreeMap;

use crate::logs::{Logs, Source};
use crate::process::sys;

/// How long a check may run before its output is followed.
const A_WHILE: Duration = Duration::from_millis(20);

/// What one check writes to.
#[derive(Debug)]
struct Output {
    stdout: OwnedFd,
    stderr: OwnedFd,
    source: Source,
}

impl Output {
    /// Whether nothing was written and nobody is left who could.
    fn is_over(&self) -> bool {
        let mut fds = [&self.stdout, &self.stderr].map(|fd| sys::awaited(fd.as_raw_fd(), sys::POLLIN));
        let looked = sys::poll(&mut fds, Some(Duration::ZERO));
        looked.is_ok() && fds.iter().all(|fd| fd.revents == sys::POLLHUP)
    }

    fn follow(self, logs: &Logs) {
        logs.attach(self.stdout, self.stderr, self.source);
    }
}

/// The checks whose output is not followed yet.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    outputs: BTreeMap<u32, Output>,
    /// When each of them will have run for a while, the oldest first; also some that have ended.
    due: VecDeque<(Instant, u32)>,
}

impl Quiet {
    /// A check has begun.
    pub(crate) fn began(&mut self, stdout: OwnedFd, stderr: OwnedFd, source: Source) {
        self.due.push_back((Instant::now() + A_WHILE, source.pid));
        self.outputs.insert(source.pid, Output { stdout, stderr, source });
    }

    /// A process has ended, of a check or not. The log hears of it, unless there is nothing that it could do.
    pub(crate) fn ended(&mut self, pid: u32, logs: &Logs) {
        if let Some(output) = self.outputs.remove(&pid) {
            self.forget_ended();
            if output.is_over() {
                return;
            }
            output.follow(logs);
        }
        logs.run_ended(pid);
    }

    /// When the next of them will have run for a while.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.front().map(|(due, _)| *due)
    }

    /// Follows the output of those that have run for a while.
    pub(crate) fn follow_due(&mut self, logs: &Logs) {
        let now = Instant::now();
        while let Some((_, pid)) = self.due.pop_front_if(|(due, _)| *due <= now) {
            if let Some(output) = self.outputs.remove(&pid) {
                output.follow(logs);
            }
        }
        self.forget_ended();
    }

    /// Follows the output of all: no more is to come.
    pub(crate) fn follow_all(&mut self, logs: &Logs) {
        self.due.clear();
        for (_, output) in std::mem::take(&mut self.outputs) {
            output.follow(logs);
        }
    }

    /// Nobody is woken for one that has ended.
    fn forget_ended(&mut self) {
        while self.due.pop_front_if(|(_, pid)| !self.outputs.contains_key(pid)).is_some() {}
    }
}

#[cfg(test)]
mod tests;
