//! Number constants.

use crate::value::TemplateValue;

/// The value of a number constant.
pub(crate) enum NumberConstant {
    Value(TemplateValue),
    /// It fits only an unsigned integer, which is an error if it is evaluated.
    Overflow,
}

/// Why a constant is not a number.
pub(crate) enum NumberError {
    TooLarge,
    Malformed,
}

/// Reads `1`, `-0x1F`, `0o17`, `1_000`, `2.5e3`, `0x1p-2`, `3i`.
pub(crate) fn number(text: &[u8]) -> Result<NumberConstant, NumberError> {
    let text = std::str::from_utf8(text).map_err(|_| NumberError::Malformed)?;
    if let Some(imaginary) = text.strip_suffix('i')
        && let Some(imaginary) = float(imaginary)
    {
        return Ok(NumberConstant::Value(TemplateValue::Complex(0.0, imaginary)));
    }
    // Go reads a constant as a float if it looks like one, and `-0x1e` does.
    let hexadecimal = text.len() > 2 && (text.starts_with("0x") || text.starts_with("0X"));
    let looks_float = (!hexadecimal || text.contains(['p', 'P'])) && text.contains(['.', 'e', 'E', 'p', 'P']);
    match integer(text) {
        Some(value) => {
            if looks_float {
                #[expect(clippy::cast_precision_loss, reason = "Go rounds here too")]
                return Ok(NumberConstant::Value(TemplateValue::Float(value as f64)));
            }
            Ok(i64::try_from(value)
                .map_or(NumberConstant::Overflow, |value| NumberConstant::Value(TemplateValue::Int(value))))
        }
        None => match float(text) {
            Some(value) if text.contains(['.', 'e', 'E', 'p', 'P']) => {
                Ok(NumberConstant::Value(TemplateValue::Float(value)))
            }
            Some(_) => Err(NumberError::TooLarge),
            None => Err(NumberError::Malformed),
        },
    }
}

/// Reads `1+2i`.
pub(crate) fn complex(text: &[u8]) -> Option<TemplateValue> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('i')?;
    // The sign between the parts, which is not the sign of an exponent.
    let hexadecimal = |part: &str| part.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate().skip(1) {
        if byte != b'+' && byte != b'-' {
            continue;
        }
        let (real, imaginary) = text.split_at_checked(index)?;
        let exponent = if hexadecimal(real) { ['p', 'P'] } else { ['e', 'E'] };
        if real.ends_with(exponent) {
            continue;
        }
        return Some(TemplateValue::Complex(float(real)?, float(imaginary)?));
    }
    None
}

/// An integer from -2^63 to 2^64-1 in any base, with underscores between digits.
fn integer(text: &str) -> Option<i128> {
    if !underscores_fit(text) {
        return None;
    }
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, lower.get(1..)?)
    } else {
        (10, lower.as_str())
    };
    let digits: String = digits.chars().filter(|&digit| digit != '_').collect();
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    let size = u64::from_str_radix(&digits, base).ok()?;
    let value = if negative { -i128::from(size) } else { i128::from(size) };
    // A sign makes it a signed number.
    if signed && i64::try_from(value).is_err() { None } else { Some(value) }
}

/// A decimal or hexadecimal float; `None` if it is malformed or too large.
fn float(text: &str) -> Option<f64> {
    if !underscores_fit(text) {
        return None;
    }
    let plain: String = text.chars().filter(|&digit| digit != '_').collect();
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let size = match unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits)?,
        None => {
            // Rust also parses `inf` and `nan`, which Go does not.
            if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') || unsigned == "." {
                return None;
            }
            unsigned.parse::<f64>().ok()?
        }
    };
    if !size.is_finite() {
        return None;
    }
    Some(if plain.starts_with('-') { -size } else { size })
}

