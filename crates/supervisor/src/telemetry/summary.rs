//! A summary: quantiles of the last ten minutes, and count and sum since the start (T2).
//!
//! Five streams receive every value. Every two minutes the oldest is cleared and becomes the youngest. Quantiles are
//! read from the oldest stream, which covers the last eight to ten minutes.

use std::time::Duration;

use super::quantile::{QuantileStream, TARGETS};

const STREAMS: usize = 5;
/// How long a stream is the oldest one.
const ROTATION: Duration = Duration::from_secs(120);

/// Observations of one metric. The caller passes the time, counted from any fixed moment.
#[derive(Debug)]
pub(super) struct Summary {
    streams: [QuantileStream; STREAMS],
    oldest: usize,
    next_rotation: Duration,
    pub(super) count: u64,
    pub(super) sum: f64,
}

impl Summary {
    pub(super) fn new(now: Duration) -> Self {
        Self { streams: Default::default(), oldest: 0, next_rotation: now + ROTATION, count: 0, sum: 0.0 }
    }

    pub(super) fn observe(&mut self, value: f64, now: Duration) {
        self.rotate(now);
        self.streams.iter_mut().for_each(|stream| stream.insert(value));
        self.count += 1;
        self.sum += value;
    }

    /// Each quantile and its value, NaN if nothing was observed in the window.
    pub(super) fn quantiles(&mut self, now: Duration) -> [(f64, f64); TARGETS.len()] {
        self.rotate(now);
        let oldest = self.streams.get_mut(self.oldest);
        let mut answer = TARGETS.map(|(share, _)| (share, f64::NAN));
        if let Some(stream) = oldest {
            for (share, value) in &mut answer {
                *value = stream.quantile(*share).unwrap_or(f64::NAN);
            }
        }
        answer
    }

    fn rotate(&mut self, now: Duration) {
        let late = now.saturating_sub(self.next_rotation);
        if late > ROTATION * u32::try_from(STREAMS).unwrap_or(u32::MAX) {
            // Every value is older than the window.
            self.streams.iter_mut().for_each(QuantileStream::clear);
            self.next_rotation = now + ROTATION;
        }
        while now > self.next_rotation {
            if let Some(stream) = self.streams.get_mut(self.oldest) {
                stream.clear();
            }
            self.oldest = (self.oldest + 1) % STREAMS;
            self.next_rotation += ROTATION;
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
    fn t2_the_window_is_ten_minutes_and_count_and_sum_are_not_limited_to_it() {
        let mut summary = Summary::new(minutes(5));
        summary.observe(1.0, minutes(5));
        for minute in 5..=13 {
            assert_eq!(median(&mut summary, minutes(minute)), 1.0, "after {minute} minutes");
        }
        assert!(median(&mut summary, minutes(15) + Duration::from_nanos(1)).is_nan());
        assert_eq!((summary.count, summary.sum), (1, 1.0));
    }

    #[test]
    fn t2_old_values_leave_the_window() {
        let mut summary = Summary::new(Duration::ZERO);
        for second in 0..3600_u32 {
            let value = if second < 1800 { 1.0 } else { 2.0 };
            summary.observe(value, Duration::from_secs(second.into()));
        }
        assert_eq!(median(&mut summary, minutes(60)), 2.0);
        assert_eq!((summary.count, summary.sum), (3600, 5400.0));
        assert!(median(&mut summary, minutes(71)).is_nan());
    }

    #[test]
    fn t2_after_a_long_pause_the_window_is_empty() {
        let mut summary = Summary::new(Duration::ZERO);
        summary.observe(1.0, Duration::ZERO);
        let later = Duration::from_secs(u64::MAX / 4);
        assert!(median(&mut summary, later).is_nan());
        summary.observe(3.0, later);
        assert_eq!(median(&mut summary, later + minutes(1)), 3.0);
    }
}
