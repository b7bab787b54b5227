//! Connectivity of the catalog: reports every change once, and no single attempt (D5).

use alloc::collections::BTreeSet;

/// The result of a request, as far as connectivity is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestResult {
    /// It was answered.
    Answered,
    /// The catalog is unreachable, slow or broken.
    Unavailable,
    /// The catalog refused it.
    Refused,
}

/// A change to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectivityChange {
    /// The catalog has become unavailable.
    Unavailable,
    /// The catalog is available again, for all clients.
    Available,
    /// The catalog refuses the requests of this client.
    Refused,
    /// The catalog accepts the requests of this client again.
    Accepted,
}

/// The connectivity of the catalog, as its clients (services and watches) see it.
///
/// The catalog counts as unavailable while it is unavailable for one client. A client whose connection still works does
/// not contradict another one, so the log does not alternate between the two.
#[derive(Clone, Debug)]
pub struct Connectivity<K> {
    /// True if the last change reported was `Unavailable`.
    reported_unavailable: bool,
    unavailable: BTreeSet<K>,
    refused: BTreeSet<K>,
}

impl<K> Default for Connectivity<K> {
    fn default() -> Self {
        Self { reported_unavailable: false, unavailable: BTreeSet::new(), refused: BTreeSet::new() }
    }
}

impl<K: Ord> Connectivity<K> {
    /// Records the result of a client's request. Returns the changes to report, in order.
    pub fn record(&mut self, client: K, result: RequestResult) -> [Option<ConnectivityChange>; 2]
    where
        K: Clone,
    {
        let was_refused = self.refused.contains(&client);
        match result {
            RequestResult::Answered => {
                self.unavailable.remove(&client);
                self.refused.remove(&client);
            }
            RequestResult::Unavailable => {
                // It stays refused until a request is accepted.
                self.unavailable.insert(client);
            }
            RequestResult::Refused => {
                self.unavailable.remove(&client);
                self.refused.insert(client);
            }
        }
        let unavailable = !self.unavailable.is_empty();
        let changed = (unavailable != self.reported_unavailable).then_some(if unavailable {
            ConnectivityChange::Unavailable
        } else {
            ConnectivityChange::Available
        });
        self.reported_unavailable = unavailable;
        let own = match (was_refused, result) {
            (false, RequestResult::Refused) => Some(ConnectivityChange::Refused),
            (true, RequestResult::Answered) => Some(ConnectivityChange::Accepted),
            _ => None,
        };
        [changed, own]
    }

    /// Removes a client that sends no more requests. This reports nothing, even if it was the last client for which the
    /// catalog was unavailable; the next result does.
    pub fn forget(&mut self, client: &K) {
        self.refused.remove(client);
        self.unavailable.remove(client);
    }
}
