//! What the supervisor learns about a lock in Consul: an input (D14).

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{Time, fmt_duration};

/// What is known about a lock in Consul.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LockReport {
    /// This supervisor has it.
    Held {
        /// The fencing number.
        fencing: u64,
        /// Until when no other supervisor can have it, on the clock that counts while the machine is asleep.
        until: Time,
    },
    /// This supervisor does not have it. If it had it until now, no other supervisor gets it before the time that was
    /// last reported, unless it is taken.
    NotHeld(LockWait),
}

/// Why a lock is not held.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LockWait {
    /// The first request has not been answered.
    Unknown,
    /// All slots are taken by other holders. The name of one of them, if it is known.
    Taken(#[serde(serialize_with = "crate::recorded::as_is")] Option<String>),
    /// The last holder has not released it. It is left alone for this time, because that holder may not know yet that
    /// it has lost the lock.
    NotReleased(Duration),
    /// Consul has invalidated the session.
    SessionInvalidated,
    /// Consul has not answered in time.
    NotRenewed,
    /// Consul has not given it: its lock delay has not passed, or another holder was faster.
    Refused,
}

impl LockWait {
    /// The reason as a clause.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Unknown => "Consul has not answered yet".into(),
            Self::Taken(Some(holder)) => format!("held by {holder}"),
            Self::Taken(None) => "held by another session".into(),
            Self::NotReleased(wait) => format!(
                "its last holder has not released it; waiting {}, in case that holder still runs",
                fmt_duration(*wait)
            ),
            Self::SessionInvalidated => "Consul has invalidated its session; a new one follows".into(),
            Self::NotRenewed => "Consul has not confirmed it in time; see the log for its answers".into(),
            Self::Refused => "Consul has not given it yet, trying again".into(),
        }
    }
}
