//! Following a service by blocking queries (D7): which index to wait for, how long, and when to ask again.
//!
//! The rules are those Consul gives its clients: an index that goes backwards is forgotten, one of zero counts as one
//! (it would not block), and whoever is answered quickly many times in a row has to slow down.

use core::time::Duration;

use super::reconcile::delay;
use crate::rng::Rng;
use crate::time::Time;

/// How many answers may follow each other without a pause.
const BURST: u32 = 5;
/// One more is allowed after each such time.
const PAUSE: Duration = Duration::from_millis(250);

/// A question for the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The state that is known, if any: there is no answer before there is another one, or the wait is over.
    pub index: Option<u64>,
    /// How long to wait for a change.
    pub wait: Duration,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask.
    Ask(Query),
    /// Nothing before this moment.
    Wait(Time),
}

/// How many may ask at the same time, and how many want to. If it is fewer, each holds its place for a shorter time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// How many there is room for.
    pub places: u32,
    /// How many there are.
    pub watches: u32,
}

/// One watch and its catalog.
#[derive(Clone, Debug)]
pub struct Follow {
    interval: Duration,
    index: u64,
    failures: u32,
    not_before: Time,
    /// Each answer pays for a pause; this is how far into the future that reaches.
    paid_until: Time,
    rng: Rng,
}

impl Follow {
    /// A watch that knows nothing. The interval is the longest time between two looks, and the pace of retries.
    #[must_use]
    pub const fn new(interval: Duration, seed: u64) -> Self {
        Self {
            interval,
            index: 0,
            failures: 0,
            not_before: Time::ZERO,
            paid_until: Time::ZERO,
            rng: Rng::new(seed),
        }
    }

    /// What to do now.
    pub fn next(&mut self, now: Time, crowd: Crowd) -> Step {
        if now < self.not_before {
            return Step::Wait(self.not_before);
        }
        let index = (self.index > 0).then_some(self.index);
        // The catalog adds up to a sixteenth to the wait by itself, and a part is for the way there and back.
        let wait = self.rng.part(self.interval, 80, 92);
        let wait = if crowd.watches > crowd.places {
            wait.saturating_mul(crowd.places) / crowd.watches.max(1)
        } else {
            wait
        };
        Step::Ask(Query { index, wait: wait.max(Duration::from_millis(1)) })
    }

    /// There was an answer, with this index.
    pub fn answered(&mut self, now: Time, index: u64) {
        self.failures = 0;
        self.index = if index < self.index { 0 } else { index.max(1) };
        let pause = PAUSE.min(self.interval);
        self.paid_until = self.paid_until.max(now) + pause;
        self.not_before = now + self.paid_until.since(now).saturating_sub(pause.saturating_mul(BURST));
    }

    /// There was none, or none that can be believed. What is known stays known.
    pub fn failed(&mut self, now: Time) {
        self.not_before = now + delay(&mut self.rng, self.failures, self.interval);
        self.failures = self.failures.saturating_add(1);
        // Whoever comes back may have started anew, and may not know the index.
        self.index = 0;
    }
}
