//! The timer queue of everything that happens in virtual time: of worlds, agents and schedules.

use std::collections::BTreeMap;

use containerpilot_core::Time;
use containerpilot_core::rng::mix;

/// When an item happens, and its rank among the items of the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// When it happens.
    pub at: Time,
    rank: u64,
    serial: u64,
}

/// A timer queue. Items of the same instant happen in the order in which they were added, or in a random order.
#[derive(Debug)]
pub struct Queue<T> {
    items: BTreeMap<Slot, T>,
    serial: u64,
    shuffle: Option<u64>,
}

impl<T> Queue<T> {
    /// An empty queue. With a seed, items of the same instant happen in a random order.
    #[must_use]
    pub const fn new(shuffle: Option<u64>) -> Self {
        Self { items: BTreeMap::new(), serial: 0, shuffle }
    }

    /// Returns true if items of the same instant happen in a random order.
    #[must_use]
    pub const fn is_shuffled(&self) -> bool {
        self.shuffle.is_some()
    }

    /// Adds an item.
    pub fn add(&mut self, at: Time, item: T) -> Slot {
        let rank = self.shuffle.map_or(0, |seed| mix(seed ^ (self.serial + 1)));
        self.insert(at, rank, item)
    }

    /// Adds an item that keeps its order among others added this way, and precedes shuffled ones.
    pub fn add_in_order(&mut self, at: Time, item: T) -> Slot {
        self.insert(at, 0, item)
    }

    fn insert(&mut self, at: Time, rank: u64, item: T) -> Slot {
        self.serial += 1;
        let slot = Slot { at, rank, serial: self.serial };
        self.items.insert(slot, item);
        slot
    }

    /// Removes an item, if it has not happened yet.
    pub fn remove(&mut self, slot: Slot) -> Option<T> {
        self.items.remove(&slot)
    }

    /// When the next item happens.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.items.first_key_value().map(|(slot, _)| slot.at)
    }

    /// Takes the next item.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.items.pop_first().map(|(slot, item)| (slot.at, item))
    }

    /// Takes the next item, if it happens by then.
    pub fn pop_due(&mut self, until: Time) -> Option<T> {
        let first = self.items.first_entry().filter(|first| first.key().at <= until);
        first.map(std::collections::btree_map::OccupiedEntry::remove)
    }

    /// All items, in order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.items.values()
    }

    /// The items that happen at an instant.
    pub fn at(&self, at: Time) -> impl Iterator<Item = &T> {
        let first = Slot { at, rank: 0, serial: 0 };
        self.items.range(first..).take_while(move |(slot, _)| slot.at == at).map(|(_, item)| item)
    }

    /// Replaces or removes items; when they happen stays the same.
    pub fn change(&mut self, mut changed: impl FnMut(T) -> Option<T>) {
        let items = std::mem::take(&mut self.items);
        self.items = items.into_iter().filter_map(|(slot, item)| Some((slot, changed(item)?))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(shuffle: Option<u64>) -> Vec<u32> {
        let mut queue = Queue::new(shuffle);
        for item in 0..10 {
            queue.add(Time::from_nanos(1), item);
        }
        queue.add_in_order(Time::from_nanos(1), 10);
        queue.add(Time::ZERO, 11);
        std::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect()
    }

    #[test]
    fn items_of_one_instant_keep_their_order_unless_they_are_shuffled() {
        assert_eq!(order(None), [11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let shuffled = order(Some(1));
        assert_eq!(shuffled[..2], [11, 10]);
        assert_ne!(shuffled[2..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(order(Some(1)), shuffled);
    }
}
