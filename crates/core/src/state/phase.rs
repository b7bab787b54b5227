//! The phases of the supervisor.

use serde::{Deserialize, Serialize};

/// The phase of the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// `startup` has not been sent.
    Starting,
    /// Normal operation.
    Running,
    /// All jobs are being stopped, in order and with their hooks.
    Stopping,
    /// The time for hooks has passed. Every process was sent its stop signal, and nothing starts any more.
    Terminating,
    /// All jobs were sent SIGKILL.
    Killing,
    /// The exit code was returned.
    Exited,
}

impl Phase {
    /// The name in the JSON of the servers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping | Self::Terminating => "stopping",
            Self::Killing => "killing",
            Self::Exited => "exited",
        }
    }
}
