//! How a process reports that it is ready.

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// How a process reports that it is ready (H11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ready {
    /// By a datagram to `NOTIFY_SOCKET`, the protocol of `sd_notify`.
    Notify {
        /// How long the process may go without `WATCHDOG=1` (H12).
        watchdog: Option<Duration>,
    },
    /// By a newline on this descriptor, as for s6.
    Descriptor(u16),
    /// By a line of its output that matches this regular expression, in Go's syntax.
    Line(String),
}

impl Ready {
    /// How long the process may go without `WATCHDOG=1` (H12).
    #[must_use]
    pub const fn watchdog(&self) -> Option<Duration> {
        match self {
            Self::Notify { watchdog } => *watchdog,
            Self::Descriptor(_) | Self::Line(_) => None,
        }
    }

    /// What the process does when it is ready, as a phrase after "ready when it".
    #[must_use]
    pub fn words(&self) -> String {
        use alloc::format;
        match self {
            Self::Notify { watchdog: None } => "sends READY=1".into(),
            Self::Notify { watchdog: Some(time) } => {
                format!("sends READY=1, then WATCHDOG=1 every {}", crate::time::fmt_duration(*time))
            }
            Self::Descriptor(fd) => format!("writes a newline to descriptor {fd}"),
            Self::Line(pattern) => format!("prints a line that matches `{pattern}`"),
        }
    }
}
