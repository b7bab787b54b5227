//! How a job is stopped.

use core::time::Duration;

use super::{Plan, Signal};

/// How a job is stopped (S2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The stop signal.
    pub signal: Signal,
    /// How long the job waits for its stop hooks. `None` waits until the global stop timeout.
    pub hook_timeout: Option<Duration>,
    /// How long the process keeps running after its service has left the catalog.
    pub drain: Duration,
}

impl Stop {
    /// The default: SIGTERM, without a limit for hooks and without a drain time.
    pub const DEFAULT: Self = Self { signal: Signal::TERM, hook_timeout: None, drain: Duration::ZERO };
}

/// The signals that shut down (S8).
const STOP_ON: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::QUIT];

/// The longest wait for a deregistration, unless a quarter of the stop timeout is shorter.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long after the start of a shutdown every process gets its stop signal, even if its `drain` is longer (S4).
#[must_use]
pub fn stop_signal_timeout(stop_timeout: Duration, with_hooks: bool) -> Duration {
    if with_hooks { stop_timeout } else { stop_timeout - stop_timeout / 4 }
}

impl Plan {
    /// The signals that shut down the supervisor, unless all signals are forwarded (S1, S7, S8).
    #[must_use]
    pub fn stop_on(&self) -> &[Signal] {
        &STOP_ON
    }

    /// How long a stop waits for the catalog to confirm a deregistration (S2).
    #[must_use]
    pub fn deregister_timeout(&self) -> Duration {
        DEREGISTER_TIMEOUT.min(self.stop_timeout / 4)
    }
}
