//! A summary: quantiles of the last ten minutes, count and sum of all time (T2).
//!
//! Five streams hear every value. Every two minutes the oldest is emptied and becomes the youngest, and it is always the
//! oldest that answers: it knows the last eight to ten minutes.

use std::time::Duration;

use super::quantile::{Stream, TARGETS};

const STREAMS: usize = 5;
/// How long a stream is the oldest.
const TURN: Duration = Duration::from_secs(120);

/// Observations of one metric. The time is told, and counted from any beginning.
#[derive(Debug)]
pub(super) struct Summary {
    streams: [Stream; STREAMS],
    oldest: usize,
    next_turn: Duration,
    pub(super) count: u64,
    pub(super) sum: f64,
}

impl Summary {
    pub(super) fn new(now: Duration) -> Self {
        Self { streams: Default::default(), oldest: 0, next_turn: now + TURN, count: 0, sum: 0.0 }
    }

    pub(super) fn observe(&mut self, value: f64, now: Duration) {
        self.turn(now);
        self.streams.iter_mut().for_each(|stream| stream.insert(value));
        self.count += 1;
        self.sum += value;
    }

    /// Each quantile and its value; not a number where nothing was observed of late.
    pub(super) fn quantiles(&mut self, now: Duration) -> [(f64, f64); TARGETS.len()] {
        self.turn(now);
        let oldest = self.streams.get_mut(self.oldest);
        let mut answer = TARGETS.map(|(share, _)| (share, f64::NAN));
        if let Some(stream) = oldest {
            for (share, value) in &mut answer {
                *value = stream.quantile(*share).unwrap_or(f64::NAN);
            }
        }
        answer
    }

    fn turn(&mut self, now: Duration) {
        let late = now.saturating_sub(self.next_turn);
        if late > TURN * u32::try_from(STREAMS).unwrap_or(u32::MAX) {
            // Nobody looked for longer than anything is remembered.
            self.streams.iter_mut().for_each(Stream::clear);
            self.next_turn = now + TURN;
        }
        while now > self.next_turn {
            if let Some(stream) = self.streams.get_mut(self.oldest) {
                stream.clear();
            }
            self.oldest = (self.oldest + 1) % STREAMS;
            self.next_turn += TURN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    fn median(summary: &mut Summary, now: Duration) -> f64 {
        summary.quantiles(now)[0].1
    }

    #[test]
    fn t2_an_empty_summary_has_no_quantiles() {
        let mut summary = Summary::new(Duration::ZERO);
        assert!(summary.quantiles(Duration::ZERO).iter().all(|(_, value)| value.is_nan()));
        assert_eq!((summary.count, summary.sum), (0, 0.0));
    }

    #[test]
    fn t2_the_window_is_ten_minutes_and_count_and_sum_are_for_ever() {
        let mut summary = Summary::new(minutes(5));
        summary.observe(1.0, minutes(5));
        for minute in 5..=13 {
            assert_eq!(median(&mut summary, minutes(minute)), 1.0, "after {minute} minutes");
        }
        assert!(median(&mut summary, minutes(15) + Duration::from_nanos(1)).is_nan());
        assert_eq!((summary.count, summary.sum), (1, 1.0));
    }

    #[test]
    fn t2_old_values_make_way_for_new_ones() {
        let mut summary = Summary::new(Duration::ZERO);
        for second in 0..3600_u32 {
            let value = if second < 1800 { 1.0 } else { 2.0 };
            summary.observe(value, Duration::from_secs(second.into()));
        }
        assert_eq!(median(&mut summary, minutes(60)), 2.0);
        assert_eq!((summary.count, summary.sum), (3600, 5400.0));
        // Half an hour, minus the eight to ten minutes in which the old ones were still the most.
        assert!(median(&mut summary, minutes(71)).is_nan());
    }

    #[test]
    fn t2_a_long_silence_costs_nothing_and_forgets_everything() {
        let mut summary = Summary::new(Duration::ZERO);
        summary.observe(1.0, Duration::ZERO);
        let later = Duration::from_secs(u64::MAX / 4);
        assert!(median(&mut summary, later).is_nan());
        summary.observe(3.0, later);
        assert_eq!(median(&mut summary, later + minutes(1)), 3.0);
    }
}
