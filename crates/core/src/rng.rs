//! A deterministic random number generator: the same seed gives the same numbers.

use core::time::Duration;

/// Maps a number to another one, so that similar numbers give unrelated results.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    Rng::new(number).number()
}

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(state: u64) -> Self {
        Self(state)
    }

    /// The generator for a seed. Similar seeds give unrelated sequences.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        let mut rng = Self::new(mix(seed));
        // Skips one number: the seeds recorded in tests depend on it.
        let _ = rng.number();
        rng
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

    /// An index below `bound`; 0 if `bound` is 0.
    pub const fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// True with this probability, in percent.
    pub const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several items, at least one.
    pub const fn pick<T: Copy, const N: usize>(&mut self, items: &[T; N]) -> T {
        const { assert!(N > 0, "there must be an item to pick") };
        items[self.index(N)]
    }

    /// A random part of `of`, from `least` to `most` percent.
    pub fn part(&mut self, of: Duration, least: u32, most: u32) -> Duration {
        let span = u64::from(most.saturating_sub(least)).saturating_mul(1_000);
        // At most 100,000, so it fits.
        let part = u32::try_from(self.below(span.saturating_add(1))).unwrap_or(0);
        of / 100_000 * part.saturating_add(least.saturating_mul(1_000))
    }
}
