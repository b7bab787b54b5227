use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use super::*;
use crate::chance::Chance;

fn same<K: Ord + fmt::Debug, V: PartialEq + fmt::Debug>(table: &Table<K, V>, tree: &BTreeMap<K, V>) {
    assert!(table.iter().eq(tree.iter()), "{table:?} is not {tree:?}");
    assert!(table.iter().rev().eq(tree.iter().rev()));
    assert!(table.keys().eq(tree.keys()) && table.values().eq(tree.values()));
    assert_eq!((table.len(), table.is_empty()), (tree.len(), tree.is_empty()));
    assert_eq!(format!("{table:?}"), format!("{tree:?}"));
}

#[test]
fn whatever_is_done_to_it_it_is_as_the_tree_of_the_standard_library() {
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let (mut table, mut tree) = (Table::new(), BTreeMap::new());
        let keys = chance.below(60) + 1;
        for step in 0..200_u64 {
            let key = chance.below(keys);
            match chance.below(9) {
                0..3 => assert_eq!(table.insert(key, step), tree.insert(key, step)),
                3 => assert_eq!(table.remove(&key), tree.remove(&key)),
                4 => {
                    *table.or_default(key) += step;
                    *tree.entry(key).or_default() += step;
                }
                5 => assert_eq!(table.or_insert(key, step), tree.entry(key).or_insert(step)),
                6 => {
                    assert_eq!(table.get(&key), tree.get(&key));
                    assert_eq!(table.contains_key(&key), tree.contains_key(&key));
                    if let (Some(one), Some(other)) = (table.get_mut(&key), tree.get_mut(&key)) {
                        (*one, *other) = (step, step);
                    }
                }
                7 if chance.below(10) == 0 => {
                    table.retain(|key, value| !key.is_multiple_of(3) && !value.is_multiple_of(5));
                    tree.retain(|key, value| !key.is_multiple_of(3) && !value.is_multiple_of(5));
                }
                _ => {
                    let more: Vec<_> = (0..chance.below(5)).map(|nth| (chance.below(keys), nth)).collect();
                    table.extend(more.clone());
                    tree.extend(more);
                }
            }
            same(&table, &tree);
        }
        table.values_mut().for_each(|value| *value += 1);
        tree.values_mut().for_each(|value| *value += 1);
        table.iter_mut().for_each(|(key, value)| *value += *key);
        tree.iter_mut().for_each(|(key, value)| *value += *key);
        assert!(table.clone().into_iter().eq(tree.clone()));
        assert!(table.into_values().eq(tree.into_values()));
    }
}

#[test]
fn what_is_collected_is_in_order_and_the_last_of_a_key_counts() {
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let (count, keys) = (chance.below(80), chance.below(60) + 1);
        let pairs: Vec<(String, u64)> = (0..count).map(|nth| (chance.below(keys).to_string(), nth)).collect();
        same(&pairs.iter().cloned().collect(), &pairs.iter().cloned().collect());
        let mut groups: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (key, value) in &pairs {
            groups.entry(key.clone()).or_default().push(*value);
        }
        same(&Table::grouped(pairs.iter().cloned()), &groups);
        let set: Set<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
        let tree: BTreeSet<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
        assert!(set.iter().eq(tree.iter()));
        assert_eq!((set.len(), format!("{set:?}")), (tree.len(), format!("{tree:?}")));
    }
}

#[test]
fn a_set_knows_what_is_new_and_what_was_there() {
    for seed in 0..100 {
        let mut chance = Chance::new(seed);
        let (mut set, mut tree) = (Set::new(), BTreeSet::new());
        for _ in 0..200 {
            let one = chance.below(40).to_string();
            match chance.below(3) {
                0 => assert_eq!(set.remove(one.as_str()), tree.remove(one.as_str())),
                1 => assert_eq!(set.contains(one.as_str()), tree.contains(one.as_str())),
                _ => assert_eq!(set.insert(one.clone()), tree.insert(one)),
            }
            assert!(set.iter().eq(tree.iter()));
            assert_eq!(set.is_empty(), tree.is_empty());
        }
        assert!((&set).into_iter().eq(&tree));
        assert!(set.into_iter().eq(tree));
    }
}

#[test]
fn tables_compare_by_what_is_in_them() {
    let one = Table::from([("b".to_string(), 2), ("a".to_string(), 1)]);
    assert_eq!(one, Table::from([("a".to_string(), 1), ("b".to_string(), 2)]));
    assert!(one < Table::from([("a".to_string(), 1), ("c".to_string(), 0)]));
    assert_eq!(one.get("b"), Some(&2));
    assert_eq!(Set::from([3, 1, 3]).into_iter().collect::<Vec<_>>(), vec![1, 3]);
    assert_eq!(Table::<u8, u8>::default(), Table::new());
    assert_eq!(Set::<u8>::default(), Set::new());
}
