//! A deterministic random number generator: the same seed gives the same numbers.

use core::time::Duration;

/// splitmix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        match self.number().checked_rem(bound) {
            Some(number) => number,
            None => 0,
        }
    }

    /// A random share of a duration, between `least` and `most` percent.
    pub fn part(&mut self, of: Duration, least: u32, most: u32) -> Duration {
        let span = u64::from(most.saturating_sub(least)).saturating_mul(1_000);
        // At most 100,000, so it fits.
        let part = u32::try_from(self.below(span.saturating_add(1))).unwrap_or(0);
        of / 100_000 * part.saturating_add(least.saturating_mul(1_000))
    }
}
