//! Many random schedules, none of which breaks a rule.
//!
//! `SIM_SEED=n` runs one seed, `SIM_SCHEDULES=n` sets how many there are.

use containerpilot_oracle::{nth_seed, run_seed, run_seed_recorded, run_seed_with_twin};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn recorded_seeds_break_no_rule() {
    let seeds = include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#'));
    for line in seeds {
        let (seed, reason) = line.split_once(' ').unwrap_or((line, ""));
        let seed = seed.parse().unwrap_or_else(|_| panic!("`{seed}` is not a seed"));
        if let Err(failure) = run_seed(seed) {
            panic!("{reason}\n{failure}");
        }
    }
}

#[test]
fn random_schedules_break_no_rule() {
    if let Some(seed) = number("SIM_SEED") {
        if let Err(failure) = run_seed(seed) {
            panic!("{failure}");
        }
        return;
    }
    let schedules = number("SIM_SCHEDULES").unwrap_or(100_000);
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || {
            (0..schedules).filter(|nth| nth % 2 == half).find_map(|nth| run_seed(nth_seed(0, nth)).err())
        })
    });
    for half in halves {
        match half.join() {
            Ok(None) => {}
            Ok(Some(failure)) => panic!("{failure}"),
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    }
}

/// Every feature of the generator happens in some schedules.
#[test]
fn schedules_have_what_they_are_to_try() {
    let schedules = 4_000;
    let mut found: Vec<(&str, u32)> =
        ["adjusted", "scaled", "actions", "stop signals"].map(|name| (name, 0)).into();
    for totals in (0..schedules).filter_map(|nth| run_seed(nth_seed(1, nth)).ok()) {
        let counts = [totals.adjusted, totals.scaled, totals.performed, totals.stop_signals];
        for ((_, schedules), count) in found.iter_mut().zip(counts) {
            *schedules += u32::from(count > 0);
        }
    }
    println!("of {schedules} schedules: {found:?}");
    assert!(found.iter().all(|(_, count)| *count > 20), "{found:?}");
}

/// A core that was read from a checkpoint does what the original does. `SIM_TWINS=n` sets how many schedules there are.
#[test]
fn a_core_goes_on_after_it_was_written_and_read() {
    let schedules = number("SIM_TWINS").unwrap_or(2_000);
    if let Some(failure) = (0..schedules).find_map(|nth| run_seed_with_twin(nth_seed(2, nth)).err()) {
        panic!("{failure}");
    }
}

/// B1, B4: what was recorded leads to the same decisions. The memory is so small that many recordings have lost their
/// beginning. `SIM_RECORDINGS=n` sets how many schedules there are.
#[test]
fn b4_a_recording_of_a_schedule_does_the_same_when_it_is_played() {
    let schedules = number("SIM_RECORDINGS").unwrap_or(2_000);
    let memory = |nth| 58_000 + usize::try_from(nth_seed(4, nth) % 12_000).unwrap_or_default();
    if let Some(failure) =
        (0..schedules).find_map(|nth| run_seed_recorded(nth_seed(3, nth), memory(nth)).err())
    {
        panic!("{failure}");
    }
}
