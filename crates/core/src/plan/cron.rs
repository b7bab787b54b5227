//! Cron schedules (W15).
//!
//! A schedule is a set of local times. Each of them becomes one moment: a time that the clock skips becomes the moment
//! after the gap, and one that the clock shows twice becomes the first of both. Moments are in the order of their local
//! times, so that the next moment is found by going through the local times.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Serialize};

/// The longest time without a date is 40 years: from one 29th of February on a given weekday to the next, across a year
/// such as 2100.
const LONGEST_SEARCH: u32 = 41 * 366;

/// A schedule of five fields in a time zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cron {
    /// The schedule as written.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub text: String,
    /// The values of the five fields.
    pub fields: CronFields,
    /// The time zone.
    pub zone: Zone,
}

/// The values that each field of a schedule accepts: bit n is the value n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CronFields {
    /// Minutes, 0 to 59.
    pub minutes: u64,
    /// Hours, 0 to 23.
    pub hours: u64,
    /// Days of the month, 1 to 31.
    pub days: u64,
    /// Months, 1 to 12.
    pub months: u64,
    /// Days of the week; Sunday is 0.
    pub weekdays: u64,
    /// True if a date must match both fields of days. If both are restricted, it must match one of them, as in POSIX.
    pub both_days: bool,
}

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Its IANA name.
    pub name: String,
    /// Its offsets.
    pub offsets: TimeZone,
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".into(), offsets: TimeZone::UTC }
    }
}

impl Cron {
    /// The first time after `unix`, both in seconds since 1970. `None` if there is none.
    #[must_use]
    pub fn next_after(&self, unix: u64) -> Option<u64> {
        let now = Timestamp::from_second(i64::try_from(unix).ok()?).ok()?;
        let mut local = self.zone.offsets.to_datetime(now);
        loop {
            local = self.fields.next_after(local)?;
            let at = self.moment(local)?;
            if at > now {
                return u64::try_from(at.as_second()).ok();
            }
        }
    }

    /// The moment of a local time.
    fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let zone = &self.zone.offsets;
        let ambiguous = zone.to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                offset.to_timestamp(local).ok()
            }
            AmbiguousOffset::Gap { after, .. } => {
                // With the later offset, the time is before the change.
                let earlier = after.to_timestamp(local).ok()?;
                zone.following(earlier)
                    .find(|change| change.offset() == after)
                    .map(|change| change.timestamp())
            }
        }
    }
}

impl CronFields {
    /// Returns true if there is a date that matches. `0 0 31 2 *` has none.
    #[must_use]
    pub fn has_date(&self) -> bool {
        self.next_after(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).is_some()
    }

    /// The first local time after this minute.
    fn next_after(&self, local: DateTime) -> Option<DateTime> {
        let (mut date, hour, minute) = (local.date(), local.hour(), local.minute());
        if self.has_day(date) {
            if contains(self.hours, hour)
                && let Some(minute) = next_value(self.minutes, minute + 1)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            if let Some(hour) = next_value(self.hours, hour + 1) {
                return Some(date.at(hour, next_value(self.minutes, 0)?, 0, 0));
            }
        }
        for _ in 0..LONGEST_SEARCH {
            date = date.tomorrow().ok()?;
            if self.has_day(date) {
                return Some(date.at(next_value(self.hours, 0)?, next_value(self.minutes, 0)?, 0, 0));
            }
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = contains(self.days, date.day());
        let weekday = contains(self.weekdays, date.weekday().to_sunday_zero_offset());
        contains(self.months, date.month()) && if self.both_days { day && weekday } else { day || weekday }
    }
}

fn contains(values: u64, value: i8) -> bool {
    u32::try_from(value).ok().and_then(|value| values.checked_shr(value)).is_some_and(|rest| rest & 1 == 1)
}

/// The first value that is not less than `from`.
fn next_value(values: u64, from: i8) -> Option<i8> {
    (from..60).find(|value| contains(values, *value))
}

/// A time since 1970 in UTC: `2026-03-29T01:00:00Z`.
pub fn fmt_utc(unix: Duration) -> impl fmt::Display {
    let seconds = i64::try_from(unix.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
