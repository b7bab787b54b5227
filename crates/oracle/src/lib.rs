//! A made-up world around the core.
//!
//! A [`scenario::Scenario`] is a plan and the script of everything its world will do: how long each program takes to
//! start, how it ends, what it makes of a signal, when somebody sends one. [`world`] plays it in virtual time,
//! [`invariants`] looks on and knows the rules, [`random`] makes scenarios up from a number, and [`shrink`] makes
//! one that breaks a rule as small as it gets. Nothing here depends on anything but the number: a failure is replayed
//! by anybody.
#![forbid(unsafe_code)]

pub mod agents;
pub mod invariants;
pub mod random;
pub mod runner;
pub mod scenario;
pub mod shrink;

use containerpilot_core::rng::mix;

use crate::shrink::Failure;

/// What came of one schedule.
pub type Verdict = Result<runner::Totals, Box<Failure>>;

/// Plays the schedule of a seed; one that breaks a rule is shrunk.
pub fn run_seed(seed: u64) -> Verdict {
    let scenario = random::scenario(seed);
    match runner::run(&scenario, None) {
        Ok(totals) => Ok(totals),
        Err(violation) => Err(Box::new(shrink::shrink(seed, scenario, violation))),
    }
}

/// The seed of the nth schedule of a series.
#[must_use]
pub fn nth_seed(series: u64, nth: u64) -> u64 {
    mix(series ^ mix(nth))
}
