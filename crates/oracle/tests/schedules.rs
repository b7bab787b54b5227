//! Many made-up schedules, none of which breaks a rule.
//!
//! `SIM_SEED=n` plays one again, `SIM_SCHEDULES=n` sets how many there are.

use containerpilot_oracle::{nth_seed, play};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What was found before is not found again.
#[test]
fn no_schedule_that_once_broke_a_rule_does_so_again() {
    let seeds = include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#'));
    for line in seeds {
        let (seed, reason) = line.split_once(' ').unwrap_or((line, ""));
        let seed = seed.parse().unwrap_or_else(|_| panic!("`{seed}` is no seed"));
        if let Err(failure) = run_seed(seed) {
            panic!("{reason}\n{failure}");
        }
    }
}

#[test]
fn no_schedule_breaks_a_rule() {
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
        if let Ok(Some(failure)) = half.join() {
            panic!("{failure}");
        }
    }
}
