//! A map in one vector, for keys that are numbers.
//!
//! Identifiers ascend, so that most insertions are at the end. A removal moves what follows: with ten thousand entries,
//! as many microseconds as a process takes to start. `BTreeMap` would add 5 KB of code for each type of a value.

use alloc::vec::Vec;

/// A map whose entries are kept in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
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
