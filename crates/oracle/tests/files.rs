//! D15 with many random schedules: once everything is calm, each rendered file has the text of its inputs.
//!
//! `SIM_SEED=n` runs one seed, `SIM_FILES=n` sets how many there are.

#![expect(clippy::panic, reason = "a test may panic")]
use containerpilot_oracle::files::run_seed;
use containerpilot_oracle::nth_seed;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn try_seed(seed: u64) -> usize {
    match run_seed(seed) {
        Ok(renders) => renders,
        Err(found) => {
            let (schedule, broken) = *found;
            panic!("seed {seed}: {broken}\n{:#?}\n{:#?}", schedule.incidents, schedule.fates);
        }
    }
}

#[test]
fn d15_files_have_the_text_of_their_inputs_once_all_is_calm() {
    if let Some(seed) = number("SIM_SEED") {
        try_seed(seed);
        return;
    }
    let schedules = number("SIM_FILES").unwrap_or(3_000);
    let renders: usize = (0..schedules).map(|nth| try_seed(nth_seed(15, nth))).sum();
    assert!(renders as u64 > schedules * 5, "too little happens: {renders} renderings");
}
