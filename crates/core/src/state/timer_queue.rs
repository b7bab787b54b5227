//! A queue ordered by time.

use alloc::collections::BTreeMap;

use crate::time::Time;

/// The time of an entry and its serial number. Of entries with the same time, the one added first comes first.
pub type Place = (Time, u64);

/// A queue ordered by time.
#[derive(Debug)]
pub struct TimerQueue<T> {
    entries: BTreeMap<Place, T>,
    serial: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), serial: 0 }
    }
}

impl<T> TimerQueue<T> {
    /// Adds an entry.
    pub fn add(&mut self, at: Time, entry: T) -> Place {
        self.serial += 1;
        self.entries.insert((at, self.serial), entry);
        (at, self.serial)
    }

    /// Removes an entry, if it is still queued.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        self.entries.remove(&place)
    }

    /// The time of the first entry.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.entries.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first entry.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.entries.pop_first().map(|((at, _), entry)| (at, entry))
    }

    /// The entries with this time.
    pub fn at(&self, at: Time) -> impl Iterator<Item = &T> {
        self.entries.range((at, 0)..=(at, u64::MAX)).map(|(_, entry)| entry)
    }

    /// Replaces or removes entries; their times stay the same.
    pub fn change(&mut self, mut changed: impl FnMut(T) -> Option<T>) {
        let entries = core::mem::take(&mut self.entries);
        self.entries =
            entries.into_iter().filter_map(|(place, entry)| Some((place, changed(entry)?))).collect();
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
