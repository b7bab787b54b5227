//! Files with environment variables (P10): dotenv syntax without interpolation.
//!
//! `NAME=value`, one per line, optionally after `export`. A line that starts with `#` and an empty line are ignored. An unquoted
//! value ends at the end of the line or before ` #`. Single quotes take everything literally; in double quotes `\n`, `\t`, `\r`,
//! `\"` and `\\` are escapes, and any other backslash is kept. A quoted value may span lines. `$` has no meaning.

/// A mistake in a file. The message never shows a part of the file: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotenvError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: &'static str,
}

/// Reads all variables, in the order of the file.
///
/// # Errors
/// The first mistake.
pub fn parse(bytes: &[u8]) -> Result<Vec<(String, String)>, DotenvError> {
    let line_at = |at: usize| 1 + memchr_lines(bytes.get(..at).unwrap_or_default());
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(DotenvError { line: line_at(at), message: "a NUL byte" });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DotenvError { line: line_at(error.valid_up_to()), message: "not UTF-8" })?;
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    while !rest.is_empty() {
        let error = |message| DotenvError { line: line_at(text.len() - rest.len()), message };
        let (line, after) = split_line(rest);
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            rest = after;
            continue;
        }
        let Some((name, _)) = line.split_once('=') else { return Err(error("expected NAME=value")) };
        let value = rest.get(name.len() + 1..).unwrap_or_default().trim_start_matches([' ', '\t']);
        let name = name.trim_start();
        let name = name.strip_prefix("export").filter(|name| name.starts_with([' ', '\t'])).unwrap_or(name);
        let name = name.trim();
        if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return Err(error("expected NAME=value: the name is empty or contains whitespace"));
        }
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let Some((value, after)) = quoted(value.get(1..).unwrap_or_default(), quote) else {
                    return Err(error("unterminated quotes"));
                };
                let (end, next) = split_line(after);
                let end = end.trim();
                if !end.is_empty() && !end.starts_with('#') {
                    return Err(error("unexpected text after the closing quote"));
                }
                (value, next)
            }
            _ => {
                let (value, after) = split_line(value);
                (unquoted(value).to_owned(), after)
            }
        };
        variables.push((name.to_owned(), value));
        rest = after;
    }
    Ok(variables)
}

fn memchr_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The first line without its end, and what follows.
fn split_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

/// A value without its comment and without whitespace around it.
fn unquoted(value: &str) -> &str {
    let comment = value.char_indices().find(|(at, letter)| {
        *letter == '#' && (*at == 0 || value.get(..*at).is_some_and(|before| before.ends_with([' ', '\t'])))
    });
    comment.and_then(|(at, _)| value.get(..at)).unwrap_or(value).trim()
}

/// The value up to the closing quote, and what follows it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Some((value, text.get(at + 1..)?)),
            '\\' if quote == '"' => match letters.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse(text.as_bytes()).unwrap()
    }

    fn error(bytes: &[u8]) -> (usize, &'static str) {
        let error = parse(bytes).unwrap_err();
        (error.line, error.message)
    }

    #[test]
    fn p10_dotenv_syntax() {
        let text = "\u{feff}# comment\n\nA=1\r\nexport B = two words  # comment\nC=a#b\nD=\nE='$X \\n # \"'\n\
                    F=\"a\\tb\\n\\\"c\\\" \\\\ \\$ $Y\" # comment\nG=\"two\nlines\"\nH='x\n y'\nexported=1\n\tI=a=b=c\nJ= # none\nK=last";
        let pairs = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a#b"),
            ("D", ""),
            ("E", "$X \\n # \""),
            ("F", "a\tb\n\"c\" \\ \\$ $Y"),
            ("G", "two\nlines"),
            ("H", "x\n y"),
            ("exported", "1"),
            ("I", "a=b=c"),
            ("J", ""),
            ("K", "last"),
        ];
        assert_eq!(read(text), pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(read(""), []);
    }

    #[test]
    fn p10_dotenv_mistakes_have_their_line_and_show_no_value() {
        assert_eq!(error(b"A=1\nhunter2\n"), (2, "expected NAME=value"));
        assert_eq!(error(b"A=1\n\nB=\"x\ny\n"), (3, "unterminated quotes"));
        assert_eq!(error(b"A='x' y"), (1, "unexpected text after the closing quote"));
        let name = "expected NAME=value: the name is empty or contains whitespace";
        assert_eq!(error(b"=x"), (1, name));
        assert_eq!(error(b"\nA B=x"), (2, name));
        assert_eq!(error(b"export =x"), (1, name));
        assert_eq!(error(b"A=1\nB=\xff"), (2, "not UTF-8"));
        assert_eq!(error(b"A=1\nB=\0"), (2, "a NUL byte"));
        assert_eq!(error(b"A=\"\\"), (1, "unterminated quotes"));
    }
}
