//! Reading the supervisor's JSON: what is missing is empty, so that an older or newer supervisor can be asked too.

use serde_json::Value;

/// Looking things up in an answer.
pub(super) trait Look {
    fn text(&self, key: &str) -> &str;
    fn number(&self, key: &str) -> Option<f64>;
    fn whole(&self, key: &str) -> Option<u64>;
    fn is(&self, key: &str) -> Option<bool>;
    fn list(&self, key: &str) -> &[Value];
    /// A member that is there and not null.
    fn part(&self, key: &str) -> Option<&Value>;
}

impl Look for Value {
    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(Value::as_f64)
    }

    fn whole(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Value::as_u64)
    }

    fn is(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(Value::as_bool)
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn part(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}

/// How a process ended, in words.
pub(super) fn exit(exit: &Value) -> String {
    match (exit.text("signal"), exit.whole("code")) {
        ("", Some(code)) => format!("code {code}"),
        ("", None) => String::new(),
        (signal, _) => signal.to_owned(),
    }
}

/// An event, in words: `db exitFailed`; of the supervisor and of signals, the one word that says it.
pub(super) fn event(event: &Value) -> String {
    match (event.text("source"), event.text("code")) {
        ("global", code) => code.to_owned(),
        (source, "signal") => source.to_owned(),
        (source, code) => format!("{source} {code}"),
    }
}

/// A moment as people read it: the supervisor's is exact to the nanosecond, and a thousandth of a second is enough.
pub(super) fn moment(exact: &str) -> String {
    match exact.strip_suffix('Z').and_then(|exact| exact.split_once('.')) {
        Some((whole, part)) => format!("{whole}.{:0<3}Z", part.get(..3).unwrap_or(part)),
        None => exact.to_owned(),
    }
}

/// The seconds from a moment to another, both in RFC 3339 and UTC, as the supervisor writes them.
pub(super) fn seconds_between(from: &str, to: &str) -> Option<f64> {
    Some(seconds(to)? - seconds(from)?)
}

fn seconds(moment: &str) -> Option<f64> {
    let (date, time) = moment.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (time.next()??, time.next()??, time.next()??);
    // Days since a March 1st, after which leap days come at the end of the year (Hinnant's formula).
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day;
    let days = i32::try_from(days).ok()?;
    Some(f64::from(days) * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_moments_are_shown_to_the_millisecond() {
        assert_eq!(moment("2026-11-15T06:07:23.276380614Z"), "2026-11-15T06:07:23.276Z");
        assert_eq!(moment("2026-11-15T06:07:23.5Z"), "2026-11-15T06:07:23.500Z");
        assert_eq!(moment("2026-11-15T06:07:23Z"), "2026-11-15T06:07:23Z");
        assert_eq!(moment(""), "");
    }

    #[test]
    fn x4_moments_are_told_apart_over_leap_days() {
        let between = |from, to| seconds_between(from, to);
        assert_eq!(between("2026-11-15T06:07:23Z", "2026-11-15T06:07:24.5Z"), Some(1.5));
        assert_eq!(between("2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z"), Some(172_800.0));
        assert_eq!(between("2027-02-28T00:00:00Z", "2027-03-01T00:00:00Z"), Some(86_400.0));
        assert_eq!(between("1999-12-31T23:59:59Z", "2000-01-01T00:00:00Z"), Some(1.0));
        assert_eq!(between("yesterday", "2000-01-01T00:00:00Z"), None);
    }
}
