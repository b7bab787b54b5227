//! How a job ended.

use serde::{Deserialize, Serialize};

/// How a job ended (X7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// It has done its work: its last run was a success.
    Complete,
    /// Its last run failed.
    Failed,
    /// A user, a reload or the shutdown stopped it.
    Stopped,
    /// It never ran.
    Skipped(SkipReason),
}

impl Outcome {
    /// The outcome in one word. These words are part of the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Skipped(_) => "skipped",
        }
    }
}

/// Why a job never ran and never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SkipReason {
    /// The events it waited for can never come (W10).
    Unreachable,
    /// It was not started within `when.timeout` (W5).
    StartTimeout,
    /// The supervisor shut down before its event came.
    Shutdown,
}

impl SkipReason {
    /// Why a job was skipped, as a clause (X7).
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unreachable => "its event can no longer happen",
            Self::StartTimeout => "not started within its `when.timeout`",
            Self::Shutdown => "the supervisor shut down before it started",
        }
    }
}
