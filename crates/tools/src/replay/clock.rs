//! The times of a recording: the time of day at the time of the core. It can be set while it is recorded, so each block
//! has its own, and each step that reads the clock.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use containerpilot_api::timestamps;
use containerpilot_command_line::failure::Failure;
use containerpilot_core::Time;
use containerpilot_recording::Recording;

const DAY: u64 = 86_400_000;

/// The end of the year 9999. A recording may say anything.
const LATEST: u64 = 253_402_300_799_999;

/// Tells the time of day.
#[derive(Debug)]
pub(super) struct Clock {
    /// From which time of the core on, the milliseconds since 1970 at its zero. At least one, the earliest first.
    zeros: RefCell<Vec<(Time, u64)>>,
}

impl Clock {
    pub(super) fn new(recording: &Recording<'_>) -> Self {
        let starts = recording.blocks().map(|block| block.start());
        let clock = Self { zeros: RefCell::default() };
        starts.for_each(|start| clock.read_at(Time::from_nanos(start.time), start.unix));
        clock
    }

    /// At this time it was so many milliseconds after 1970.
    pub(super) fn read_at(&self, time: Time, unix: u64) {
        let zero = unix.min(LATEST).saturating_sub(time.as_nanos() / 1_000_000);
        let mut zeros = self.zeros.borrow_mut();
        let place = zeros.partition_point(|(from, _)| *from <= time);
        if place.checked_sub(1).and_then(|last| zeros.get(last)).is_none_or(|(_, known)| *known != zero) {
            zeros.insert(place, (time, zero));
        }
    }

    /// The time of day at the zero of the core's time, as it was known then.
    pub(super) fn zero(&self, time: Time) -> SystemTime {
        let zeros = self.zeros.borrow();
        let known = zeros.partition_point(|(from, _)| *from <= time).saturating_sub(1);
        UNIX_EPOCH + Duration::from_millis(zeros.get(known).map_or(0, |(_, zero)| *zero))
    }

    pub(super) fn at(&self, time: Time) -> SystemTime {
        self.zero(time) + time.since(Time::ZERO)
    }

    /// When the recording begins.
    pub(super) fn start(&self) -> SystemTime {
        let first = self.zeros.borrow().first().map_or(Time::ZERO, |(from, _)| *from);
        self.at(first)
    }

    /// A time to the millisecond, in UTC.
    pub(super) fn text(&self, time: SystemTime) -> String {
        timestamps::to_millis(&timestamps::rfc3339(time))
    }

    /// Parses a time on the command line: RFC 3339, a time of day in UTC, the first one in the recording, or `end`,
    /// which is asked when the recording ends.
    pub(super) fn read(
        &self,
        flag: &str,
        text: &str,
        end: impl FnOnce() -> SystemTime,
    ) -> Result<SystemTime, Failure> {
        let wrong = || {
            let example = self.text(self.start());
            Failure::Usage(format!(
                "invalid --{flag} `{text}`: write a time of day in UTC, such as 03:12:07, a time such as {example}, or end"
            ))
        };
        if text == "end" {
            return Ok(end());
        }
        if text.contains(['T', 't']) {
            return timestamps::parse(text).ok_or_else(wrong);
        }
        let start = self.start().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let start = u64::try_from(start).unwrap_or_default();
        let time = time_of_day(text).ok_or_else(wrong)?;
        let same_day = start - start % DAY + time;
        // The digits after the second may be left out.
        if same_day + 999 >= start {
            return Ok(UNIX_EPOCH + Duration::from_millis(same_day));
        }
        let (next_day, end) = (UNIX_EPOCH + Duration::from_millis(same_day + DAY), end());
        if next_day > end && flag == "from" {
            return Ok(self.start());
        }
        if next_day > end {
            let (start, end) = (self.text(self.start()), self.text(end));
            let why = format!("nothing was recorded at {text}: the recording is from {start} to {end}");
            return Err(Failure::Failed(why));
        }
        Ok(next_day)
    }
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.mmm`, in milliseconds.
fn time_of_day(text: &str) -> Option<u64> {
    let mut parts = text.splitn(3, ':');
    let number = |text: &str, below: u64| {
        let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| is_short && *number < below)
    };
    let (hours, minutes) = (number(parts.next()?, 24)?, number(parts.next()?, 60)?);
    let (seconds, fraction) = match parts.next() {
        None => (0, 0),
        Some(rest) => {
            let (seconds, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
            let digits = fraction.bytes().all(|byte| byte.is_ascii_digit()) && !fraction.is_empty();
            let millis = format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok().filter(|_| digits)?;
            (number(seconds, 60)?, millis)
        }
    };
    Some((hours * 3600 + minutes * 60 + seconds) * 1000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_a_clock_that_is_set_back_counts_from_then_on() {
        let clock = Clock { zeros: RefCell::default() };
        let millis = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let unix = |time| clock.at(millis(time)).duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        // The blocks are known first.
        clock.read_at(millis(0), 5_000_000);
        clock.read_at(millis(100), 4_000_080);
        clock.read_at(millis(20), 4_000_000);
        clock.read_at(millis(20), 4_000_000);
        assert_eq!(
            [0, 19, 20, 99, 100, 101].map(unix),
            [5_000_000, 5_000_019, 4_000_000, 4_000_079, 4_000_080, 4_000_081]
        );
        assert_eq!(clock.zeros.borrow().len(), 3);
    }

    /// A recording may say anything.
    #[test]
    fn b4_the_last_time_there_is_does_not_overflow() {
        let clock = Clock { zeros: RefCell::default() };
        clock.read_at(Time::ZERO, u64::MAX);
        clock.read_at(Time::from_nanos(u64::MAX), u64::MAX);
        for time in ["00:00", "23:59:59", "end"] {
            let _ = clock.read("at", time, || clock.start());
        }
        assert!(clock.text(clock.at(Time::from_nanos(u64::MAX))).ends_with('Z'));
    }

    #[test]
    fn b4_times_of_day_are_read() {
        assert_eq!(time_of_day("03:12"), Some(11_520_000));
        assert_eq!(time_of_day("03:12:07"), Some(11_527_000));
        assert_eq!(time_of_day("3:12:07.5"), Some(11_527_500));
        assert_eq!(time_of_day("03:12:07.123456"), Some(11_527_123));
        for wrong in ["", "3", "24:00", "03:60", "03:12:60", "03:12:07.", "03:12:07.x", "-1:00", "03:12:07Z"]
        {
            assert_eq!(time_of_day(wrong), None, "{wrong}");
        }
    }
}
