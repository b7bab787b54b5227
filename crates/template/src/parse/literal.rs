//! String and character constants, with Go's escapes.

use crate::utf8::{self, decode};

/// The value of a string constant with its quotes; `None` if an escape in it is invalid.
pub(crate) fn unquote(quoted: &[u8]) -> Option<Vec<u8>> {
    let (quote, rest) = quoted.split_first()?;
    let (last, inner) = rest.split_last()?;
    if quote != last {
        return None;
    }
    if *quote == b'`' {
        return Some(inner.iter().copied().filter(|&byte| byte != b'\r').collect());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, width) = unquote_unit(rest, *quote)?;
        match unit {
            Unit::Rune(rune) => utf8::push(&mut out, rune),
            Unit::Byte(byte) => out.push(byte),
        }
        rest = rest.get(width..)?;
    }
    Some(out)
}

/// The value of a character constant such as `'a'`.
pub(crate) enum Character {
    Code(i64),
    /// There is not exactly one character between the quotes.
    NotOne,
    BadEscape,
}

/// Reads a character constant with its quotes.
pub(crate) fn character(quoted: &[u8]) -> Character {
    let inner = quoted.get(1..).unwrap_or_default();
    if inner == b"'" {
        return Character::NotOne;
    }
    let Some((unit, width)) = unquote_unit(inner, b'\'') else { return Character::BadEscape };
    if inner.get(width..) != Some(b"'") {
        return Character::NotOne;
    }
    Character::Code(match unit {
        Unit::Rune(rune) => i64::from(u32::from(rune)),
        Unit::Byte(byte) => i64::from(byte),
    })
}

enum Unit {
    Rune(char),
    Byte(u8),
}

fn unquote_unit(text: &[u8], quote: u8) -> Option<(Unit, usize)> {
    let first = *text.first()?;
    if first == quote || first == b'\n' {
        return None;
    }
    if first != b'\\' {
        let (rune, width) = decode(text);
        return Some((Unit::Rune(rune), width));
    }
    let code = *text.get(1)?;
    let simple = match code {
        b'a' => Some('\x07'),
        b'b' => Some('\x08'),
        b'f' => Some('\x0c'),
        b'n' => Some('\n'),
        b'r' => Some('\r'),
        b't' => Some('\t'),
        b'v' => Some('\x0b'),
        b'\\' => Some('\\'),
        b'\'' | b'"' if code == quote => Some(char::from(code)),
        _ => None,
    };
    if let Some(rune) = simple {
        return Some((Unit::Rune(rune), 2));
    }
    let number = |from: usize, digits: usize, base: u32| {
        let digits = text.get(from..from + digits)?;
        digits.iter().try_fold(0u32, |sum, &digit| Some(sum * base + char::from(digit).to_digit(base)?))
    };
    match code {
        b'x' => Some((Unit::Byte(u8::try_from(number(2, 2, 16)?).ok()?), 4)),
        b'u' => Some((Unit::Rune(char::from_u32(number(2, 4, 16)?)?), 6)),
        b'U' => Some((Unit::Rune(char::from_u32(number(2, 8, 16)?)?), 10)),
        b'0'..=b'7' => Some((Unit::Byte(u8::try_from(number(1, 3, 8)?).ok()?), 4)),
        _ => None,
    }
}
