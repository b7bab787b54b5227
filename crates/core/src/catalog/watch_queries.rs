//! Watching a service with blocking queries (D7): which index to wait for, how long, and when to query again.
//!
//! These are the rules that Consul gives its clients: an index that goes backwards is reset, an index of zero counts as
//! one (it would not block), and a client that is answered quickly many times in a row slows down.
//!
//! The last one is D16. An answer that comes before the wait of its query has passed is *early*: something has changed,
//! the catalog does not block, or it is the first answer. Two things delay the query after it, and after a later answer
//! with another index:
//!
//! - The pause. It doubles with each such answer, and starts over after a quiet interval.
//! - The pace. In any minute there are at most as many queries as by polling, and [`EXTRA`] more. A query is one of these
//!   if it is sent sooner after the one before than polling could.
//!
//! Why both: a fleet whose supervisors watch their own service changes the answer of every watch with every
//! registration. Its queries grow with the square of its size, unless each watch sees several changes in one answer.
//!
//! While nothing changes, the index is enough: an answer with 300 instances costs Consul five times as much as one
//! without them. A change then needs a second query, so there must be extra ones left.

use core::time::Duration;

use crate::catalog::backoff::{retry_delay, sooner};
use crate::catalog::interruption::Interruption;
use crate::rng::Rng;
use crate::time::Time;

/// How many more queries than by polling are allowed in any minute (D16).
const EXTRA: usize = 5;
/// The pause after the first early answer (D16).
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The pause after the first answer of a catalog that was unavailable: much changes then, for all of its clients.
const PAUSE_AFTER_OUTAGE: Duration = Duration::from_secs(2);
/// The longest pause, and the longest quiet time that ends the pauses, if `interval` is longer (D16).
const MINUTE: Duration = Duration::from_secs(60);
/// How long a whole answer counts. The index says that nothing has changed; this is for a catalog that errs.
const VALIDITY: Duration = Duration::from_secs(300);

/// A blocking query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The last known index: the catalog answers when it has changed or the wait has passed.
    pub index: Option<u64>,
    /// How long the catalog waits for a change.
    pub wait: Duration,
    /// Whether an answer with the index alone is enough. See [`WatchQueries::answered_with_index`].
    pub index_is_enough: bool,
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
    /// When the last answer with more than the index came.
    read_at: Time,
    /// When the last query was sent, and how long the catalog waits if nothing changes.
    sent: (Time, Duration),
    /// Since when nothing has changed: when the first query that was answered so was sent.
    quiet_since: Option<Time>,
    /// The pause after the last early answer.
    pause: Duration,
    /// When the last query that was answered was sent. Failed ones do not count: they have the retry delay.
    counted: Option<Time>,
    /// When the last extra queries were sent, the oldest first.
    extra: [Option<Time>; EXTRA],
    rng: Rng,
}

impl WatchQueries {
    /// A watch before its first query. The interval is the longest time between two queries, and the longest retry
    /// delay.
    #[must_use]
    pub const fn new(interval: Duration, seed: u64) -> Self {
        Self {
            interval,
            index: 0,
            failures: 0,
            failed_at: None,
            not_before: Time::ZERO,
            read_at: Time::ZERO,
            sent: (Time::ZERO, Duration::ZERO),
            quiet_since: None,
            pause: Duration::ZERO,
            counted: None,
            extra: [None; EXTRA],
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
        // If the index has changed, a second query follows at once, and perhaps one for the next change.
        let has_extra = self.extra_from(2).is_none_or(|from| from <= now);
        let was_quiet = self.quiet_since.is_some();
        let index_is_enough = index.is_some() && was_quiet && has_extra && now.since(self.read_at) < VALIDITY;
        self.sent = (now, wait);
        NextQuery::Send(Query { index, wait, index_is_enough })
    }

    /// The query was answered, with this index.
    pub fn answered(&mut self, now: Time, index: u64) {
        self.read_at = now;
        self.count();
        self.space(now, index.max(1) != self.index);
        self.index = if index < self.index { 0 } else { index.max(1) };
    }

    /// The query was answered with the index alone. If it has changed, the next query is sent at once and does not
    /// wait.
    pub fn answered_with_index(&mut self, now: Time, index: u64) {
        self.count();
        if index.max(1) == self.index {
            self.space(now, false);
        } else {
            self.index = 0;
            self.not_before = now;
        }
    }

    /// Counts a query that was answered, as an extra one if polling could not have sent it yet.
    fn count(&mut self) {
        (self.failures, self.failed_at) = (0, None);
        let sent = self.sent.0;
        if self.counted.is_some_and(|before| sent < before + self.pace()) {
            self.extra.rotate_left(1);
            self.extra[EXTRA - 1] = Some(sent);
        }
        self.counted = Some(sent);
    }

    /// Delays the next query after an answer (D16).
    fn space(&mut self, now: Time, has_changed: bool) {
        let (sent, wait) = self.sent;
        let is_early = now.since(sent) < wait;
        let paced = sent + self.pace();
        self.not_before = if is_early || has_changed {
            let quiet_since = self.quiet_since.take().or(is_early.then_some(sent));
            let pause = self.next_pause(quiet_since.map(|since| now.since(since)));
            (now + pause).max(paced.min(self.extra_from(1).unwrap_or(Time::ZERO)))
        } else {
            self.quiet_since.get_or_insert(sent);
            now.max(paced)
        };
    }

    /// The pause after a change, and after this quiet time. A late answer does not tell when something has changed.
    fn next_pause(&mut self, quiet: Option<Duration>) -> Duration {
        let longest = self.interval.min(MINUTE);
        let is_quiet = quiet.is_some_and(|quiet| quiet >= longest);
        let doubled = if is_quiet { Duration::ZERO } else { self.pause.saturating_mul(2) };
        self.pause = doubled.max(FIRST_PAUSE).min(longest);
        self.pause
    }

    /// The time between two queries if a minute has as many as by polling.
    fn pace(&self) -> Duration {
        let polls = MINUTE.as_nanos() / self.interval.as_nanos().max(1) + 1;
        MINUTE / u32::try_from(polls).unwrap_or(u32::MAX)
    }

    /// When there may be so many extra queries. Without a time: always.
    fn extra_from(&self, queries: usize) -> Option<Time> {
        self.extra[queries - 1].map(|sent| sent + MINUTE)
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
        (self.quiet_since, self.pause) = (None, self.pause.max(PAUSE_AFTER_OUTAGE / 2));
    }
}
