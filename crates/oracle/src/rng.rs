//! Rng that can be had again, with what a made-up world needs of it.

use std::time::Duration;

use containerpilot_core::rng;

/// A number from a number, as unlike it as can be.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    rng::Rng::new(number).number()
}

/// A source of rng.
#[derive(Clone, Debug)]
pub struct Rng(rng::Rng);

impl Rng {
    /// The source that belongs to a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let mut source = rng::Rng::new(mix(seed));
        // One number is passed over: seeds that are kept mean the worlds they have always meant.
        let _ = source.number();
        Self(source)
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0.number()
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
