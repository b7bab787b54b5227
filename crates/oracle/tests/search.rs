//! The exhaustive search: small plans, every order of everything that can happen.
//!
//! `make search` goes further.

#![expect(clippy::panic, reason = "a test may panic")]

use std::collections::HashMap;

use containerpilot_core::Phase;
use containerpilot_oracle::search::limits::Limits;
use containerpilot_oracle::search::moves::Move;
use containerpilot_oracle::search::node::Node;
use containerpilot_oracle::search::{plans, search_all};

/// Searches every `step`th plan.
fn search(plans: Vec<plans::SmallPlan>, step: usize, limits: Limits) -> u64 {
    let plans: Vec<_> = plans.into_iter().step_by(step).collect();
    match search_all(&plans, limits) {
        Ok(summary) => summary.totals.states,
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn no_order_of_two_jobs_breaks_a_rule() {
    let limits = Limits { depth: 60, states: 1_000, outside: 0, faults: 1 };
    let states = search(plans::pairs(), 1, limits);
    assert!(states > 200_000, "only {states} states");
}

#[test]
#[ignore = "slow: a part of the search"]
fn no_order_of_two_jobs_and_an_input_breaks_a_rule() {
    let limits = Limits { depth: 5, states: 20_000, outside: 1, faults: 1 };
    let states = search(plans::pairs(), 1, limits);
    assert!(states > 200_000, "only {states} states");
}

#[test]
#[ignore = "slow: a part of the search"]
fn no_order_of_three_jobs_breaks_a_rule() {
    let limits = Limits { depth: 60, states: 1_000, outside: 0, faults: 0 };
    let states = search(plans::triples(), 10, limits);
    assert!(states > 100_000, "only {states} states");
}

/// What can happen next, by what it leads to. Ids differ between states with different histories.
fn futures(node: &Node<'_>, scenario: &containerpilot_oracle::scenario::Scenario) -> Vec<(String, u128)> {
    let kind = |choice: &Move| {
        let text = format!("{choice:?}");
        text.split(['(', ' ']).next().unwrap_or_default().to_owned()
    };
    let mut futures: Vec<_> = node
        .moves(scenario)
        .into_iter()
        .map(|choice| {
            let mut after = node.clone();
            if let Err(violation) = after.apply(choice, scenario) {
                panic!("{}: {}", violation.rule, violation.what);
            }
            let print = if after.phase() == Phase::Exited { 0 } else { after.fingerprint() };
            (kind(&choice), print)
        })
        .collect();
    futures.sort();
    futures
}

/// The search expands one of several states with the same fingerprint, so the others must not lead to anything else.
#[test]
fn equal_fingerprints_have_equal_futures() {
    let limits = Limits { depth: 8, states: 0, outside: 1, faults: 1 };
    let mut compared = 0;
    for plan in plans::pairs().iter().step_by(7) {
        let scenario = plan.scenario();
        let mut known: HashMap<u128, Vec<(String, u128)>> = HashMap::new();
        let mut open = vec![Node::new(&scenario, limits)];
        for _ in 0..400 {
            let Some(node) = open.pop() else { break };
            let futures = futures(&node, &scenario);
            match known.get(&node.fingerprint()) {
                Some(expected) => {
                    assert_eq!(&futures, expected, "{}", plan.name);
                    compared += 1;
                    continue;
                }
                None => known.insert(node.fingerprint(), futures),
            };
            for choice in node.moves(&scenario) {
                let mut after = node.clone();
                if after.apply(choice, &scenario).is_ok() && after.phase() != Phase::Exited {
                    open.push(after);
                }
            }
        }
    }
    assert!(compared > 1_000, "only {compared} states were compared");
}
