//! What is known about a lock.

use serde::{Deserialize, Serialize};

use crate::lock_report::LockWait;
use crate::state::timers::TimerId;
use crate::time::Time;

/// What is known about a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LockState {
    pub(crate) hold: Hold,
    /// When it was last acquired or lost.
    pub(crate) since: Option<Time>,
    /// Why it is not held.
    pub(crate) wait: LockWait,
    /// When the holder gives up, or kills its jobs.
    pub(crate) timer: Option<TimerId>,
    /// True if it was released in a shutdown.
    pub(crate) released: bool,
}

/// Whether this supervisor has a lock. Times are on the clock that counts while the machine is asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Hold {
    /// No.
    Free,
    /// Yes.
    Held {
        fencing: u64,
        /// Until when no other supervisor can have it; `None` for a local lock.
        until: Option<Time>,
    },
    /// No, and its jobs stop. They are killed before another supervisor can have it.
    Ending { until: Time },
}

impl Default for LockState {
    fn default() -> Self {
        Self { hold: Hold::Free, since: None, wait: LockWait::Unknown, timer: None, released: false }
    }
}

impl LockState {
    /// The fencing number, while the lock is held.
    pub(crate) const fn fencing(&self) -> Option<u64> {
        match self.hold {
            Hold::Held { fencing, .. } => Some(fencing),
            Hold::Free | Hold::Ending { .. } => None,
        }
    }

    /// Adds what decisions depend on, for the exhaustive search. Times are those of the timer.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self) -> impl core::hash::Hash + '_ {
        let Self { hold, since: _, wait: _, timer: _, released } = self;
        (core::mem::discriminant(hold), self.fencing(), released)
    }

    pub(crate) const fn is_held(&self) -> bool {
        self.fencing().is_some()
    }
}
