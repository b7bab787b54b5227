//! Random schedules for the core, checked against its rules. For development only.
//!
//! A [`scenario::Scenario`] is a plan and everything its world does: how long programs take to start, how they exit, how
//! they react to signals, and what is done to the supervisor. [`random`] generates the scenario of a seed, [`runner`] runs
//! it in the virtual world of `containerpilot-simulation`, [`invariants`] checks every step, and [`shrink`] makes a
//! failing scenario as small as possible. Everything depends only on the seed, so that a failure can be replayed
//! anywhere.
#![forbid(unsafe_code)]

pub mod agents;
pub mod files;
pub mod invariants;
pub mod locks;
pub mod random;
pub mod runner;
pub mod scenario;
pub mod search;
pub mod shrink;
pub mod storms;
pub mod tape;
pub mod twin;

use containerpilot_core::rng::mix;

use crate::shrink::Failure;

/// Runs the schedule of a seed. A failing one is shrunk.
///
/// # Errors
/// The rule that was broken.
pub fn run_seed(seed: u64) -> Result<runner::Totals, Box<Failure>> {
    run_scenario(seed, random::scenario(seed))
}

/// Runs the schedule of a seed with a [`twin::Twin`] of the core.
///
/// # Errors
/// The rule that was broken, or what the twin does differently.
pub fn run_seed_with_twin(seed: u64) -> Result<runner::Totals, Box<Failure>> {
    run_scenario(seed, scenario::Scenario { has_twin: true, ..random::scenario(seed) })
}

/// Records the schedule of a seed with so many bytes of memory, and plays the recording ([`tape::Tape`]).
///
/// # Errors
/// The rule that was broken, or where the recording leads somewhere else.
pub fn run_seed_recorded(seed: u64, memory: usize) -> Result<runner::Totals, Box<Failure>> {
    run_scenario(seed, scenario::Scenario { recorded: Some(memory), ..random::scenario(seed) })
}

fn run_scenario(seed: u64, scenario: scenario::Scenario) -> Result<runner::Totals, Box<Failure>> {
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
