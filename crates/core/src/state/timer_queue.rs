//! A queue ordered by time.
//!
//! One sorted `VecDeque`: entries are taken from the front, and new ones mostly belong near one of the ends, so an insert
//! moves little even with thousands of timers.

use alloc::collections::VecDeque;

use crate::time::Time;

/// The time of an entry and its serial number. Of entries with the same time, the one added first comes first.
pub type Place = (Time, u64);

/// A queue ordered by time.
#[derive(Debug)]
pub struct TimerQueue<T> {
    entries: VecDeque<(Place, T)>,
    serial: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), serial: 0 }
    }
}

impl<T> TimerQueue<T> {
    /// Adds an entry.
    pub fn add(&mut self, at: Time, entry: T) -> Place {
        self.serial += 1;
        // After the entries with the same time.
        let index = self.entries.partition_point(|((other, _), _)| *other <= at);
        self.entries.insert(index, ((at, self.serial), entry));
        (at, self.serial)
    }

    /// Removes an entry, if it is still queued.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        let index = self.entries.binary_search_by_key(&place, |(other, _)| *other).ok()?;
        self.entries.remove(index).map(|(_, entry)| entry)
    }

    /// The time of the first entry.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.entries.front().map(|((at, _), _)| *at)
    }

    /// Takes the first entry.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.entries.pop_front().map(|((at, _), entry)| (at, entry))
    }

    /// The entries with this time.
    pub fn at(&self, at: Time) -> impl Iterator<Item = &T> {
        let first = self.entries.partition_point(|((other, _), _)| *other < at);
        self.entries.range(first..).take_while(move |((other, _), _)| *other == at).map(|(_, entry)| entry)
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

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn entries_come_in_the_same_order_as_from_a_btree_map() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut queue, mut tree) = (TimerQueue::default(), BTreeMap::new());
            let mut places = Vec::new();
            for step in 0..300_u64 {
                let at = Time::from_nanos(rng.below(20));
                match rng.below(8) {
                    0..4 => {
                        let place = queue.add(at, step);
                        assert_eq!(tree.insert(place, step), None);
                        places.push(place);
                    }
                    4 => assert_eq!(queue.pop(), tree.pop_first().map(|((at, _), entry)| (at, entry))),
                    5 if rng.below(20) == 0 => {
                        let changed = |entry: u64| (!entry.is_multiple_of(3)).then_some(entry + 1);
                        queue.change(changed);
                        tree = tree
                            .into_iter()
                            .filter_map(|(place, entry)| Some((place, changed(entry)?)))
                            .collect();
                    }
                    _ => {
                        let nth = usize::try_from(rng.below(places.len() as u64)).unwrap();
                        if let Some(place) = places.get(nth) {
                            assert_eq!(queue.remove(*place), tree.remove(place));
                        }
                    }
                }
                assert!(
                    queue
                        .at(at)
                        .eq(tree.iter().filter(|((other, _), _)| *other == at).map(|(_, entry)| entry))
                );
                assert_eq!(queue.next(), tree.keys().next().map(|(at, _)| *at));
                assert_eq!((queue.len(), queue.is_empty()), (tree.len(), tree.is_empty()));
            }
        }
    }
}
