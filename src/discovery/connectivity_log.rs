//! Logs the state of the connection to Consul: once per change, not once per attempt (D5).

use std::sync::{Mutex, PoisonError};

use containerpilot_core::catalog::connectivity::{Connectivity, ConnectivityChange as Change, RequestResult};
use containerpilot_core::plan::Level;

use super::client::RequestError;
use crate::messages::{LoopMessage, LoopSender};

/// A request that did not succeed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// There was no response.
    Unreachable,
    /// The response was a server error, or not valid.
    Unavailable,
    /// Consul refused the request.
    Refused,
}

impl From<&RequestError> for Failure {
    fn from(error: &RequestError) -> Self {
        Self { kind: FailureKind::Unreachable, reason: error.to_string() }
    }
}

/// The state of the connection, from the results of all tasks.
#[derive(Debug)]
pub(super) struct ConnectivityLog {
    address: String,
    sender: LoopSender,
    contact: Mutex<Connectivity<String>>,
}

impl ConnectivityLog {
    pub(super) fn new(address: String, sender: LoopSender) -> Self {
        Self { address, sender, contact: Mutex::default() }
    }

    /// Records the result of a request. `requester` is for example `service web`.
    pub(super) fn record(&self, requester: &str, failure: Option<&Failure>) {
        let result = match failure.map(|failure| failure.kind) {
            None => RequestResult::Answered,
            Some(FailureKind::Unreachable | FailureKind::Unavailable) => RequestResult::Unavailable,
            Some(FailureKind::Refused) => RequestResult::Refused,
        };
        let changes =
            self.contact.lock().unwrap_or_else(PoisonError::into_inner).record(requester.to_owned(), result);
        for change in changes.into_iter().flatten() {
            self.log(change, requester, failure);
        }
    }

    /// A task sends no more requests.
    pub(super) fn forget(&self, requester: &str) {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner).forget(&requester.to_owned());
    }

    fn log(&self, change: Change, requester: &str, failure: Option<&Failure>) {
        let address = &self.address;
        let reason = failure.map_or("", |failure| failure.reason.as_str());
        let (level, message) = match change {
            Change::Unavailable => {
                let is_unreachable = failure.is_some_and(|failure| failure.kind == FailureKind::Unreachable);
                let state = if is_unreachable { "unreachable" } else { "unavailable" };
                (Level::Warn, format!("Consul at {address} is {state}: {reason}; retrying"))
            }
            Change::Available => (Level::Info, format!("Consul at {address} is available again")),
            Change::Refused => {
                (Level::Warn, format!("Consul at {address} refused {requester}: {reason}; retrying"))
            }
            Change::Accepted => (Level::Info, format!("Consul at {address} accepts {requester} again")),
        };
        self.sender.send(LoopMessage::Log(level, message));
    }
}
