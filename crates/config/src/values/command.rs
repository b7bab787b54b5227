//! Commands: as one string that is split at spaces, or as a list of arguments (P8).
//!
//! Quotes and operators of a shell are reported here: a list may contain them, and only the decoder sees which of the
//! two was written. The other warnings about words for a shell, `$PORT` and `sh -c`, are in `validate/shell_words.rs`.

use containerpilot_core::plan::{Command, Word};

use crate::decode::{DecodeContext, Shape, ValueType, found};
use crate::json5::{Node, Value};

/// A program and its arguments (P8).
pub struct Exec;

impl ValueType for Exec {
    type Value = Command;
    const SHAPE: Shape = Shape::Command;
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<Command> {
        const HELP: &str = "write the program and its arguments as one string, or as a list of strings";
        let words = match &node.value {
            Value::String(text) => {
                let words = split(text);
                if words.iter().skip(1).any(|word| is_meant_for_a_shell(word)) {
                    let is_shell_word =
                        |word: &&String| is_meant_for_a_shell(word) || variables_in(word).next().is_some();
                    let (names, many) = listed_words(words.iter().skip(1).filter(is_shell_word).cloned());
                    let are = if many { "are passed as arguments" } else { "is passed as an argument" };
                    let message = format!("`{key}` is not run by a shell: {names} {are}");
                    cx.warn(
                        node.span,
                        message,
                        "write a list of arguments, or use a shell: [\"sh\", \"-c\", \"…\"]",
                    );
                }
                words
            }
            Value::List(items) => {
                // All errors are reported.
                let words: Vec<_> = items.iter().map(|item| argument(cx, key, item)).collect();
                words.into_iter().collect::<Option<_>>()?
            }
            _ => {
                cx.error(node.span, format!("`{key}` must be a command, not {}", found(node)), HELP);
                return None;
            }
        };
        if words.first().is_none_or(String::is_empty) {
            cx.error(node.span, format!("`{key}` has no program"), HELP);
            return None;
        }
        if words.iter().any(|word| word.contains('\0')) {
            cx.error(
                node.span,
                format!("`{key}` contains a NUL byte, which is not allowed in arguments"),
                "",
            );
            return None;
        }
        let mut words = words.into_iter().map(Word::from);
        Some(Command { program: words.next()?, arguments: words.collect() })
    }
}

/// Splits a command at spaces, without quoting: configurations rely on `'a b'` being two arguments.
///
/// White space of every kind is trimmed at both ends, but only the space character separates arguments.
fn split(text: &str) -> Vec<String> {
    text.trim().split(' ').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Returns true if a word of a split command was probably written for a shell.
fn is_meant_for_a_shell(word: &str) -> bool {
    word.starts_with(['\'', '"'])
        || word.ends_with(';')
        || word.contains("$(")
        || matches!(word, "&&" | "||" | "|" | "&" | ">" | ">>" | "<" | "2>&1")
}

/// The variables in a word, as a shell would understand it: `$PORT` or `${PORT}`.
pub(crate) fn variables_in(word: &str) -> impl Iterator<Item = String> {
    word.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let is_name = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        let name: String = rest.chars().take_while(|letter| is_name(*letter)).collect();
        name.starts_with(|letter: char| letter.is_ascii_uppercase()).then(|| format!("${name}"))
    })
}

/// The words in quotes, each once: "`a`, `b` and `c`"; and whether they are several.
pub(crate) fn listed_words(words: impl Iterator<Item = String>) -> (String, bool) {
    let mut all: Vec<String> = Vec::new();
    for word in words.map(|word| format!("`{word}`")) {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => (format!("{} and {last}", rest.join(", ")), true),
        _ => (all.concat(), false),
    }
}

fn argument(cx: &mut DecodeContext<'_>, key: &str, item: &Node) -> Option<String> {
    match &item.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_text()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::List(_) | Value::Object(_) => {
            let message = format!("an argument in `{key}` must be a string, not {}", found(item));
            let help = match item.value {
                Value::Null => "remove it, or write \"\" for an empty argument",
                Value::List(_) => "write the program and all its arguments as one list",
                _ => "write each argument as a string in quotes",
            };
            cx.error(item.span, message, help);
            None
        }
    }
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
