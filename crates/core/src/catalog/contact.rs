//! Connectivity of the catalog: reports every change once, and no single attempt (D5).

use alloc::collections::BTreeSet;

/// The result of a request, as far as connectivity is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fared {
    /// It was answered.
    Well,
    /// The catalog is unreachable, slow or broken.
    Away,
    /// The catalog refused it.
    Refused,
}

/// A change to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The catalog has become unavailable.
    Away,
    /// The catalog is available again, for all clients.
    Back,
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
pub struct Contact<K> {
    /// True if `Away` was the last change reported.
    reported_away: bool,
    away: BTreeSet<K>,
    refused: BTreeSet<K>,
}

impl<K> Default for Contact<K> {
    fn default() -> Self {
        Self { reported_away: false, away: BTreeSet::new(), refused: BTreeSet::new() }
    }
}

impl<K: Ord> Contact<K> {
    /// Records the result of a client's request. Returns the changes to report, in order.
    pub fn heard(&mut self, client: K, fared: Fared) -> [Option<News>; 2]
    where
        K: Clone,
    {
        let was_refused = self.refused.contains(&client);
        match fared {
            Fared::Well => {
                self.away.remove(&client);
                self.refused.remove(&client);
            }
            Fared::Away => {
                // It stays refused until a request is accepted.
                self.away.insert(client);
            }
            Fared::Refused => {
                self.away.remove(&client);
                self.refused.insert(client);
            }
        }
        let away = !self.away.is_empty();
        let contact = (away != self.reported_away).then_some(if away { News::Away } else { News::Back });
        self.reported_away = away;
        let own = match (was_refused, fared) {
            (false, Fared::Refused) => Some(News::Refused),
            (true, Fared::Well) => Some(News::Accepted),
            _ => None,
        };
        [contact, own]
    }

    /// Removes a client that sends no more requests. This reports nothing, even if it was the last client for which the
    /// catalog was unavailable; the next result does.
    pub fn forget(&mut self, client: &K) {
        self.refused.remove(client);
        self.away.remove(client);
    }
}
