//! Fingerprints of states, for the exhaustive search of `crates/oracle`: two states with the same fingerprint decide
//! the same from here on, even if their histories differ.
//!
//! What decides nothing is left out: the journal, counters that only reports use, the texts of logs and environments.
//! What is only compared is made relative: times count from now, ids are replaced by their order.
//!
//! Every struct is taken apart with all its fields, so that a new field does not compile until it is added here or left
//! out on purpose.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::rng::mix;
use crate::time::Time;

/// Ids that are only compared for equality. They are numbered in the order in which they are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// [`crate::ids::RunId`]
    Run,
    /// [`crate::ids::CheckRunId`]
    Check,
    /// [`crate::ids::RenderId`]
    Render,
    /// [`crate::request::RequestId`]
    Request,
}

/// Numbers of which only the order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Generations of jobs, by their serial number.
    Generation,
    /// Timers: of two at the same time, the one set first fires first.
    Timer,
}

/// Collects what decides the future of a state.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    now: Time,
    words: Vec<u64>,
    names: Vec<(Name, u64)>,
    ordered: Vec<(Order, u128, usize)>,
}

impl Fingerprint {
    /// A fingerprint at the time `now`.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self { now, words: Vec::with_capacity(512), names: Vec::new(), ordered: Vec::new() }
    }

    /// Adds something that contains neither times nor ids.
    pub fn add(&mut self, value: impl Hash) {
        value.hash(self);
    }

    /// Adds a time to come, relative to now. All past times count as the same.
    pub fn time(&mut self, time: Time) {
        self.add((time.since(self.now), time < self.now));
    }

    /// Adds how long ago something was. More than `most` counts as the same: it is the longest duration with which the
    /// rules compare this age.
    pub fn age(&mut self, time: Time, most: Duration) {
        self.add(self.now.since(time).min(most.saturating_add(Duration::from_nanos(1))));
    }

    /// Adds an id of which only the identity counts.
    pub fn name(&mut self, name: Name, id: u64) {
        let known = self.names.iter().position(|known| *known == (name, id));
        let index = known.unwrap_or_else(|| {
            self.names.push((name, id));
            self.names.len() - 1
        });
        self.add(index);
    }

    /// Adds a number of which only the order counts.
    pub fn order(&mut self, order: Order, number: u128) {
        self.ordered.push((order, number, self.words.len()));
        self.words.push(0);
    }

    /// Adds a value that may be missing.
    pub fn option<T>(&mut self, value: Option<T>, add: impl FnOnce(&mut Self, T)) {
        self.add(value.is_some());
        if let Some(value) = value {
            add(self, value);
        }
    }

    /// Adds the items of a list, each with the id that it belongs to.
    pub fn named(&mut self, name: Name, items: impl IntoIterator<Item = (u64, impl Hash)>) {
        self.list(items, |print, (id, item)| {
            print.name(name, id);
            print.add(item);
        });
    }

    /// Adds the items of a list.
    pub fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut add: impl FnMut(&mut Self, T)) {
        let place = self.words.len();
        self.words.push(0);
        let mut count = 0;
        for item in items {
            add(self, item);
            count += 1;
        }
        if let Some(word) = self.words.get_mut(place) {
            *word = count;
        }
    }

    /// The fingerprint: 128 bits, so that two different states of a search do not get the same one by chance.
    #[must_use]
    pub fn value(mut self) -> u128 {
        self.ordered.sort_unstable();
        let (mut rank, mut last) = (0, None);
        for (order, number, place) in &self.ordered {
            if last.replace((order, number)) != Some((order, number)) {
                rank += 1;
            }
            if let Some(word) = self.words.get_mut(*place) {
                *word = rank;
            }
        }
        let (mut low, mut high) = (0, u64::MAX);
        for word in self.words {
            low = mix(low ^ word);
            high = mix(high.rotate_left(29).wrapping_add(word));
        }
        u128::from(high) << 64 | u128::from(low)
    }
}

/// Collects the words of values that only have plain contents.
impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.words.push(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.words.push(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.words.push(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.words.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(now: u64, add: impl FnOnce(&mut Fingerprint)) -> u128 {
        let mut print = Fingerprint::new(Time::from_nanos(now));
        add(&mut print);
        print.value()
    }

    #[test]
    fn core_times_count_from_now() {
        let at = |now, time| value(now, |print| print.time(Time::from_nanos(time)));
        assert_eq!(at(10, 15), at(1_000, 1_005));
        assert_eq!(at(1_000, 800), at(1_000, 100));
        assert_ne!(at(1_000, 1_200), at(1_000, 1_300));
        assert_ne!(at(1_000, 1_000), at(1_000, 999));
    }

    #[test]
    fn core_ages_count_up_to_a_limit() {
        let most = Duration::from_nanos(100);
        let ago = |now, time| value(now, |print| print.age(Time::from_nanos(time), most));
        assert_eq!(ago(1_000, 800), ago(1_000, 899));
        assert_ne!(ago(1_000, 900), ago(1_000, 899));
        assert_eq!(ago(1_000, 950), ago(2_000, 1_950));
    }

    #[test]
    fn core_ids_are_replaced_by_their_order() {
        let names = |ids: [u64; 3]| value(0, |print| ids.iter().for_each(|id| print.name(Name::Run, *id)));
        assert_eq!(names([7, 9, 7]), names([9, 2, 9]));
        assert_ne!(names([7, 9, 7]), names([7, 9, 9]));
        let orders =
            |ids: [u128; 3]| value(0, |print| ids.iter().for_each(|id| print.order(Order::Timer, *id)));
        assert_eq!(orders([7, 9, 7]), orders([1, 3, 1]));
        assert_ne!(orders([7, 9, 7]), orders([3, 1, 3]));
    }
}
