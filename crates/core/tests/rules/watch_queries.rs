//! D7, D16: the blocking queries of a watch, in virtual time.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::catalog::watch_queries::{NextQuery, Query, QuerySlots, WatchQueries};
use containerpilot_core::rng::Rng;

fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

const ALONE: QuerySlots = QuerySlots { slots: 100, watches: 1 };
const INTERVAL: Duration = Duration::from_secs(10);

fn query(queries: &mut WatchQueries, now: Time, slots: QuerySlots) -> Query {
    match queries.next(now, slots) {
        NextQuery::Send(query) => query,
        NextQuery::Wait(until) => panic!("it waits until {until:?}"),
    }
}

#[test]
fn d7_the_first_query_does_not_block_and_later_ones_do() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    assert_eq!(query(&mut queries, at(0), ALONE).index, None);
    queries.answered(at(5), 42);
    let second = query(&mut queries, at(255), ALONE);
    assert_eq!(second.index, Some(42));
    // Consul may add a sixteenth: the next query is not later than the interval.
    assert!(second.wait + second.wait / 16 <= INTERVAL, "{:?}", second.wait);
    assert!(second.wait >= INTERVAL * 3 / 4, "{:?}", second.wait);
    queries.answered(at(10_255), 42);
    assert_ne!(query(&mut queries, at(10_255), ALONE).wait, second.wait, "jitter");
}

#[test]
fn d7_an_index_that_goes_backwards_is_reset_and_zero_counts_as_one() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    let steps = [(0, None, 42), (1_000, Some(42), 41), (2_000, None, 7), (4_000, Some(7), 7)];
    for (time, known, answer) in steps {
        assert_eq!(query(&mut queries, at(time), ALONE).index, known);
        queries.answered(at(time + 1), answer);
    }
    let mut queries = WatchQueries::new(INTERVAL, 1);
    query(&mut queries, at(0), ALONE);
    queries.answered(at(1), 0);
    assert_eq!(query(&mut queries, at(1_000), ALONE).index, Some(1));
}

#[test]
fn d7_the_interval_bounds_the_retry_delay() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    queries.answered(at(0), 42);
    let mut now = at(0);
    let mut delays = Vec::new();
    for _ in 0..12 {
        queries.failed(now);
        let NextQuery::Wait(until) = queries.next(now, ALONE) else { panic!("at once") };
        delays.push(until.since(now));
        now = until;
    }
    assert!(delays[0] <= Duration::from_millis(100), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= INTERVAL), "{delays:?}");
    assert!(delays[11] >= INTERVAL / 2, "{delays:?}");
    assert_eq!(query(&mut queries, now, ALONE).index, None, "a restarted catalog may not know the index");
    queries.answered(now, 3);
    let now = now + Duration::from_secs(2);
    assert_eq!(query(&mut queries, now, ALONE).index, Some(3));
}

#[test]
fn d16_after_an_outage_the_pauses_begin_with_two_seconds() {
    let mut watch = Watch::at_rest(INTERVAL);
    watch.send();
    watch.queries.failed(watch.now);
    assert!(watch.pause(AT_ONCE) <= Duration::from_millis(100), "the first retry");
    assert_eq!([AT_ONCE; 2].map(|time| watch.pause(time).as_secs()), [2, 4]);
    for _ in 0..3 {
        let (_, wait) = watch.send();
        watch.answer_after(wait + AT_ONCE);
    }
    watch.pause(AT_ONCE);
    assert_eq!(watch.pause(AT_ONCE).as_millis(), 250, "after a quiet time");
}

#[test]
fn d7_with_more_watches_than_slots_each_query_waits_for_its_share() {
    let mut queries = WatchQueries::new(INTERVAL, 1);
    let wait = query(&mut queries, at(0), QuerySlots { slots: 100, watches: 1_000 }).wait;
    assert!(wait <= INTERVAL / 10 && wait >= INTERVAL / 15, "{wait:?}");
    assert!(query(&mut queries, at(0), QuerySlots { slots: 1, watches: u32::MAX }).wait > Duration::ZERO);
}

