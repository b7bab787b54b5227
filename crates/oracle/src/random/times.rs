//! Random times.

use std::time::Duration;

use containerpilot_core::rng::Rng;

pub(super) const SHORT: [u64; 6] = [0, 1, 5, 10, 50, 100];
pub(super) const LONG: [u64; 8] = [0, 10, 100, 200, 500, 1_000, 2_000, 5_000];
pub(super) const SPAN: [u64; 6] = [10, 50, 100, 200, 500, 1_000];

/// Mostly one of a few round times, in milliseconds, so that deadlines coincide; sometimes any time up to the longest.
pub(super) fn time<const N: usize>(rng: &mut Rng, round: &[u64; N]) -> Duration {
    if rng.percent(15) {
        let longest = round[N - 1];
        return Duration::from_micros(rng.below(longest * 1_000 + 1));
    }
    Duration::from_millis(rng.pick(round))
}
