//! Durations in a configuration (C3): digits are seconds, everything else is a Go duration.

pub use containerpilot_core::time::exact;

const SECOND: u64 = 1_000_000_000;
/// Go's limit; only a negative duration can reach it.
const MAX: u64 = 1 << 63;
/// The units. `µ` has two code points.
const UNITS: [(&str, u64); 8] = [
    ("h", 3600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1000),
    ("µs", 1000),
    ("μs", 1000),
    ("ns", 1),
];

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit, such as `1.5` or the `30` in `1h30`.
    #[error("the number {number} has no unit")]
    MissingUnit {
        /// The number.
        number: String,
    },
    /// An unknown unit, such as `sec` or `d`.
    #[error("unknown unit {unit:?}")]
    UnknownUnit {
        /// The unit.
        unit: String,
    },
    /// More than about 292 years.
    #[error("the duration is too long")]
    TooLarge,
    /// Not a duration.
    #[error("not a duration")]
    NotADuration,
}

impl DurationError {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::MissingUnit { number } if number.trim_end_matches('.').is_empty() => example(),
            Self::MissingUnit { number } => format!("add a unit, for example {number}s"),
            Self::UnknownUnit { unit } => unit_help(unit),
            Self::TooLarge => "the longest duration is 2562047h".to_owned(),
            Self::NotADuration => example(),
        }
    }
}

fn example() -> String {
    "write a number of seconds, or numbers with units such as 1h15m30s or 100ms".to_owned()
}

/// The unit that was probably meant.
fn unit_help(unit: &str) -> String {
    let word = unit.trim();
    let known = |word: &str| UNITS.iter().any(|(name, _)| *name == word);
    if word != unit && (known(word) || word.is_empty()) {
        return "write numbers and units without spaces, such as 1h30m".to_owned();
    }
    // The Greek capital Mu is the only capital letter of a unit outside of ASCII.
    let lower = word.to_ascii_lowercase().replace('Μ', "μ");
    let nearest = match lower.as_str() {
        "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "msec" | "msecs" | "milli" | "millis" | "millisecond" | "milliseconds" => "ms",
        "µ" | "μ" | "u" | "usec" | "usecs" | "micros" | "microsecond" | "microseconds" => "us",
        "n" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => "ns",
        "d" | "day" | "days" => return "write 24h for a day".to_owned(),
        "w" | "week" | "weeks" => return "write 168h for a week".to_owned(),
        "mo" | "month" | "months" => return "write 720h for 30 days".to_owned(),
        "y" | "yr" | "year" | "years" => return "write 8760h for 365 days".to_owned(),
        lower if known(lower) => lower,
        _ => return "the units are h, m, s, ms, us (or µs) and ns".to_owned(),
    };
    let space = if word == unit { "" } else { ", without a space before it" };
    format!("write {nearest} instead of {word}{space}")
}

/// Parses a duration to nanoseconds: the empty string is 0, digits are seconds, everything else is [`parse_go`].
///
/// # Errors
/// If the text is not a duration.
pub fn parse(text: &str) -> Result<i64, DurationError> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_go(text);
    }
    let seconds: i64 = text.parse().map_err(|_| DurationError::TooLarge)?;
    seconds.checked_mul(SECOND.cast_signed()).ok_or(DurationError::TooLarge)
}

/// Parses a duration to nanoseconds, like `time.ParseDuration` of Go 1.19.
///
/// # Errors
/// If the text is not a Go duration.
pub fn parse_go(text: &str) -> Result<i64, DurationError> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationError::NotADuration);
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let (amount, after) = element(rest)?;
        total = total.checked_add(amount).filter(|total| *total <= MAX).ok_or(DurationError::TooLarge)?;
        rest = after;
    }
    if negative {
        return Ok(0i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).map_err(|_| DurationError::TooLarge)
}

