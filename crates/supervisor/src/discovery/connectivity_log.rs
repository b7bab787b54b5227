//! Records the state of the connection to Consul (D11), and logs it: once per change and every few minutes of trouble,
//! not once per attempt (D5).

use std::sync::{Mutex, MutexGuard, PoisonError};

use containerpilot_core::catalog::connectivity::{Connectivity, ConnectivityChange as Change, RequestResult};
use containerpilot_core::catalog::interruption::Interruption;
use containerpilot_core::plan::Level;
use containerpilot_core::time::Time;
use tokio::sync::watch;

use crate::messages::{LoopMessage, LoopSender};
use crate::net::http_client::RequestError;

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
    /// Another supervisor holds the id of the service.
    Held,
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
    interruption: watch::Sender<Option<Interruption>>,
}

impl ConnectivityLog {
    pub(super) fn new(address: String, sender: LoopSender) -> Self {
        Self { address, sender, contact: Mutex::default(), interruption: watch::Sender::default() }
    }

    /// Records the result of a request. `requester` is for example `service web`.
    pub(super) fn record(&self, now: Time, requester: &str, failure: Option<&Failure>) {
        let address = &self.address;
        let error = failure.map_or_else(String::new, |Failure { kind, reason }| match kind {
            FailureKind::Unreachable => format!("Consul at {address} is unreachable: {reason}"),
            FailureKind::Unavailable => format!("Consul at {address} is unavailable: {reason}"),
            FailureKind::Refused => format!("Consul at {address} refused {requester}: {reason}"),
            FailureKind::Held => format!("{requester} is not registered: {reason}"),
        });
        let result = match failure.map(|failure| failure.kind) {
            None => RequestResult::Answered,
            Some(FailureKind::Unreachable | FailureKind::Unavailable) => RequestResult::Unavailable(&error),
            Some(FailureKind::Refused) => RequestResult::Refused(&error),
            Some(FailureKind::Held) => RequestResult::Held(&error),
        };
        let mut contact = self.contact();
        let changes = contact.record(now, requester.to_owned(), result);
        let (refused, interruption) = (first_of(contact.refused()), contact.interruption());
        drop(contact);
        self.interruption.send_if_modified(|known| std::mem::replace(known, interruption) != interruption);
        for change in changes.into_iter().flatten() {
            let (level, message) = match change {
                Change::Unavailable | Change::Refused | Change::Held => {
                    (Level::Warn, format!("{error}; retrying"))
                }
                Change::StillUnavailable(since) | Change::StillRefused(since) | Change::StillHeld(since) => {
                    let minutes = now.since(since).as_secs() / 60;
                    (Level::Warn, format!("{error}; retrying for {minutes}m"))
                }
                Change::Available => (Level::Info, format!("Consul at {address} is available again")),
                Change::AnswersButRefuses => {
                    let refused = refused.as_deref().unwrap_or_default();
                    (Level::Warn, format!("Consul at {address} answers again, but refuses {refused}"))
                }
                Change::Released => {
                    (Level::Info, format!("{requester}: no other supervisor holds its id any more"))
                }
                Change::Accepted => (Level::Info, format!("Consul at {address} accepts {requester} again")),
            };
            self.sender.send(LoopMessage::Log(level, message));
        }
    }

    /// The last time at which Consul was unavailable, and every change of it.
    pub(super) fn interruption(&self) -> watch::Receiver<Option<Interruption>> {
        self.interruption.subscribe()
    }

    /// A task sends no more requests.
    pub(super) fn forget(&self, requester: &str) {
        self.contact().forget(&requester.to_owned());
    }

    pub(super) fn contact(&self) -> MutexGuard<'_, Connectivity<String>> {
        // After a panic what is recorded is still consistent.
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of several names, and how many more there are.
fn first_of<'a>(mut names: impl ExactSizeIterator<Item = &'a String>) -> Option<String> {
    let first = names.next()?;
    Some(match names.len() {
        0 => first.clone(),
        more => format!("{first} (and {more} more)"),
    })
}
