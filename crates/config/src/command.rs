//! How `exec` becomes a program and its arguments (P8).

use crate::json5::Number;

/// Splits a command at spaces, without any quoting: configurations rely on `'a b'` being two arguments.
/// Blanks of every kind are cut off at both ends, but only the space character separates; runs of it count as
/// one. A command of blanks only has no parts.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    text.trim().split(' ').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The text that a number stands for where text is wanted. A plain integer keeps its digits, however many
/// there are; anything else is written in full, without an exponent, as Go's `FormatFloat(f, 'f', -1, 64)`.
#[must_use]
pub fn number_text(number: &Number) -> String {
    let digits = number.text.strip_prefix('-').unwrap_or(&number.text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.text.to_string();
    }
    if number.value.is_infinite() {
        return if number.value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    number.value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json5::{self, Value};

    #[test]
    fn p8_a_string_is_split_at_spaces_without_quoting() {
        assert_eq!(split("sh -c 'echo a' && b"), ["sh", "-c", "'echo", "a'", "&&", "b"]);
        assert_eq!(split(" \u{2003}a \u{a0}b\tc   d\r\n"), ["a", "\u{a0}b\tc", "d"]);
        assert_eq!(split(" \t\n"), [""; 0]);
    }

    #[test]
    fn p8_a_number_becomes_text_in_full() {
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
            let parsed = json5::parse(format!("{{v: {literal}}}").as_bytes());
            let Some(Value::Object(members)) = parsed.root.map(|root| root.value) else { panic!() };
            let Value::Number(number) = &members[0].value.value else { panic!() };
            assert_eq!(number_text(number), text);
        }
    }
}
