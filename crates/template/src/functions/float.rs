//! Floats as text, in Go's formats.

/// Formats `value` for `verb` (`b`, `e`, `E`, `f`, `g`, `G`, `x`, `X`) with `precision` digits. Without a precision, the
/// fewest digits are used that read back as the same value. The first character is always a sign.
pub(crate) fn format(value: f64, verb: char, precision: Option<usize>) -> Vec<u8> {
    let mut out = vec![if value.is_sign_negative() { b'-' } else { b'+' }];
    let size = value.abs();
    if !size.is_finite() {
        out.extend_from_slice(if size.is_nan() { b"NaN" } else { b"Inf" });
        return out;
    }
    match verb {
        'b' => binary(&mut out, size),
        'x' | 'X' => hexadecimal(&mut out, size, verb == 'X', precision),
        'e' | 'E' => {
            let (digits, exponent) = digits(size, precision);
            scientific(
                &mut out,
                &digits,
                exponent,
                verb,
                precision.unwrap_or(digits.len().saturating_sub(1)),
            );
        }
        'g' | 'G' => general(&mut out, size, verb, precision),
        _ => plain(&mut out, size, precision),
    }
    out
}

/// No float has more significant digits.
const MOST_DIGITS: usize = 1100;

/// The significant digits, rounded to `precision` digits after the first, and the exponent of the first.
fn digits(size: f64, precision: Option<usize>) -> (Vec<u8>, i32) {
    let text = match precision {
        Some(precision) => format!("{:.*e}", precision.min(MOST_DIGITS), size),
        None => shortest(size),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.bytes().filter(u8::is_ascii_digit).collect(), exponent.parse().unwrap_or(0))
}

/// The fewest digits that read back as `size`. If two candidates are equally near, Go takes the one with an even last
/// digit, Rust the larger one.
fn shortest(size: f64) -> String {
    let text = format!("{size:e}");
    let count = text.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    let even = format!("{size:.*e}", count.saturating_sub(1));
    if even.parse() == Ok(size) { even } else { text }
}

fn zeros(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b'0');
}

/// `d.ddde±dd` with `precision` digits after the point.
fn scientific(out: &mut Vec<u8>, digits: &[u8], exponent: i32, verb: char, precision: usize) {
    let (first, rest) = digits.split_first().unwrap_or((&b'0', &[]));
    out.push(*first);
    if precision > 0 {
        out.push(b'.');
        let shown = rest.get(..precision).unwrap_or(rest);
        out.extend_from_slice(shown);
        zeros(out, precision - shown.len());
    }
    let letter = if verb.is_ascii_uppercase() { 'E' } else { 'e' };
    let sign = if exponent < 0 { '-' } else { '+' };
    out.extend(format!("{letter}{sign}{:02}", exponent.unsigned_abs()).bytes());
}

fn plain(out: &mut Vec<u8>, size: f64, precision: Option<usize>) {
    match precision {
        Some(precision) => {
            let shown = precision.min(MOST_DIGITS);
            out.extend(format!("{size:.shown$}").bytes());
            if precision > shown {
                zeros(out, precision - shown);
            }
        }
        None => out.extend(format!("{size}").bytes()),
    }
}

fn general(out: &mut Vec<u8>, size: f64, verb: char, precision: Option<usize>) {
    let requested = precision.map(|precision| precision.max(1));
    let (mut digits, exponent) = digits(size, requested.map(|requested| requested - 1));
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The position of the decimal point among the digits.
    let point = if digits.is_empty() { 0 } else { exponent + 1 };
    let mut threshold = requested.map_or(6, |requested| i32::try_from(requested).unwrap_or(i32::MAX));
    if requested.is_some() && threshold > count && count >= point {
        threshold = count;
    }
    if point - 1 < -4 || point > threshold {
        scientific(out, &digits, exponent, verb, digits.len().saturating_sub(1));
        return;
    }
    // Without an exponent.
    let digit =
        |index: i32| usize::try_from(index).ok().and_then(|index| digits.get(index)).copied().unwrap_or(b'0');
    if point <= 0 {
        out.push(b'0');
    }
    out.extend((0..point).map(digit));
    if count > point {
        out.push(b'.');
        out.extend((point..count).map(digit));
    }
}

