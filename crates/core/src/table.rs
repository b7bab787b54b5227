//! Things by their keys, in the keys' order: a map and a set, each one sorted list.
//!
//! The standard library's trees are for any number of things, and are compiled anew for every pair of types, at several
//! kilobytes apiece. Ours hold a few things, or thousands that come in their order or all at once; the search knows no
//! types. What is added or removed in between moves all that comes after it: that is fast as long as things are small,
//! but whoever fills a table with tens of thousands in no order lets it be collected.

use alloc::vec::{self, Vec};
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::slice;

use crate::order;

/// Looks for a place in a sorted list, of which one place after the other is compared; the last one first, for what
/// comes in its order belongs behind it.
fn search(count: usize, compare: &dyn Fn(usize) -> Ordering) -> Result<usize, usize> {
    let Some(last) = count.checked_sub(1) else { return Err(0) };
    match compare(last) {
        Ordering::Less => return Err(count),
        Ordering::Equal => return Ok(last),
        Ordering::Greater => {}
    }
    let (mut from, mut to) = (0, last);
    while from < to {
        let middle = from.midpoint(to);
        match compare(middle) {
            Ordering::Less => from = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => to = middle,
        }
    }
    Err(from)
}

/// Puts a list in order; of those with the same key, the last one stays.
fn arrange<T>(entries: &mut Vec<T>, compare: fn(&T, &T) -> Ordering) {
    if entries.is_sorted_by(|one, next| compare(one, next).is_lt()) {
        return;
    }
    order::sort_by(entries, compare);
    entries.dedup_by(|later, earlier| {
        let same = compare(later, earlier).is_eq();
        if same {
            core::mem::swap(later, earlier);
        }
        same
    });
}

/// Values by their keys, in the order of the keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Table<K, V> {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.entries.iter())
    }

    /// All keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// All of them, with values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> + ExactSizeIterator {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// All values, and no keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Keeps those that are good.
    pub fn retain(&mut self, mut good: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| good(key, value));
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        let entries = self.entries.as_slice();
        search(entries.len(), &|nth| {
            entries.get(nth).map_or(Ordering::Greater, |(one, _)| one.borrow().cmp(key))
        })
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.entries.get(place).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Whether there is one with this key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Takes one out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        Some(self.entries.remove(place).1)
    }
}

impl<K: Ord, V> Table<K, V> {
    /// Gives a key a value; the one that it had comes back.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => self.entries.get_mut(place).map(|entry| core::mem::replace(&mut entry.1, value)),
            Err(place) => {
                self.entries.insert(place, (key, value));
                None
            }
        }
    }

    /// The value of a key, which is made if there is none.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.place(&key) {
            Ok(place) => place,
            Err(place) => {
                self.entries.insert(place, (key, make()));
                place
            }
        };
        // It is there, or has just been put there.
        &mut self.entries[place].1
    }

    /// The value of a key, or this one.
    pub fn or_insert(&mut self, key: K, value: V) -> &mut V {
        self.or_insert_with(key, || value)
    }

    /// The value of a key, or the usual one.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }
}

impl<K: Ord, V> Table<K, Vec<V>> {
    /// What has the same key together, in its order.
    pub fn grouped(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        order::sort_by(&mut pairs, |(one, _), (other, _)| one.cmp(other));
        let mut groups = Self::new();
        for (key, value) in pairs {
            groups.or_default(key).push(value);
        }
        groups
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self).finish()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut entries: Vec<(K, V)> = pairs.into_iter().collect();
        arrange(&mut entries, |(one, _), (other, _)| one.cmp(other));
        Self { entries }
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for Table<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K: Ord, V> Extend<(K, V)> for Table<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<K, V> IntoIterator for Table<K, V> {
    type Item = (K, V);
    type IntoIter = vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Goes through a [`Table`].
#[derive(Debug)]
pub struct Iter<'a, K, V>(slice::Iter<'a, (K, V)>);

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, value)| (key, value))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// Things, each once, in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Set<T> {
    entries: Vec<T>,
}

impl<T> Set<T> {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.entries.iter()
    }

    fn place<Q: Ord + ?Sized>(&self, one: &Q) -> Result<usize, usize>
    where
        T: Borrow<Q>,
    {
        let entries = self.entries.as_slice();
        search(entries.len(), &|nth| {
            entries.get(nth).map_or(Ordering::Greater, |other| other.borrow().cmp(one))
        })
    }

    /// Whether it is there.
    pub fn contains<Q: Ord + ?Sized>(&self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.place(one).is_ok()
    }

    /// Takes one out; says whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let place = self.place(one);
        if let Ok(place) = place {
            self.entries.remove(place);
        }
        place.is_ok()
    }

    /// Adds one; says whether it is new.
    pub fn insert(&mut self, one: T) -> bool
    where
        T: Ord,
    {
        let place = self.place(&one);
        if let Err(place) = place {
            self.entries.insert(place, one);
        }
        place.is_err()
    }
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(&self.entries).finish()
    }
}

impl<T: Ord> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut entries: Vec<T> = items.into_iter().collect();
        arrange(&mut entries, Ord::cmp);
        Self { entries }
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for Set<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Ord> Extend<T> for Set<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for one in items {
            self.insert(one);
        }
    }
}

impl<T> IntoIterator for Set<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Set<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
