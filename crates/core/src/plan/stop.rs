//! How a job is stopped.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Command, Plan, Signal};

/// How a job is stopped (S2, S9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The stop signal.
    pub signal: Signal,
    /// The signals that follow if the process does not exit; none of them is SIGKILL.
    pub escalation: Vec<Escalation>,
    /// How long after the stop signal SIGKILL follows. `None`, or longer, is the global stop timeout.
    pub kill_after: Option<Duration>,
    /// Which processes get the stop signal.
    pub scope: StopScope,
    /// How long the job waits for its stop hooks. `None` waits until the global stop timeout.
    pub hook_timeout: Option<Duration>,
    /// How long the process keeps running after its service has left the catalog.
    pub drain: Drain,
}

/// How long a process keeps running after its service has left the catalog (S2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Drain {
    /// For this time; not at all if it is zero.
    For(Duration),
    /// Until this program has exited (S11).
    Until {
        /// The program.
        program: Command,
        /// How long it may take. `None` means the global stop timeout.
        timeout: Option<Duration>,
    },
}

impl Drain {
    /// No drain.
    pub const NONE: Self = Self::For(Duration::ZERO);

    /// The longest time that it takes.
    #[must_use]
    pub fn longest(&self, stop_timeout: Duration) -> Duration {
        match self {
            Self::For(time) => *time,
            Self::Until { timeout, .. } => timeout.unwrap_or(stop_timeout),
        }
    }

    /// Its program, if it has one.
    #[must_use]
    pub const fn program(&self) -> Option<&Command> {
        match self {
            Self::For(_) => None,
            Self::Until { program, .. } => Some(program),
        }
    }
}

/// A further signal of an escalation (S9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// How long after the signal before.
    pub after: Duration,
    /// The signal.
    pub signal: Signal,
}

/// Which processes get the stop signal (S9). SIGKILL always goes to all processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopScope {
    /// The process group.
    Group,
    /// The process that the supervisor has started, alone.
    Process,
}

impl Stop {
    /// The default: SIGTERM to the process group, without a limit for hooks and without a drain time.
    pub const DEFAULT: Self = Self {
        signal: Signal::TERM,
        escalation: Vec::new(),
        kill_after: None,
        scope: StopScope::Group,
        hook_timeout: None,
        drain: Drain::NONE,
    };

    /// The signal that follows if the process does not exit, and how long after the last one. `sent` signals of the
    /// escalation were sent, `elapsed` is the time since the stop signal: a reload may have changed the escalation
    /// meanwhile (R5).
    #[must_use]
    pub fn next_signal(&self, sent: usize, elapsed: Duration, stop_timeout: Duration) -> (Duration, Signal) {
        let kill = self.kill_timeout(stop_timeout).saturating_sub(elapsed);
        match self.escalation.get(sent) {
            Some(next) if next.after < kill => (next.after, next.signal),
            _ => (kill, Signal::KILL),
        }
    }

    /// How long after the stop signal SIGKILL follows (S4, S9).
    #[must_use]
    pub fn kill_timeout(&self, stop_timeout: Duration) -> Duration {
        self.kill_after.map_or(stop_timeout, |time| time.min(stop_timeout))
    }
}

/// The signals that shut down unless `stopOn` says otherwise (S8).
pub const DEFAULT_STOP_ON: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::QUIT];

/// The longest wait for a deregistration, unless a quarter of the stop timeout is shorter.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a stop hook without a `timeout` may run (S15).
pub(crate) const HOOK_TIMEOUT: Duration = Duration::from_secs(300);

/// How long after the start of a shutdown every process gets its stop signal, even if its `drain` is longer (S4).
#[must_use]
pub fn stop_signal_timeout(stop_timeout: Duration, with_hooks: bool) -> Duration {
    if with_hooks { stop_timeout } else { stop_timeout - stop_timeout / 4 }
}

impl Plan {
    /// How long a stop waits for the catalog to confirm a deregistration (S2).
    #[must_use]
    pub fn deregister_timeout(&self) -> Duration {
        DEREGISTER_TIMEOUT.min(self.stop_timeout / 4)
    }

    /// When a shutdown sends the last stop signal, and SIGKILL to everything that still runs, counted from its start:
    /// the time of the jobs (S4) after `hooks`, that of the longest chain of hooks (S15).
    pub(crate) fn shutdown_timeouts(&self, hooks: Duration) -> [Duration; 2] {
        let timeout = self.stop_timeout;
        let in_order = self.stops_in_order();
        let kill = if in_order { timeout + timeout } else { timeout };
        [stop_signal_timeout(timeout, in_order), kill].map(|time| hooks.saturating_add(time))
    }
}