/// The mantissa as an integer, and its exponent.
fn parts(size: f64) -> (u64, i32) {
    let bits = size.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    if exponent == 0 { (fraction, -1022) } else { (fraction | 1 << 52, exponent - 1023) }
}

fn binary(out: &mut Vec<u8>, size: f64) {
    let (mantissa, exponent) = parts(size);
    out.extend(format!("{mantissa}p{:+}", exponent - 52).bytes());
}

fn hexadecimal(out: &mut Vec<u8>, size: f64, upper: bool, precision: Option<usize>) {
    let (mut mantissa, mut exponent) = parts(size);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The leading digit moves to bit 60.
        let shift = mantissa.leading_zeros().saturating_sub(3);
        mantissa <<= shift;
        exponent -= i32::try_from(shift).unwrap_or(0) - 8;
    }
    if let Some(precision) = precision.filter(|&precision| precision < 15) {
        let kept = precision * 4;
        let extra = mantissa << kept & ((1 << 60) - 1);
        mantissa >>= 60 - kept;
        if extra | mantissa & 1 > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - kept;
        if mantissa & 1 << 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digit = |mantissa: u64| {
        let digit = char::from_digit(u32::try_from(mantissa >> 60 & 15).unwrap_or(0), 16).unwrap_or('0');
        u8::try_from(if upper { digit.to_ascii_uppercase() } else { digit }).unwrap_or(b'0')
    };
    out.extend_from_slice(if upper { b"0X" } else { b"0x" });
    out.push(digit(mantissa & 1 << 60));
    mantissa <<= 4;
    match precision {
        None if mantissa != 0 => {
            out.push(b'.');
            while mantissa != 0 {
                out.push(digit(mantissa));
                mantissa <<= 4;
            }
        }
        Some(precision) if precision > 0 => {
            out.push(b'.');
            for _ in 0..precision {
                out.push(digit(mantissa));
                mantissa <<= 4;
            }
        }
        _ => {}
    }
    let letter = if upper { 'P' } else { 'p' };
    let sign = if exponent < 0 { '-' } else { '+' };
    out.extend(format!("{letter}{sign}{:02}", exponent.unsigned_abs()).bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_floats_are_printed_as_in_go() {
        for (value, verb, precision, expected) in [
            (0.0, 'g', None, "+0"),
            (1.0, 'g', None, "+1"),
            (100_000.0, 'g', None, "+100000"),
            (1e6, 'g', None, "+1e+06"),
            (1e-4, 'g', None, "+0.0001"),
            (1e-5, 'g', None, "+1e-05"),
            (-1234.5678, 'g', None, "-1234.5678"),
            (1234.5678, 'g', Some(3), "+1.23e+03"),
            (100.0, 'g', Some(3), "+100"),
            (1e21, 'G', None, "+1E+21"),
            (0.0, 'e', Some(6), "+0.000000e+00"),
            (2.25, 'f', Some(1), "+2.2"),
            (1.5, 'x', None, "+0x1.8p+00"),
            (1.0, 'b', None, "+4503599627370496p-52"),
            (0.1, 'x', Some(3), "+0x1.99ap-04"),
            (1.0, 'X', Some(2), "+0X1.00P+00"),
            (0.5, 'g', Some(0), "+0.5"),
            (5e-324, 'x', None, "+0x1p-1074"),
            (4_906_038_066_044_913.0 / 4.0, 'g', None, "+1.2265095165112282e+15"),
            (4_906_038_066_044_915.0 / 4.0, 'g', None, "+1.2265095165112288e+15"),
            (5e-324, 'g', None, "+5e-324"),
        ] {
            assert_eq!(String::from_utf8_lossy(&format(value, verb, precision)), expected, "{value} {verb}");
        }
    }
}
