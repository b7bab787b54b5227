//! The restart policy of a job: how often, after which exits, with which delay, and up to which limit.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Job;
use crate::exit_status::ExitStatus;

/// How often a job is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Restarts {
    /// At most this many times; 0 is never.
    Limited(u64),
    /// Without a limit.
    Unlimited,
}

/// After which runs a job is restarted (W13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartOn {
    /// Every run, as in 3.8.
    Exit,
    /// A run that failed.
    Failure,
    /// A run that succeeded.
    Success,
}

impl RestartOn {
    /// Returns true if a run with this result is followed by a restart.
    #[must_use]
    pub const fn includes(self, failed: bool) -> bool {
        match self {
            Self::Exit => true,
            Self::Failure => failed,
            Self::Success => !failed,
        }
    }
}

/// The restart back-off: the first restart has no delay, then the delay doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The first delay.
    pub initial: Duration,
    /// The longest delay.
    pub max: Duration,
    /// A run that lasts longer than this resets the delay.
    pub reset: Duration,
}

impl Backoff {
    /// The default (W8).
    pub const DEFAULT: Self = Self {
        initial: Duration::from_millis(100),
        max: Duration::from_secs(10),
        reset: Duration::from_secs(10),
    };
}

/// The limit of automatic starts (W14): a job that would be started more often than this fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartLimit {
    /// The number of starts; at least 1.
    pub count: u32,
    /// The time in which they are counted.
    pub within: Duration,
    /// What happens to the container.
    pub then: OnStartLimit,
}

/// What happens to the container when a job reaches its start limit (W14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnStartLimit {
    /// The job fails; the other jobs continue.
    Fail,
    /// The job fails and the container shuts down.
    Shutdown,
}

impl Job {
    /// Returns true if some way in which its runs can end is not followed by a restart.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.restarts != Restarts::Unlimited
            || (self.restart_on != RestartOn::Exit && !self.when.is_periodic())
            || self.start_limit.is_some()
    }

    /// Returns true if a run of this job that exits so is a success (P3, W13).
    #[must_use]
    pub fn is_success(&self, status: ExitStatus) -> bool {
        if self.success_codes.is_empty() { status.is_success() } else { self.success_codes.contains(&status) }
    }
}
