//! What the log hears of the conversation with the catalog: every change of state once, and no single try (D5).

use alloc::collections::BTreeSet;

/// How a request fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fared {
    /// It was answered as it should be.
    Well,
    /// The catalog is away, slow, or out of order.
    Away,
    /// The catalog is there, and says no.
    Refused,
}

/// A change that should be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The catalog went away.
    Away,
    /// The catalog is back for everybody.
    Back,
    /// The catalog refuses this one.
    Refused,
    /// The catalog takes this one again.
    Accepted,
}

/// What is known of the catalog by those who ask it, by their names.
///
/// It is away as long as it is away for one of them: whoever waits in vain for an answer is not contradicted by another
/// whose connection is still good, and the log does not go back and forth between the two.
#[derive(Clone, Debug)]
pub struct Contact<K> {
    /// That it is away has been told, and nothing else since.
    told_away: bool,
    away: BTreeSet<K>,
    refused: BTreeSet<K>,
}

impl<K> Default for Contact<K> {
    fn default() -> Self {
        Self { told_away: false, away: BTreeSet::new(), refused: BTreeSet::new() }
    }
}

impl<K: Ord> Contact<K> {
    /// One of them had an answer, or none. What is to be told, in order.
    pub fn heard(&mut self, who: K, fared: Fared) -> [Option<News>; 2]
    where
        K: Clone,
    {
        let was_refused = self.refused.contains(&who);
        match fared {
            Fared::Well => {
                self.away.remove(&who);
                self.refused.remove(&who);
            }
            Fared::Away => {
                // It stays refused, until it is known not to be.
                self.away.insert(who);
            }
            Fared::Refused => {
                self.away.remove(&who);
                self.refused.insert(who);
            }
        }
        let away = !self.away.is_empty();
        let contact = (away != self.told_away).then_some(if away { News::Away } else { News::Back });
        self.told_away = away;
        let own = match (was_refused, fared) {
            (false, Fared::Refused) => Some(News::Refused),
            (true, Fared::Well) => Some(News::Accepted),
            _ => None,
        };
        [contact, own]
    }

    /// One of them asks no more. That says nothing about the catalog, not even if it was the last one to find it away:
    /// the next answer does.
    pub fn forget(&mut self, who: &K) {
        self.refused.remove(who);
        self.away.remove(who);
    }
}
