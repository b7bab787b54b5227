//! Cycles of dependencies, which a configuration must not have.

use std::collections::{BTreeMap, BTreeSet};

/// The edges (from, to) that are part of a cycle, or lie between two cycles.
pub(crate) fn cyclic(edges: &BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    let mut left: BTreeSet<&(String, String)> = edges.iter().collect();
    // An edge from a node that nothing leads to is in no cycle; neither is one to a node that leads nowhere.
    for reverse in [false, true] {
        let ends = |edge: &'_ (String, String)| match reverse {
            false => (edge.0.clone(), edge.1.clone()),
            true => (edge.1.clone(), edge.0.clone()),
        };
        let mut incoming: BTreeMap<String, usize> = BTreeMap::new();
        let mut outgoing: BTreeMap<String, Vec<&(String, String)>> = BTreeMap::new();
        for edge in &left {
            let (from, to) = ends(edge);
            incoming.entry(from.clone()).or_default();
            *incoming.entry(to).or_default() += 1;
            outgoing.entry(from).or_default().push(edge);
        }
        let mut free: Vec<String> =
            incoming.iter().filter(|(_, count)| **count == 0).map(|(node, _)| node.clone()).collect();
        while let Some(node) = free.pop() {
            for edge in outgoing.remove(&node).unwrap_or_default() {
                left.remove(edge);
                let (_, to) = ends(edge);
                if let Some(count) = incoming.get_mut(&to) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        free.push(to);
                    }
                }
            }
        }
    }
    left.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(of: &[(&str, &str)]) -> BTreeSet<(String, String)> {
        of.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    #[test]
    fn c11_only_the_edges_of_a_cycle_are_removed() {
        let graph = edges(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("x", "y"), ("s", "s")]);
        assert_eq!(cyclic(&graph), edges(&[("b", "c"), ("c", "b"), ("s", "s")]));
    }
}
