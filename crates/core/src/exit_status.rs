//! How a process exits.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::signal::Signal;

/// How a process exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExitStatus {
    /// With a code.
    Code(u8),
    /// On a signal.
    Signal(Signal),
}

impl ExitStatus {
    /// Returns true for exit code 0 (P3).
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// The exit code that a shell reports (S5).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(Signal(number)) => 128_u8.saturating_add(number),
        }
    }
}

impl fmt::Display for ExitStatus {
    /// Writes how a process exited, as a phrase after "exited": `with code 1`, `on SIGKILL`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "with code {code}"),
            Self::Signal(signal) => write!(out, "on {signal}"),
        }
    }
}
