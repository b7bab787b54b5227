//! Commands as text (P8).

use containerpilot_core::plan::Command;

/// Splits a command at spaces, without quoting: configurations rely on `'a b'` being two arguments.
///
/// White space of every kind is trimmed at both ends, but only the space character separates arguments.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    text.trim().split(' ').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The command as one string, for names.
pub(crate) fn joined(command: &Command) -> String {
    let words: Vec<&str> =
        std::iter::once(&command.program).chain(&command.arguments).map(String::as_str).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p8_a_string_is_split_at_spaces_without_quoting() {
        assert_eq!(split("sh -c 'echo a' && b"), ["sh", "-c", "'echo", "a'", "&&", "b"]);
        assert_eq!(split(" \u{2003}a \u{a0}b\tc   d\r\n"), ["a", "\u{a0}b\tc", "d"]);
        assert_eq!(split(" \t\n"), [""; 0]);
    }
}
