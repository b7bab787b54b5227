//! Time spans of systemd: `1min 30s`, `500ms`, `5`, `infinity`.

/// A time span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// Microseconds.
    Micros(u64),
    /// Without end.
    Infinity,
}

/// The longest span that a configuration accepts, in microseconds: 100 years.
const LONGEST: f64 = 3.2e15;

impl Span {
    /// Reads a span. A number without a unit is in seconds.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "infinity" {
            return Some(Self::Infinity);
        }
        let mut rest = text.trim();
        let mut total = 0.0;
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, after) = rest.split_at_checked(digits)?;
            let number: f64 = number.parse().ok()?;
            let after = after.trim_start();
            let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at_checked(letters)?;
            total += number * micros(unit)?;
            rest = after.trim_start();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is in range, and whole"
        )]
        Some(if total > LONGEST { Self::Infinity } else { Self::Micros(total.round() as u64) })
    }

    /// The span as a duration of the configuration; `None` if it has no end.
    pub(crate) fn duration(self) -> Option<String> {
        match self {
            Self::Infinity => None,
            Self::Micros(micros) => Some(duration(micros)),
        }
    }
}

/// A duration of the configuration.
pub(crate) fn duration(micros: u64) -> String {
    if !micros.is_multiple_of(1000) {
        return format!("{micros}us");
    }
    if !micros.is_multiple_of(1_000_000) {
        return format!("{}ms", micros / 1000);
    }
    let seconds = micros / 1_000_000;
    let parts = [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let text: String =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn micros(unit: &str) -> Option<f64> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_time_spans_have_the_meaning_of_systemd() {
        let text = |text| Span::parse(text).map(Span::duration);
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
