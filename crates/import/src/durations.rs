//! Durations of other programs: `1m30s`, `1.5h`, `2d`.

/// A duration in milliseconds; units as in Go, and `d` and `w`. A number without a unit is refused.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut nanoseconds = 0f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let factor = match unit.trim() {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            "w" => 604_800e9,
            _ => return None,
        };
        nanoseconds += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    let milliseconds = (nanoseconds / 1e6).round();
    // A century is more than any of these programs waits.
    let valid = !text.is_empty() && (0.0..3.2e12).contains(&milliseconds);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    valid.then_some(milliseconds as u64)
}

/// A duration as it is written in a configuration.
pub(crate) fn shown(milliseconds: u64) -> String {
    match milliseconds {
        0 => "0s".to_owned(),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_durations_of_other_programs() {
        let read = |text| milliseconds(text).map(shown);
        let expected = [
            ("1m30s", Some("90s")),
            ("1.5h", Some("90m")),
            ("2d", Some("48h")),
            ("250ms", Some("250ms")),
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
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}
