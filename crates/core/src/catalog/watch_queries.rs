//! Watching a service with blocking queries (D7): which index to wait for, how long, and when to query again.
//!
//! These are the rules that Consul gives its clients: an index that goes backwards is reset, an index of zero counts as
//! one (it would not block), and a client that is answered quickly many times in a row slows down.
//!
//! The last one is D16. An answer that comes before the wait of its query has passed is *early*: something has changed,
//! the catalog does not block, or it is the first answer. Two things delay the query after it:
//!
//! - The pause. It doubles with each early answer, and starts over after a quiet interval.
//! - The budget. It grows by one query per interval, as polling would need, and by [`EXTRA`] per minute. At most
//!   [`BURST`] queries are saved up. Without it, storms that are a quiet interval apart would each have short pauses.
//!
//! Why both: a fleet whose supervisors watch their own service changes the answer of every watch with every
//! registration. Its queries grow with the square of its size, unless each watch sees several changes in one answer.

use core::time::Duration;

use super::backoff::{retry_delay, sooner};
use super::connectivity::Interruption;
use crate::rng::Rng;
use crate::time::Time;

/// How many queries may be saved up (D16).
const BURST: u32 = 4;
/// How many more queries than one per interval are allowed in each minute (D16). In any minute, polling asks at most
/// once more than the minute has intervals. The bound is five more than that: `BURST` and `EXTRA` are six.
const EXTRA: u32 = 2;
/// The pause after the first early answer (D16).
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause, and the longest quiet time that ends the pauses, if `interval` is longer (D16).
const MINUTE: Duration = Duration::from_secs(60);

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
    /// When the last query failed, unless one was answered since.
    failed_at: Option<Time>,
    not_before: Time,
    /// When the last query was sent, and how long the catalog waits if nothing changes.
    sent: (Time, Duration),
    /// When the first query after the last early answer was sent. Since then it is quiet.
    quiet_since: Option<Time>,
    /// The pause after the last early answer.
    pause: Duration,
    /// When the budget of queries is full.
    budget_full_at: Time,
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
            failed_at: None,
            not_before: Time::ZERO,
            sent: (Time::ZERO, Duration::ZERO),
            quiet_since: None,
            pause: Duration::ZERO,
            budget_full_at: Time::ZERO,
            rng: Rng::new(seed),
        }
    }

    /// What to do next. After [`NextQuery::Send`], the query must be sent at once.
    pub fn next(&mut self, now: Time, slots: QuerySlots) -> NextQuery {
        if now < self.not_before {
            return NextQuery::Wait(self.not_before);
        }
        let index = (self.index > 0).then_some(self.index);
        // Consul adds up to a sixteenth to the wait. Together, this is at most the interval (D7), and so close to it
        // that there are not more queries than with polling (D16).
        let wait = self.rng.part(self.interval, 93, 94);
        let wait = if slots.watches > slots.slots {
            wait.saturating_mul(slots.slots) / slots.watches.max(1)
        } else {
            wait
        };
        let wait = wait.max(Duration::from_millis(1));
        self.sent = (now, wait);
        self.quiet_since.get_or_insert(now);
        NextQuery::Send(Query { index, wait })
    }

    /// The query was answered, with this index.
    pub fn answered(&mut self, now: Time, index: u64) {
        (self.failures, self.failed_at) = (0, None);
        self.index = if index < self.index { 0 } else { index.max(1) };
        let (sent, wait) = self.sent;
        let is_early = now.since(sent) < wait;
        let pause = if is_early { self.next_pause(now) } else { Duration::ZERO };
        // Failed queries do not count: they have the retry delay.
        let refill = self.refill_time();
        self.budget_full_at = self.budget_full_at.max(sent) + refill;
        let debt = self.budget_full_at.since(now).saturating_sub(refill.saturating_mul(BURST - 1));
        self.not_before = now + pause.max(debt);
    }

    /// The pause after an early answer.
    fn next_pause(&mut self, now: Time) -> Duration {
        let longest = self.interval.min(MINUTE);
        let is_quiet = self.quiet_since.take().is_none_or(|since| now.since(since) >= longest);
        let doubled = if is_quiet { Duration::ZERO } else { self.pause.saturating_mul(2) };
        self.pause = doubled.max(FIRST_PAUSE).min(longest);
        self.pause
    }

    /// How long the budget takes to grow by one query, at one per interval and `EXTRA` per minute.
    fn refill_time(&self) -> Duration {
        let extra = self.interval.as_secs_f64() / MINUTE.as_secs_f64() * f64::from(EXTRA);
        self.interval.div_f64(1.0 + extra)
    }

    /// The catalog was unavailable for a client. If it answers another one, a failed query is sent again soon.
    pub fn interrupted(&mut self, interruption: Interruption) {
        self.not_before = sooner(self.not_before, self.failed_at, interruption.answered_at);
    }

    /// The query was not answered, or the answer is invalid. The last answer stays valid.
    pub fn failed(&mut self, now: Time) {
        self.not_before = now + retry_delay(&mut self.rng, self.failures, self.interval);
        (self.failures, self.failed_at) = (self.failures.saturating_add(1), Some(now));
        // A restarted catalog may not know the index.
        self.index = 0;
    }
}
