//! Watching a service with blocking queries (D7): which index to wait for, how long, and when to query again.
//!
//! These are the rules that Consul gives its clients: an index that goes backwards is reset, an index of zero counts as
//! one (it would not block), and a client that is answered quickly many times in a row slows down.

use core::time::Duration;

use super::backoff::retry_delay;
use crate::rng::Rng;
use crate::time::Time;

/// How many answers may follow each other without a pause.
const BURST: u32 = 5;
/// One more is allowed after each pause.
const PAUSE: Duration = Duration::from_millis(250);

/// A blocking query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The last known index: the catalog answers when it has changed or the wait has passed.
    pub index: Option<u64>,
    /// How long the catalog waits for a change.
    pub wait: Duration,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextQuery {
    /// Send this query.
    Send(Query),
    /// Nothing before this time.
    Wait(Time),
}

/// How many queries may wait at the same time, and how many watches there are. With more watches than slots, each query
/// waits for a shorter time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySlots {
    /// The number of slots.
    pub slots: u32,
    /// The number of watches.
    pub watches: u32,
}

/// The queries of one watch.
#[derive(Clone, Debug)]
pub struct WatchQueries {
    interval: Duration,
    index: u64,
    failures: u32,
    not_before: Time,
    /// Each answer adds a pause; this is when the last of them ends.
    pauses_until: Time,
    rng: Rng,
}

impl WatchQueries {
    /// A watch before its first query. The interval is the longest time between two queries, and the longest retry delay.
    #[must_use]
    pub const fn new(interval: Duration, seed: u64) -> Self {
        Self {
            interval,
            index: 0,
            failures: 0,
            not_before: Time::ZERO,
            pauses_until: Time::ZERO,
            rng: Rng::new(seed),
        }
    }

    /// What to do next.
    pub fn next(&mut self, now: Time, slots: QuerySlots) -> NextQuery {
        if now < self.not_before {
            return NextQuery::Wait(self.not_before);
        }
        let index = (self.index > 0).then_some(self.index);
        // Consul adds up to a sixteenth to the wait, and the request itself takes time.
        let wait = self.rng.part(self.interval, 80, 92);
        let wait = if slots.watches > slots.slots {
            wait.saturating_mul(slots.slots) / slots.watches.max(1)
        } else {
            wait
        };
        NextQuery::Send(Query { index, wait: wait.max(Duration::from_millis(1)) })
    }

    /// The query was answered, with this index.
    pub fn answered(&mut self, now: Time, index: u64) {
        self.failures = 0;
        self.index = if index < self.index { 0 } else { index.max(1) };
        let pause = PAUSE.min(self.interval);
        self.pauses_until = self.pauses_until.max(now) + pause;
        self.not_before = now + self.pauses_until.since(now).saturating_sub(pause.saturating_mul(BURST));
    }

    /// The query was not answered, or the answer is invalid. The last answer stays valid.
    pub fn failed(&mut self, now: Time) {
        self.not_before = now + retry_delay(&mut self.rng, self.failures, self.interval);
        self.failures = self.failures.saturating_add(1);
        // A restarted catalog may not know the index.
        self.index = 0;
    }
}
