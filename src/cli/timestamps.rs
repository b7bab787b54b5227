//! RFC 3339 timestamps in UTC, as the supervisor writes them.

/// The timestamp to the millisecond; the supervisor's are exact to the nanosecond.
pub(super) fn to_millis(timestamp: &str) -> String {
    match timestamp.strip_suffix('Z').and_then(|timestamp| timestamp.split_once('.')) {
        Some((seconds, fraction)) => format!("{seconds}.{:0<3}Z", fraction.get(..3).unwrap_or(fraction)),
        None => timestamp.to_owned(),
    }
}

/// The seconds from one timestamp to another; `None` if one of them is not a timestamp.
pub(super) fn seconds_between(from: &str, to: &str) -> Option<f64> {
    Some(seconds(to)? - seconds(from)?)
}

fn seconds(timestamp: &str) -> Option<f64> {
    let (date, time) = timestamp.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (time.next()??, time.next()??, time.next()??);
    // Years that start on March 1st have their leap day at the end (Howard Hinnant's days_from_civil).
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month + 2) / 5 + day;
    let days = i32::try_from(era * 146_097 + day_of_era).ok()?;
    Some(f64::from(days) * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_timestamps_are_shown_to_the_millisecond() {
        assert_eq!(to_millis("2026-11-15T06:07:23.276380614Z"), "2026-11-15T06:07:23.276Z");
        assert_eq!(to_millis("2026-11-15T06:07:23.5Z"), "2026-11-15T06:07:23.500Z");
        assert_eq!(to_millis("2026-11-15T06:07:23Z"), "2026-11-15T06:07:23Z");
        assert_eq!(to_millis(""), "");
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
