//! The back-off of requests to the catalog (D5, D7).

use core::time::Duration;

use crate::rng::Rng;
use crate::time::Time;

/// The first retry delay, before the random part.
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest retry delay when the catalog has answered another client.
const BESIDE_ANSWERS: Duration = Duration::from_secs(1);

/// When a client whose request failed retries it, if the catalog has answered another client since: it may be back.
/// That is the first answer in an outage, so a catalog that works in part does not get more requests.
pub(super) fn sooner(not_before: Time, failed_at: Option<Time>, answered_at: Option<Time>) -> Time {
    match (failed_at, answered_at) {
        (Some(failed), Some(answered)) if answered > failed => not_before.min(failed + BESIDE_ANSWERS),
        _ => not_before,
    }
}

/// The retry delay: it doubles with every failure, with a random share of its upper half.
pub(super) fn retry_delay(rng: &mut Rng, failures: u32, longest: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
    let delay = FIRST_DELAY.saturating_mul(doubled).min(longest);
    rng.part(delay, 50, 100)
}