/// A watch, the time, its last query, and when each query that was answered was sent.
struct Watch {
    queries: WatchQueries,
    now: Time,
    query: Option<Query>,
    /// The index of the catalog: it changes with each early answer.
    index: u64,
    sent: Vec<Time>,
}

impl Watch {
    fn new(interval: Duration, seed: u64) -> Self {
        Self {
            queries: WatchQueries::new(interval, seed),
            now: Time::ZERO,
            query: None,
            index: 1,
            sent: Vec::new(),
        }
    }

    /// A watch that has its first answer, after the pause that follows it.
    fn following(interval: Duration) -> Self {
        let mut watch = Self::new(interval, 1);
        assert_eq!(watch.pause(Duration::ZERO), Duration::ZERO);
        watch.now = watch.now + interval.min(Duration::from_millis(250));
        watch
    }

    /// A watch without changes for a long time.
    fn at_rest(interval: Duration) -> Self {
        let mut watch = Self::following(interval);
        let until = watch.now + Duration::from_hours(1);
        while watch.now < until {
            let (pause, wait) = watch.send();
            assert!(pause <= interval / 10, "after a query whose wait has passed: {pause:?}");
            watch.answer_after(wait + wait / 32);
        }
        watch
    }

    /// Sends the next query as soon as possible. Returns the pause before it, and its wait.
    fn send(&mut self) -> (Duration, Duration) {
        let mut pause = Duration::ZERO;
        loop {
            match self.queries.next(self.now, ALONE) {
                NextQuery::Wait(until) => {
                    pause += until.since(self.now);
                    self.now = until;
                }
                NextQuery::Send(query) => {
                    self.query = Some(query);
                    return (pause, query.wait);
                }
            }
        }
    }

    /// Answers the query that was sent just now. Something has changed if its wait has not passed. If it has asked for the
    /// index alone, so is the next one, which must follow at once.
    fn answer_after(&mut self, time: Duration) {
        let query = self.query.unwrap();
        self.sent.push(self.now);
        self.now = self.now + time;
        let has_changed = time < query.wait;
        self.index += u64::from(has_changed);
        if query.index_is_enough {
            self.queries.answered_with_index(self.now, self.index);
            if has_changed {
                assert_eq!(self.send().0, Duration::ZERO, "the change is seen at once");
                let query = self.query.unwrap();
                assert_eq!((query.index, query.index_is_enough), (None, false));
                self.sent.push(self.now);
                self.queries.answered(self.now, self.index);
            }
        } else {
            self.queries.answered(self.now, self.index);
        }
    }

    /// The pause before the next query, which is answered after this time.
    fn pause(&mut self, answered_after: Duration) -> Duration {
        let (pause, _) = self.send();
        self.answer_after(answered_after);
        pause
    }

    /// The most queries in a minute.
    fn most_in_a_minute(&self) -> usize {
        let in_minute = |first: &Time| {
            self.sent
                .iter()
                .filter(|sent| *sent >= first && sent.since(*first) < Duration::from_millis(59_999))
                .count()
        };
        self.sent.iter().map(in_minute).max().unwrap_or(0)
    }
}

#[test]
fn d16_late_answers_with_changes_are_no_quiet_time() {
    let interval = Duration::from_secs(5);
    let mut watch = Watch::following(interval);
    let pauses: Vec<u128> = (0..5)
        .map(|nth| {
            let (pause, _) = watch.send();
            watch.now = watch.now + interval * 2;
            watch.queries.answered(watch.now, 100 + nth);
            pause.as_millis()
        })
        .collect();
    assert_eq!(pauses, [0, 500, 1_000, 2_000, 4_000], "a catalog that has too much to do");
}

const AT_ONCE: Duration = Duration::from_millis(1);

/// How often 3.8 polls in a minute, at most.
fn polls_in_a_minute(interval: Duration) -> usize {
    usize::try_from(Duration::from_mins(1).as_millis() / interval.as_millis()).unwrap() + 1
}

