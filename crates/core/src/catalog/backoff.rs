//! The back-off of requests to the catalog (D5, D7).

use core::time::Duration;

use crate::rng::Rng;

/// The first retry delay, before the random part.
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The retry delay: it doubles with every failure, with a random share of its upper half.
pub(super) fn retry_delay(rng: &mut Rng, failures: u32, longest: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
    let delay = FIRST_DELAY.saturating_mul(doubled).min(longest);
    rng.part(delay, 50, 100)
}
