//! Number literals.

use super::Number;

/// Parses a number literal; `None` if the text is not one.
pub(super) fn parse(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let magnitude = match digits {
        "Infinity" => f64::INFINITY,
        "NaN" => f64::NAN,
        _ => match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => hexadecimal(hex)?,
            None if is_decimal(digits) => digits.parse().ok()?,
            None => return None,
        },
    };
    Some(Number { value: if negative { -magnitude } else { magnitude }, text: text.into() })
}

/// `DecimalLiteral` of ECMAScript 5.1: no leading zeros, a digit on at least one side of the point.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_holds = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && !(whole.len() > 1 && whole.starts_with('0'))
        && exponent_holds
}

/// Hexadecimal digits of any count, rounded once.
fn hexadecimal(digits: &str) -> Option<f64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0.0);
    }
    // The leading 32 digits have more bits than a float. For rounding, the others matter only if one is not zero, which the
    // lowest bit records.
    let (head, tail) = digits.split_at_checked(32).unwrap_or((digits, ""));
    let sticky = u128::from(tail.bytes().any(|byte| byte != b'0'));
    let head = u128::from_str_radix(head, 16).ok()? | sticky;
    let shift = i32::try_from(tail.len()).unwrap_or(i32::MAX).saturating_mul(4).min(2000);
    #[expect(clippy::cast_precision_loss, reason = "rounds to the nearest float")]
    let head = head as f64;
    Some(head * 2f64.powi(shift))
}

impl Number {
    /// The number as a string, where one is expected (P8, C3). An integer keeps its digits; any other number is written
    /// without an exponent, like Go's `FormatFloat(f, 'f', -1, 64)`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let digits = self.text.strip_prefix('-').unwrap_or(&self.text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.text.to_string();
        }
        if self.value.is_infinite() {
            return if self.value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
        }
        self.value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p8_a_number_becomes_a_string_without_an_exponent() {
        for (literal, text) in [
            ("9007199254740993", "9007199254740993"),
            ("-12", "-12"),
            ("+12", "12"),
            ("1e6", "1000000"),
            ("1e21", "1000000000000000000000"),
            ("1e-7", "0.0000001"),
            ("0x1F", "31"),
            ("1.50", "1.5"),
            (".5", "0.5"),
            ("-0", "-0"),
            ("Infinity", "+Inf"),
            ("-Infinity", "-Inf"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(parse(literal).unwrap().to_text(), text);
        }
    }
}