/// Parses one number with its unit. Returns nanoseconds, and the rest of the text.
fn element(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, after_whole) = digits(text);
    let (fraction, after_number) = match after_whole.strip_prefix('.') {
        Some(after_point) => digits(after_point),
        None => ("", after_whole),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::NotADuration);
    }
    let mut amount = match whole {
        "" => 0,
        _ => whole.parse().ok().filter(|whole| *whole <= MAX).ok_or(DurationError::TooLarge)?,
    };
    let next = after_number.find(|char: char| char == '.' || char.is_ascii_digit());
    let (name, rest) = after_number.split_at_checked(next.unwrap_or(after_number.len())).unwrap_or_default();
    if name.is_empty() {
        let number = text.get(..text.len() - after_number.len()).unwrap_or_default();
        return Err(DurationError::MissingUnit { number: number.to_owned() });
    }
    let Some((_, unit)) = UNITS.iter().find(|(unit, _)| *unit == name) else {
        return Err(DurationError::UnknownUnit { unit: name.to_owned() });
    };
    amount = unit.checked_mul(amount).filter(|amount| *amount <= MAX).ok_or(DurationError::TooLarge)?;
    amount = amount.saturating_add(part_of(*unit, fraction));
    if amount > MAX { Err(DurationError::TooLarge) } else { Ok((amount, rest)) }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The fraction of a unit, rounded as in Go: digits beyond 63 bits are dropped, and the others are converted to a float.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as in Go"
)]
fn part_of(unit: u64, fraction: &str) -> u64 {
    let mut value = 0u64;
    let mut scale = 1f64;
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        if value > (MAX - 1) / 10 || value * 10 + digit > MAX {
            break;
        }
        value = value * 10 + digit;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn c3_digits_are_seconds_and_the_empty_string_is_zero() {
        assert_eq!(parse("5"), Ok(5_000_000_000));
        assert_eq!(parse("-5"), Ok(-5_000_000_000));
        assert_eq!(parse(""), Ok(0));
        assert_eq!(parse("9223372037"), Err(DurationError::TooLarge));
        assert_eq!(parse_go("5"), Err(DurationError::MissingUnit { number: "5".to_owned() }));
    }

    #[test]
    fn c3_go_durations_have_the_limits_of_go() {
        assert_eq!(parse_go("2562047h47m16.854775807s"), Ok(i64::MAX));
        assert_eq!(parse_go("-2562047h47m16.854775808s"), Ok(i64::MIN));
        assert_eq!(parse_go("2562047h47m16.854775808s"), Err(DurationError::TooLarge));
        assert_eq!(parse_go("-9223372036854775808ns9223372036854775808ns"), Err(DurationError::TooLarge));
    }

    #[test]
    fn c5_errors_have_help() {
        for (text, message, help) in [
            ("10sec", "unknown unit \"sec\"", "write s instead of sec"),
            ("5min30s", "unknown unit \"min\"", "write m instead of min"),
            ("1H", "unknown unit \"H\"", "write h instead of H"),
            ("1d", "unknown unit \"d\"", "write 24h for a day"),
            ("1h 30m", "unknown unit \"h \"", "write numbers and units without spaces, such as 1h30m"),
            ("1.5", "the number 1.5 has no unit", "add a unit, for example 1.5s"),
            ("2562048h", "the duration is too long", "the longest duration is 2562047h"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.help().as_str()), (message, help));
        }
        assert_eq!(parse("soon"), Err(DurationError::NotADuration));
    }

    #[test]
    fn c3_exact_format_is_that_of_go_and_parses_back() {
        for (ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1100, "1.1µs"),
            (1000, "1µs"),
            (100_000_000, "100ms"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (3_600_000_000_000, "1h0m0s"),
            (4_530_500_000_000, "1h15m30.5s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(exact(Duration::from_nanos(ns.cast_unsigned())), text);
            assert_eq!(parse(text), Ok(ns));
        }
        assert_eq!(parse("-1m30s"), Ok(-90_000_000_000));
    }

    #[test]
    fn c5_a_space_before_an_unknown_unit_is_mentioned() {
        let help = |text: &str| parse(text).map_err(|error| error.help());
        assert_eq!(help("5min"), Err("write m instead of min".to_owned()));
        assert_eq!(help("5 min"), Err("write m instead of min, without a space before it".to_owned()));
        assert_eq!(help("5 m"), Err("write numbers and units without spaces, such as 1h30m".to_owned()));
    }
}
