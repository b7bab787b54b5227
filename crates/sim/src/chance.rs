//! Chance that can be had again: splitmix64.

use std::time::Duration;

/// A number from a number, as unlike it as can be.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A source of chance.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The source that belongs to a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below a bound, which is not 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// A number below a bound, as an index.
    pub const fn index(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    /// Whether something happens that happens so often in a hundred.
    pub const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub const fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// A time out of a few round ones, so that things fall together, or now and then any at all.
    pub const fn time(&mut self, round: &[u64]) -> Duration {
        if self.percent(15) {
            let longest = round[round.len() - 1];
            return Duration::from_micros(self.below(longest * 1_000 + 1));
        }
        Duration::from_millis(self.pick(round))
    }
}