#[test]
fn d16_the_pause_doubles_up_to_the_interval_while_answers_follow_each_other() {
    let interval = Duration::from_secs(5);
    let mut watch = Watch::at_rest(interval);
    assert_eq!(watch.pause(AT_ONCE), Duration::ZERO, "the query waits when the first change comes");
    let pauses: Vec<u128> = (0..8).map(|_| watch.pause(AT_ONCE).as_millis()).collect();
    assert_eq!(pauses[..3], [250, 500, 1_000], "{pauses:?}");
    assert!((2_000..3_000).contains(&pauses[3]), "the budget is used up: {pauses:?}");
    assert!((4_000..5_000).contains(&pauses[4]), "{pauses:?}");
    assert_eq!(pauses[5..], [5_000; 3], "{pauses:?}");
}

#[test]
fn d16_the_pause_is_gone_after_a_quiet_interval_and_not_before() {
    let interval = Duration::from_secs(5);
    let changed_twice = || {
        let mut watch = Watch::at_rest(interval);
        assert_eq!(
            [watch.pause(AT_ONCE), watch.pause(interval / 2)].map(|pause| pause.as_millis()),
            [0, 250]
        );
        watch
    };
    let mut watch = changed_twice();
    assert_eq!(watch.pause(AT_ONCE).as_millis(), 500, "half an interval is not quiet");
    assert_eq!(watch.pause(interval + AT_ONCE).as_millis(), 1_000);
    assert_eq!(watch.pause(AT_ONCE).as_millis(), 0, "the wait of the last query has passed");
    assert_eq!(watch.pause(AT_ONCE).as_millis(), 250, "an interval is");
    let mut watch = changed_twice();
    let (_, wait) = watch.send();
    watch.answer_after(wait);
    assert_eq!(watch.pause(interval / 10).as_millis(), 0);
    assert_eq!(watch.pause(AT_ONCE).as_millis(), 250, "an interval in two queries is, too");
}

#[test]
fn d16_a_change_after_a_quiet_interval_is_seen_at_once_also_without_a_budget() {
    for seconds in [1, 5, 10, 60, 600] {
        let interval = Duration::from_secs(seconds);
        let mut watch = Watch::following(interval);
        // One change in each interval and a bit: the query always waits by then.
        for _ in 0..100 {
            let pause = watch.pause(interval.min(Duration::from_mins(1)) + AT_ONCE);
            assert!(pause <= Duration::from_millis(250), "{pause:?} at {interval:?}");
        }
    }
}

#[test]
fn d16_a_watch_at_rest_asks_as_polling_does() {
    for seconds in [1, 2, 5, 60, 600] {
        let interval = Duration::from_secs(seconds);
        let mut watch = Watch::following(interval);
        for _ in 0..1_000 {
            let (pause, wait) = watch.send();
            assert!(pause <= interval / 10, "{pause:?} at {interval:?}");
            // Consul adds a thirty-second on average.
            watch.answer_after(wait + wait / 32);
        }
        assert!(watch.most_in_a_minute() <= polls_in_a_minute(interval) + 5);
    }
}

#[test]
fn d16_over_a_minute_no_sequence_of_answers_leads_to_more_queries_than_polling_and_five() {
    for seed in 0..2_000 {
        let mut rng = Rng::from_seed(seed);
        let interval =
            Duration::from_millis(rng.pick(&[100, 1_000, 2_000, 5_000, 7_000, 10_000, 60_000, 600_000]));
        let mut watch = Watch::new(interval, seed);
        // Storms and quiet times of random lengths.
        let mut calm = 50;
        let end = Time::ZERO + (interval * 20).clamp(Duration::from_mins(3), Duration::from_hours(1));
        while watch.now < end {
            if rng.percent(10) {
                calm = rng.pick(&[0, 10, 50, 90, 100]);
            }
            let (pause, wait) = watch.send();
            assert!(pause <= interval, "seed {seed}: {pause:?} at {interval:?}");
            match rng.below(100) {
                0..3 => {
                    watch.now = watch.now + rng.part(wait, 0, 100);
                    watch.queries.failed(watch.now);
                }
                number if number < calm => watch.answer_after(wait + rng.part(wait / 16, 0, 100)),
                _ => {
                    let most = rng.pick(&[0, 1, 10, 100]);
                    watch.answer_after(rng.part(wait, 0, most));
                }
            }
        }
        let (most, polls) = (watch.most_in_a_minute(), polls_in_a_minute(interval));
        assert!(most <= polls + 5, "seed {seed}: {most} queries in a minute at {interval:?}");
    }
}

