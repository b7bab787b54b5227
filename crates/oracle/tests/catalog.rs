//! Many made-up catalogs: once they are calm, what is desired and what they have become equal (D5).
//!
//! `SIM_SEED=n` plays one again, `SIM_CATALOGS=n` sets how many there are.

#![expect(clippy::panic, reason = "a test stops at what it does not expect")]
use containerpilot_oracle::catalog::play_seed;
use containerpilot_oracle::nth_seed;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn try_seed(seed: u64) -> usize {
    match play_seed(seed) {
        Ok(requests) => requests,
        Err(found) => {
            let (script, broken) = *found;
            panic!("seed {seed}: {}\n{script:#?}\n{}", broken.what, broken.story.join("\n"));
        }
    }
}

#[test]
fn d5_what_is_wanted_and_what_the_catalog_has_become_equal() {
    if let Some(seed) = number("SIM_SEED") {
        try_seed(seed);
        return;
    }
    let catalogs = number("SIM_CATALOGS").unwrap_or(20_000);
    let requests: usize = (0..catalogs).map(|nth| try_seed(nth_seed(4, nth))).sum();
    assert!(requests as u64 > catalogs * 5, "the worlds have become empty: {requests} requests");
}
