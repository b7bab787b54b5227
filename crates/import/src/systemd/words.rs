//! The words of a value: quotes, and backslashes as in C.

use std::iter::Peekable;
use std::str::Chars;

/// A word of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Whether it has no quotes and no backslashes.
    pub(crate) plain: bool,
}

/// The words of a command line. As in systemd, an unknown escape sequence stays as it is. `None` if a quote is not closed.
pub(crate) fn command(text: &str) -> Option<Vec<Word>> {
    split(text, true)
}

/// The words of another value. `None` if a quote is not closed, or an escape sequence is unknown.
pub(crate) fn words(text: &str) -> Option<Vec<Word>> {
    split(text, false)
}

fn split(text: &str, keep_unknown: bool) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Some(words);
        }
        let mut word: Vec<u8> = Vec::new();
        let (mut quote, mut plain) = (None, true);
        while let Some(c) = chars.next_if(|c| quote.is_some() || !c.is_whitespace()) {
            match c {
                '\\' => {
                    plain = false;
                    let mut after = chars.clone();
                    match escape(&mut after) {
                        Some(bytes) => {
                            word.extend(bytes);
                            chars = after;
                        }
                        None if keep_unknown => word.push(b'\\'),
                        None => return None,
                    }
                }
                c if quote == Some(c) => quote = None,
                '"' | '\'' if quote.is_none() => {
                    (quote, plain) = (Some(c), false);
                }
                c => word.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if quote.is_some() {
            return None;
        }
        words.push(Word { text: String::from_utf8(word).ok()?, plain });
    }
}

/// The bytes of the escape sequence whose backslash has been read. `None` if it is unknown.
fn escape(chars: &mut Peekable<Chars>) -> Option<Vec<u8>> {
    let byte = match chars.next()? {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        's' => b' ',
        '\\' => b'\\',
        '"' => b'"',
        '\'' => b'\'',
        'x' => u8::try_from(digits(chars, 2, 16)?).ok()?,
        first @ '0'..='7' => u8::try_from(first.to_digit(8)? * 64 + digits(chars, 2, 8)?).ok()?,
        kind @ ('u' | 'U') => {
            let c = char::from_u32(digits(chars, if kind == 'u' { 4 } else { 8 }, 16)?)?;
            return Some(c.to_string().into_bytes());
        }
        _ => return None,
    };
    (byte != 0).then(|| vec![byte])
}

fn digits(chars: &mut impl Iterator<Item = char>, count: usize, radix: u32) -> Option<u32> {
    let mut value: u32 = 0;
    for _ in 0..count {
        value = value.checked_mul(radix)?.checked_add(chars.next()?.to_digit(radix)?)?;
    }
    Some(value)
}

/// Removes a prefix, and returns whether it was there.
pub(super) fn strip(text: &str, prefix: char) -> (bool, &str) {
    text.strip_prefix(prefix).map_or((false, text), |rest| (true, rest))
}

/// Whether systemd reads a value as true.
pub(super) fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "yes" | "y" | "true" | "t" | "on")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: Option<Vec<Word>>) -> Option<Vec<String>> {
        words.map(|words| words.into_iter().map(|word| word.text).collect())
    }

    #[test]
    fn c11_words_of_a_unit_have_quotes_and_escapes() {
        let some = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            texts(words(r#"/bin/sh -c 'a b' "c \"d\"" e\x20f g\tg \101\u00e9"#)),
            some(&["/bin/sh", "-c", "a b", "c \"d\"", "e f", "g\tg", "Aé"])
        );
        assert_eq!(texts(words("A=\"x y\" 'B=1 2'")), some(&["A=x y", "B=1 2"]));
        assert_eq!(texts(words("'' x")), some(&["", "x"]));
        for wrong in ["'open", "\\xzz", "\\", "a\\.b", "\\x00", "\\000"] {
            assert_eq!(texts(words(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn c11_unknown_escapes_of_a_command_stay_as_they_are() {
        let some = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!(texts(command(r"a\.b\t")), some("a\\.b\t"));
        assert_eq!(texts(command(r"'\d+\xzz'")), some(r"\d+\xzz"));
        assert_eq!(texts(command("\\")), some("\\"));
        assert_eq!(texts(command("'a\\'")), None);
    }
}
