//! What is to come, the nearest first.
//!
//! One sorted queue: the nearest is taken from its front, and what is added mostly belongs near one of its ends, so
//! that little has to move. Thousands of jobs have thousands of deadlines.

use alloc::collections::VecDeque;

use crate::time::Time;

/// When something comes, and its place among what comes then: what was added first comes first.
pub type Place = (Time, u64);

/// What is to come.
#[derive(Debug)]
pub struct TimerQueue<T> {
    coming: VecDeque<(Place, T)>,
    serial: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self { coming: VecDeque::new(), serial: 0 }
    }
}

impl<T> TimerQueue<T> {
    /// Adds something.
    pub fn add(&mut self, at: Time, what: T) -> Place {
        self.serial += 1;
        // Whatever is there already for that moment comes first.
        let index = self.coming.partition_point(|((other, _), _)| *other <= at);
        self.coming.insert(index, ((at, self.serial), what));
        (at, self.serial)
    }

    /// Takes something back, if it is still to come.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        let index = self.coming.binary_search_by_key(&place, |(other, _)| *other).ok()?;
        self.coming.remove(index).map(|(_, what)| what)
    }

    /// When the next thing comes.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.coming.front().map(|((at, _), _)| *at)
    }

    /// Takes out the next thing.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.coming.pop_front().map(|((at, _), what)| (at, what))
    }

    /// What comes at a moment.
    pub fn at(&self, at: Time) -> impl Iterator<Item = &T> {
        let first = self.coming.partition_point(|((other, _), _)| *other < at);
        self.coming.range(first..).take_while(move |((other, _), _)| *other == at).map(|(_, what)| what)
    }

    /// Changes what is to come, or takes it back; when it comes stays the same.
    pub fn change(&mut self, mut changed: impl FnMut(T) -> Option<T>) {
        let coming = core::mem::take(&mut self.coming);
        self.coming = coming.into_iter().filter_map(|(place, what)| Some((place, changed(what)?))).collect();
    }

    /// How much is to come.
    #[must_use]
    pub fn len(&self) -> usize {
        self.coming.len()
    }

    /// Whether nothing is to come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.coming.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn whatever_is_added_and_taken_back_it_comes_in_its_order() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut agenda, mut tree) = (TimerQueue::default(), BTreeMap::new());
            let mut places = Vec::new();
            for step in 0..300_u64 {
                let at = Time::from_nanos(rng.below(20));
                match rng.below(8) {
                    0..4 => {
                        let place = agenda.add(at, step);
                        assert_eq!(tree.insert(place, step), None);
                        places.push(place);
                    }
                    4 => assert_eq!(agenda.pop(), tree.pop_first().map(|((at, _), what)| (at, what))),
                    5 if rng.below(20) == 0 => {
                        let changed = |what: u64| (!what.is_multiple_of(3)).then_some(what + 1);
                        agenda.change(changed);
                        tree = tree
                            .into_iter()
                            .filter_map(|(place, what)| Some((place, changed(what)?)))
                            .collect();
                    }
                    _ => {
                        let nth = usize::try_from(rng.below(places.len() as u64)).unwrap();
                        if let Some(place) = places.get(nth) {
                            assert_eq!(agenda.remove(*place), tree.remove(place));
                        }
                    }
                }
                assert!(
                    agenda
                        .at(at)
                        .eq(tree.iter().filter(|((other, _), _)| *other == at).map(|(_, what)| what))
                );
                assert_eq!(agenda.next(), tree.keys().next().map(|(at, _)| *at));
                assert_eq!((agenda.len(), agenda.is_empty()), (tree.len(), tree.is_empty()));
            }
        }
    }
}
