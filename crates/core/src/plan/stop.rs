//! How a job is stopped.

use core::time::Duration;

use super::Signal;

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
