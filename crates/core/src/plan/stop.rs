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

/// The longest wait for a deregistration, whatever the stop timeout.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

impl Plan {
    /// How long a stop waits for the catalog to confirm a deregistration (S2).
    #[must_use]
    pub fn deregister_timeout(&self) -> Duration {
        DEREGISTER_TIMEOUT.min(self.stop_timeout / 4)
    }
}
