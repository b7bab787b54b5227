//! Percent-encoding of URLs.

use std::fmt::Write;

/// Text for a path segment or a query value.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes percent-encoded text. `None` if it is malformed or not UTF-8.
pub fn percent_decoded(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_any_name_can_be_a_path_segment() {
        assert_eq!(percent_encoded("a-b_c.d~E9"), "a-b_c.d~E9");
        assert_eq!(percent_encoded("a/b c%?\r\nä"), "a%2Fb%20c%25%3F%0D%0A%C3%A4");
    }
}