#[test]
fn d16_a_catalog_that_never_blocks_is_asked_as_often_as_by_polling() {
    // Index 0 resets the index of the watch, so that every other query does not wait.
    for index in [0, 7] {
        let interval = Duration::from_secs(5);
        let mut watch = Watch::new(interval, 1);
        while watch.now < at(600_000) {
            watch.send();
            assert!(!watch.query.unwrap().index_is_enough);
            watch.sent.push(watch.now);
            watch.now = watch.now + AT_ONCE;
            watch.queries.answered(watch.now, index);
        }
        assert!(watch.sent.len() <= 120 + 20 + 5, "{}", watch.sent.len());
    }
}

#[test]
fn d16_a_fleet_of_1000_that_watches_itself_needs_few_queries_and_sees_itself_complete() {
    let interval = Duration::from_secs(5);
    // Each registers in the first 5 s. Every registration answers all queries that wait.
    let registered: Vec<Time> = (0..1_000).map(|nth| at(nth * 5)).collect();
    let last = registered[999];
    let mut queries = 0;
    for (nth, start) in registered.iter().enumerate() {
        let mut watch = Watch { now: *start, ..Watch::new(interval, nth as u64) };
        let (mut known, mut seen) = (Time::ZERO, None);
        while watch.now < at(60_000) {
            let (_, wait) = watch.send();
            // A change since the last answer is answered at once.
            let change = registered.iter().find(|time| **time > known);
            let time = change.map_or(wait, |change| change.since(watch.now).min(wait));
            known = watch.now + time;
            // Consul takes a while for so many answers.
            watch.answer_after(time + Duration::from_millis(50));
            if known >= last {
                seen.get_or_insert(watch.now);
            }
            queries += usize::from(watch.now < at(15_000));
        }
        assert!(
            seen.unwrap().since(last) <= interval + Duration::from_millis(50),
            "{nth} sees it at {seen:?}"
        );
        assert!(watch.most_in_a_minute() <= polls_in_a_minute(interval) + 5);
    }
    // With a burst of four in each second there would be 60,000.
    assert!(queries <= 9_000, "{queries} queries in 15 s");
}

#[test]
fn d16_while_nothing_changes_the_index_is_enough_for_five_minutes() {
    for (seconds, whole_in_an_hour) in [(1, 11..=12), (5, 11..=12), (60, 9..=11), (600, 3..=4)] {
        let interval = Duration::from_secs(seconds);
        let mut watch = Watch::at_rest(interval);
        let (began, mut whole) = (watch.now, 0);
        while watch.now.since(began) < Duration::from_hours(1) {
            let (_, wait) = watch.send();
            whole += usize::from(!watch.query.unwrap().index_is_enough);
            watch.answer_after(wait + wait / 32);
        }
        assert!(whole_in_an_hour.contains(&whole), "{whole} at {interval:?}");
    }
}

#[test]
fn d16_another_index_than_the_known_one_leads_to_a_whole_answer_at_once() {
    for index in [43, 41, 0, u64::MAX] {
        let mut queries = WatchQueries::new(INTERVAL, 1);
        let mut now = at(0);
        loop {
            match queries.next(now, ALONE) {
                NextQuery::Wait(until) => now = until,
                NextQuery::Send(query) if query.index_is_enough => break,
                NextQuery::Send(query) => {
                    now = now + query.wait;
                    queries.answered(now, 42);
                }
            }
        }
        queries.answered_with_index(now + AT_ONCE, index);
        let whole = query(&mut queries, now + AT_ONCE, ALONE);
        assert_eq!((whole.index, whole.index_is_enough), (None, false), "{index}");
    }
}
