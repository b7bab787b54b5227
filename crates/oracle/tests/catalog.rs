//! D5 with many random agents: once an agent has no more faults, desired and registered status become equal.
//!
//! `SIM_SEED=n` runs one seed, `SIM_CATALOGS=n` sets how many there are.

#![expect(clippy::panic, reason = "a test may panic")]
use containerpilot_oracle::agents::run_seed;
use containerpilot_oracle::nth_seed;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn try_seed(seed: u64) -> usize {
    match run_seed(seed) {
        Ok(requests) => requests,
        Err(found) => {
            let (schedule, broken) = *found;
            panic!("seed {seed}: {}\n{schedule:#?}\n{}", broken.what, broken.trace.join("\n"));
        }
    }
}

#[test]
fn d5_desired_and_registered_status_become_equal() {
    if let Some(seed) = number("SIM_SEED") {
        try_seed(seed);
        return;
    }
    let catalogs = number("SIM_CATALOGS").unwrap_or(20_000);
    let requests: usize = (0..catalogs).map(|nth| try_seed(nth_seed(4, nth))).sum();
    assert!(requests as u64 > catalogs * 5, "too little happens: {requests} requests");
}
