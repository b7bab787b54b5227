//! Collections that need little code. The compiler makes a copy of `sort`, of `collect` into a map, and of `BTreeMap`
//! for each type, of 4 or 5 KB: without these functions the program has 0.3 MB more.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Collects into a map or set by inserting one item after the other. `collect` sorts the items first.
pub fn inserted<T, C: Default + Extend<T>>(items: impl IntoIterator<Item = T>) -> C {
    let mut collection = C::default();
    collection.extend(items);
    collection
}

/// Sorts by a comparison; items that are equal keep their order. Only places are sorted, by code that all types share.
pub fn sort_by<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let compare_at = |place: usize, other: usize| {
        items.get(place).zip(items.get(other)).map_or(Ordering::Equal, |(one, other)| compare(one, other))
    };
    let places = sorted_places(items.len(), &compare_at);
    let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(places.into_iter().filter_map(|place| unsorted.get_mut(place)?.take()));
}

fn sorted_places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|place, other| compare(*place, *other));
    places
}

/// Collects pairs into lists by key, each list in the order of the pairs.
pub fn grouped<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, Vec<V>> {
    let mut groups: BTreeMap<K, Vec<V>> = BTreeMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}

/// A map in one vector, in the order of its keys, which are numbers.
///
/// Identifiers ascend, so that most insertions are at the end. A removal moves what follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SortedMap<K, V> {
    /// A map without entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The entries in the order of their keys, with values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The values in the order of their keys, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Removes the entries for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find(&self, key: &K) -> Result<usize, usize> {
        match self.entries.last() {
            Some((last, _)) if last < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|(other, _)| other.cmp(key)),
        }
    }

    /// Whether it has an entry with this key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.find(key).ok()?;
        self.entries.get(place).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.find(key).ok()?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// The value of a key, which is set if there is none.
    pub fn get_or_insert(&mut self, key: K, value: V) -> &mut V {
        let place = self.find(&key);
        if let Err(place) = place {
            self.entries.insert(place, (key, value));
        }
        let (Ok(place) | Err(place)) = place;
        &mut self.entries[place].1
    }

    /// Sets the value of a key, and returns the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let place = self.find(&key);
        let previous = place.ok().map(|place| self.entries.remove(place).1);
        let (Ok(place) | Err(place)) = place;
        self.entries.insert(place, (key, value));
        previous
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.find(key).ok()?;
        Some(self.entries.remove(place).1)
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = alloc::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_keep_their_order() {
        let mut pairs: Vec<(u8, usize)> = [3, 1, 2, 1, 3, 1].into_iter().zip(0..).collect();
        sort_by(&mut pairs, |(key, _), (other, _)| key.cmp(other));
        assert_eq!(pairs, [(1, 1), (1, 3), (1, 5), (2, 2), (3, 0), (3, 4)]);
        let mut none: Vec<u8> = Vec::new();
        sort_by(&mut none, Ord::cmp);
        assert!(none.is_empty());
    }

    #[test]
    fn behaves_like_a_map_of_the_standard_library() {
        let mut map = SortedMap::new();
        let mut model = alloc::collections::BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..2000_u64 {
            // A small generator: the same steps in every run.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (state >> 33) % 50;
            match state >> 62 {
                0 | 1 => assert_eq!(map.insert(key, step), model.insert(key, step)),
                2 => assert_eq!(map.remove(&key), model.remove(&key)),
                _ => {
                    assert_eq!(map.get(&key), model.get(&key));
                    assert_eq!(map.contains_key(&key), model.contains_key(&key));
                }
            }
            assert!(map.iter().eq(model.iter()) && map.len() == model.len());
        }
        for value in map.values_mut() {
            *value += 1;
        }
        model.values_mut().for_each(|value| *value += 1);
        map.retain(|key, _| key % 2 == 0);
        model.retain(|key, _| key % 2 == 0);
        assert!(!map.is_empty() && map.keys().eq(model.keys()) && map.values().eq(model.values()));
        assert!(map.into_iter().eq(model));
    }
}
