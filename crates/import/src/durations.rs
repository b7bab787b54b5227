//! The durations of other supervisors: those of Go, of Compose and of systemd. A [`Value`](crate::document::Value) writes
//! them for the new file.

use std::time::Duration;

use containerpilot_config::duration;

/// The longest duration: 100 years. A configuration accepts it, also three times as long.
const LONGEST: Duration = Duration::from_secs(3_200_000_000);

/// A duration as the new file has it: as Go writes it, without zeros behind the last unit (`1m30s`, `1h`).
pub(crate) fn written(duration: Duration) -> String {
    let text = duration::exact(duration.min(LONGEST)).replace('µ', "u");
    let text = text.strip_suffix("m0s").map_or(text.clone(), |minutes| format!("{minutes}m"));
    text.strip_suffix("h0m").map_or(text.clone(), |hours| format!("{hours}h"))
}

/// A duration of Go, which must not be negative.
pub(crate) fn go(text: &str) -> Option<Duration> {
    let nanoseconds = u64::try_from(duration::parse_go(text).ok()?).ok()?;
    Some(Duration::from_nanos(nanoseconds)).filter(|duration| *duration <= LONGEST)
}

/// A duration of Compose: `1m30s`, `1.5h`, `2d`. A number without a unit is refused.
pub(crate) fn compose(text: &str) -> Option<Duration> {
    if text.trim() == "0" {
        return Some(Duration::ZERO);
    }
    sum(text, |unit| {
        Some(match unit {
            "ns" => 1e-3,
            "us" | "µs" | "μs" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            "m" => 60e6,
            "h" => 3600e6,
            "d" => 86_400e6,
            "w" => 604_800e6,
            _ => return None,
        })
    })?
}

/// A time span of systemd: `1min 30s`, `500ms`, `5`, `infinity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Finite(Duration),
    Infinity,
}

impl Span {
    /// Reads a span. A number without a unit is in seconds.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "infinity" {
            return Some(Self::Infinity);
        }
        let span = sum(text, |unit| {
            Some(match unit {
                "us" | "usec" | "µs" | "μs" => 1.0,
                "ms" | "msec" => 1e3,
                "" | "s" | "sec" | "second" | "seconds" => 1e6,
                "m" | "min" | "minute" | "minutes" => 60e6,
                "h" | "hr" | "hour" | "hours" => 3600e6,
                "d" | "day" | "days" => 86_400e6,
                "w" | "week" | "weeks" => 604_800e6,
                "M" | "month" | "months" => 2_629_800e6,
                "y" | "year" | "years" => 31_557_600e6,
                _ => return None,
            })
        })?;
        Some(span.map_or(Self::Infinity, Self::Finite))
    }

    /// `None` if it has no end.
    pub(crate) fn duration(self) -> Option<Duration> {
        match self {
            Self::Infinity => None,
            Self::Finite(duration) => Some(duration),
        }
    }
}

/// The sum of numbers with units, between which there may be spaces; `unit` returns the microseconds of a unit.
/// `Some(None)` is longer than [`LONGEST`], and `None` is wrong.
#[expect(clippy::option_option, reason = "the outer one says whether it can be read")]
fn sum(text: &str, unit: fn(&str) -> Option<f64>) -> Option<Option<Duration>> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (name, after) = after.split_at_checked(letters)?;
        total += number.parse::<f64>().ok()? * unit(name)?;
        rest = after.trim_start();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates, and is not negative"
    )]
    let duration = Duration::from_micros(total.round() as u64);
    Some(Some(duration).filter(|duration| *duration <= LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_durations_of_other_programs() {
        let expected = [
            ("1m30s", Some("1m30s")),
            ("1.5h", Some("1h30m")),
            ("2d", Some("48h")),
            ("250ms", Some("250ms")),
            ("0.1s", Some("100ms")),
            ("0", Some("0s")),
            ("", None),
            ("5", None),
            ("5 s", Some("5s")),
            ("-5s", None),
            ("1e9s", None),
            ("99999999999999h", None),
            ("1.2.3s", None),
        ];
        for (text, expected) in expected {
            assert_eq!(compose(text).map(written).as_deref(), expected, "{text}");
            let expected = expected.filter(|_| !text.contains([' ', 'd']));
            assert_eq!(go(text).map(written).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn c11_durations_are_written_without_zeros_behind_the_last_unit() {
        let expected = [
            (0, "0s"),
            (60, "1m"),
            (90, "1m30s"),
            (600, "10m"),
            (3600, "1h"),
            (3605, "1h0m5s"),
            (4200, "1h10m"),
        ];
        for (seconds, text) in expected {
            assert_eq!(written(Duration::from_secs(seconds)), text);
        }
        assert_eq!(go(&written(Duration::MAX)), Some(LONGEST));
    }

    #[test]
    fn c11_time_spans_have_the_meaning_of_systemd() {
        let text = |text| Span::parse(text).map(|span| span.duration().map(written));
        let some = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(text("5"), some("5s"));
        assert_eq!(text("1min 30s"), some("1m30s"));
        assert_eq!(text("1min30s"), some("1m30s"));
        assert_eq!(text("2h"), some("2h"));
        assert_eq!(text("1.5h"), some("1h30m"));
        assert_eq!(text("500ms"), some("500ms"));
        assert_eq!(text("20 us"), some("20us"));
        assert_eq!(text("1w 1d"), some("192h"));
        assert_eq!(text("0"), some("0s"));
        assert_eq!(text("infinity"), Some(None));
        assert_eq!(text("99999999999999999999999y"), Some(None));
        for wrong in ["", "abc", "5 parsecs", "-5", "1..2", "5s x"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }
}
