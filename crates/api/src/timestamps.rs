//! RFC 3339 timestamps, which the supervisor writes in UTC, and durations for people.

use std::time::{Duration, SystemTime};

/// A time in RFC 3339, as in the log.
pub fn rfc3339(time: SystemTime) -> String {
    containerpilot_log_format::stamp(time).iter().map(|byte| char::from(*byte)).collect()
}

/// A duration in its two largest units, such as `3h12m`; below ten seconds with tenths, below one in milliseconds.
pub fn short_duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "0s".to_owned();
    }
    let milliseconds = Duration::try_from_secs_f64(seconds).map_or(u128::MAX, |time| time.as_millis());
    let whole = milliseconds / 1000;
    match whole {
        0 => format!("{milliseconds}ms"),
        1..60 => {
            let tenths = milliseconds % 1000 / 100;
            if tenths == 0 || whole >= 10 { format!("{whole}s") } else { format!("{whole}.{tenths}s") }
        }
        60..3600 => format!("{}m{}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h{}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d{}h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// The timestamp to the millisecond; the supervisor's are exact to the nanosecond.
pub fn to_millis(timestamp: &str) -> String {
    match timestamp.strip_suffix('Z').and_then(|timestamp| timestamp.split_once('.')) {
        Some((seconds, fraction)) => format!("{seconds}.{:0<3}Z", fraction.get(..3).unwrap_or(fraction)),
        None => timestamp.to_owned(),
    }
}

/// The seconds from one timestamp to another; `None` if one of them is not a timestamp.
pub fn seconds_between(from: &str, to: &str) -> Option<f64> {
    Some(seconds(to)? - seconds(from)?)
}

/// Returns true for a time as the supervisor writes it.
pub fn is_timestamp(text: &str) -> bool {
    text.ends_with('Z') && seconds(text).is_some()
}

/// A time since 1970.
pub fn parse(timestamp: &str) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(seconds(timestamp)?).ok()?;
    // A double holds today's time to a quarter of a microsecond.
    Some(SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(since.as_micros()).ok()?))
}

/// The seconds since 1970. The offset is `Z` or `+HH:MM`.
fn seconds(timestamp: &str) -> Option<f64> {
    let (date, time) = timestamp.split_once(['T', 't'])?;
    let (time, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0.0),
        None => {
            let (time, offset) = time.split_at(time.rfind(['+', '-'])?);
            let (hours, minutes) = offset.get(1..)?.split_once(':')?;
            let offset_seconds = number(hours, 0, 23)? * 3600 + number(minutes, 0, 59)? * 60;
            let sign = if offset.starts_with('-') { -1.0 } else { 1.0 };
            (time, sign * f64::from(i32::try_from(offset_seconds).ok()?))
        }
    };
    let mut date = date.splitn(3, '-');
    let (year, month) = (number(date.next()?, 0, 9999)?, number(date.next()?, 1, 12)?);
    let day = number(date.next()?, 1, 31)?;
    let mut time = time.splitn(3, ':');
    let (hours, minutes) = (number(time.next()?, 0, 23)?, number(time.next()?, 0, 59)?);
    let seconds = time.next().filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))?;
    let seconds = seconds.parse::<f64>().ok().filter(|seconds| *seconds < 61.0)?;
    // Years that start on March 1st have their leap day at the end (Howard Hinnant's days_from_civil).
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    // Days are counted from 1970-01-01.
    let day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month + 2) / 5 + day - 1;
    let days = i32::try_from(era * 146_097 + day_of_era - 719_468).ok()?;
    let of_day = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    Some(f64::from(days) * 86_400.0 + f64::from(of_day) + seconds - offset)
}

/// A number of digits within bounds.
fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && (least..=most).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_durations_are_short() {
        for (seconds, text) in [
            (0.0, "0ms"),
            (0.0421, "42ms"),
            (1.0, "1s"),
            (9.96, "9.9s"),
            (59.9, "59s"),
            (61.0, "1m1s"),
            (11_520.0, "3h12m"),
            (200_000.0, "2d7h"),
            (-1.0, "0s"),
            (f64::INFINITY, "0s"),
        ] {
            assert_eq!(short_duration(seconds), text);
        }
    }

    #[test]
    fn x4_timestamps_are_shown_to_the_millisecond() {
        assert_eq!(to_millis("2026-11-15T06:07:23.276380614Z"), "2026-11-15T06:07:23.276Z");
        assert_eq!(to_millis("2026-11-15T06:07:23.5Z"), "2026-11-15T06:07:23.500Z");
        assert_eq!(to_millis("2026-11-15T06:07:23Z"), "2026-11-15T06:07:23Z");
        assert_eq!(to_millis(""), "");
    }

    #[test]
    fn x11_times_may_have_an_offset() {
        let epoch = |text| seconds(text);
        assert_eq!(epoch("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(epoch("2026-11-15T09:00:00+02:00"), epoch("2026-11-15T07:00:00Z"));
        assert_eq!(epoch("2026-11-15T09:00:00-00:30"), epoch("2026-11-15T09:30:00Z"));
        for wrong in [
            "1970-01-01",
            "1970-13-01T00:00:00Z",
            "1970-01-01T00:00:nanZ",
            "1970-01-01T00:00:00",
            "T",
            "é+é:é",
        ] {
            assert_eq!(epoch(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn x4_leap_days_count() {
        let between = |from, to| seconds_between(from, to);
        assert_eq!(between("2026-11-15T06:07:23Z", "2026-11-15T06:07:24.5Z"), Some(1.5));
        assert_eq!(between("2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z"), Some(172_800.0));
        assert_eq!(between("2027-02-28T00:00:00Z", "2027-03-01T00:00:00Z"), Some(86_400.0));
        assert_eq!(between("1999-12-31T23:59:59Z", "2000-01-01T00:00:00Z"), Some(1.0));
        assert_eq!(between("yesterday", "2000-01-01T00:00:00Z"), None);
        assert_eq!(between("", "2000-01-01T00:00:00Z"), None);
    }
}