/// The value of `1.8p1` after its `0x`, rounded once to the nearest even.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let negative = exponent.starts_with('-');
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if exponent.is_empty() || !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // With a larger exponent the value is zero or infinite, for any digits.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000_000);
    let mut exponent = if negative { -exponent } else { exponent };
    let (mut mantissa, mut dropped, mut seen, mut fraction) = (0u64, false, false, false);
    for digit in digits.chars() {
        if digit == '.' {
            if fraction {
                return None;
            }
            fraction = true;
            continue;
        }
        let digit = u64::from(digit.to_digit(16)?);
        seen = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if fraction { 4 } else { 0 };
        } else {
            dropped |= digit != 0;
            exponent += if fraction { 0 } else { 4 };
        }
    }
    if !seen {
        return None;
    }
    if mantissa == 0 {
        return Some(0.0);
    }
    let shift = mantissa.leading_zeros();
    mantissa <<= shift;
    exponent -= i64::from(shift);
    // The value is mantissa * 2^exponent with the top bit set, so that 63 + exponent is the binary exponent.
    let binary = exponent + 63;
    if binary > 1023 {
        return Some(f64::INFINITY);
    }
    let kept = if binary >= -1022 { 53 } else { 53 - (-1022 - binary) };
    if kept < 0 {
        return Some(0.0);
    }
    let cut = u32::try_from(64 - kept).ok()?;
    let (high, low) =
        if cut == 64 { (0, mantissa) } else { (mantissa >> cut, mantissa & ((1u64 << cut) - 1)) };
    let half = 1u64 << (cut - 1);
    let up = low > half || (low == half && (dropped || high & 1 == 1));
    let rounded = high + u64::from(up);
    let scale = exponent + i64::from(cut);
    // `rounded` has at most 53 bits, so both steps below are exact.
    #[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
    let value = rounded as f64;
    let first = scale.clamp(-1000, 1000);
    Some(value * power(first) * power(scale - first))
}

fn power(exponent: i64) -> f64 {
    f64::powi(2.0, i32::try_from(exponent).unwrap_or(i32::MIN))
}

/// Returns true if all underscores are between digits, or between a base prefix and a digit.
fn underscores_fit(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let prefixed = digits.len() >= 2
        && digits.first() == Some(&b'0')
        && digits.get(1).is_some_and(|letter| matches!(letter, b'b' | b'B' | b'o' | b'O' | b'x' | b'X'));
    let hexadecimal = prefixed && digits.get(1).is_some_and(|letter| letter.eq_ignore_ascii_case(&b'x'));
    let mut last = if prefixed { b'0' } else { b'^' };
    for &byte in digits.get(if prefixed { 2 } else { 0 }..).unwrap_or_default() {
        if byte.is_ascii_digit() || hexadecimal && byte.is_ascii_hexdigit() {
            last = b'0';
        } else if byte == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if last == b'_' {
                return false;
            }
            last = b'!';
        }
    }
    last != b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_hexadecimal_floats_round_to_even() {
        for (text, expected) in [
            ("0x1p4", 16.0),
            ("0x1.8p1", 3.0),
            ("0x.8p0", 0.5),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff7p0", 1.999_999_999_999_999_8),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x1p1023", 8.98846567431158e307),
            ("-0x1p-2", -0.25),
        ] {
            assert_eq!(float(text), Some(expected), "{text}");
        }
        for text in ["0x1", "0xp1", "0x1p", "0x1.1.1p1", "0x1p1024", "1e400", "inf", ".", "1__0.5", "_1.5"] {
            assert_eq!(float(text), None, "{text}");
        }
    }

    #[test]
    fn c2_integers_have_gos_bases_and_bounds() {
        for (text, expected) in [
            ("017", 15),
            ("0_17", 15),
            ("0b101", 5),
            ("0x_ff", 255),
            ("-0", 0),
            ("18446744073709551615", 18_446_744_073_709_551_615),
            ("-9223372036854775808", -9_223_372_036_854_775_808),
        ] {
            assert_eq!(integer(text), Some(expected), "{text}");
        }
        for text in ["08", "1__0", "1_", "0x", "-9223372036854775809", "+9223372036854775808", ""] {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}
