//! Sorting. The standard library's sorts are fast, and each is compiled anew for every type that is sorted, at five
//! kilobytes apiece; ours sort a few things now and then, and do it with one that knows no types.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts; what is equal stays in its order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, Ord::cmp);
}

/// Sorts by a key; what has the same key stays in its order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Sorts as things compare; what is equal stays in its order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let order = arrange(items.len(), &|one, other| match (items.get(one), items.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    settle(order, &mut |one, other| items.swap(one, other));
}

/// The places of so many things in their order.
fn arrange(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// Brings things to their places, each from where `order` has it: what is in the way goes to the place that has just
/// become free, until the circle closes.
fn settle(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut place = start;
        while let Some(from) = order.get_mut(place).map(|from| core::mem::replace(from, place))
            && from != start
            && from != place
        {
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn nothing_is_lost_and_equals_stay_in_order() {
        let mut pairs: Vec<(u32, u32)> = (0..1000).map(|nth| (nth * 7919 % 31, nth)).collect();
        let mut expected = pairs.clone();
        expected.sort_by_key(|(key, _)| *key);
        sort_by_key(&mut pairs, |(key, _)| *key);
        assert_eq!(pairs, expected);
        let mut words = vec!["b", "a", "c", "a"];
        sort(&mut words);
        assert_eq!(words, ["a", "a", "b", "c"]);
        sort(&mut Vec::<u8>::new());
    }
}
