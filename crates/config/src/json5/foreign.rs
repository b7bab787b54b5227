//! Recognizes files that are not JSON5: other formats, other encodings, merge conflicts.
//!
//! One message replaces the errors of every line. Only texts with errors are checked, so that no valid file is rejected.

use super::SyntaxError;
use crate::span::Span;

const START: &str = "a configuration is JSON5 and starts with `{`, for example { jobs: [ { exec: \"…\" } ] }";
const PROGRAM: &str = "check the path: a program belongs in `exec`";
/// The number of bytes that are examined.
const MAX_BYTES: usize = 64 * 1024;

/// The single error of a file that is not JSON5.
pub(super) fn recognise(text: &[u8]) -> Option<SyntaxError> {
    let text = text.get(..MAX_BYTES).unwrap_or(text);
    not_text(text).or_else(|| conflict(text)).or_else(|| other_format(text))
}

/// The single error of a file that is not text: a program, another encoding, or another binary file.
pub(crate) fn not_text(text: &[u8]) -> Option<SyntaxError> {
    let head = text.get(..1024).unwrap_or(text);
    if head.starts_with(b"\x7fELF") {
        return Some(error(0, 4, "this is a program, not a configuration", PROGRAM));
    }
    let marked = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    let nul = |parity: usize| head.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
    // In UTF-16, every other byte of most letters is 0.
    let (most, least) = (nul(0).max(nul(1)), nul(0).min(nul(1)));
    if marked || (most * 3 > head.len() && most > 4 && least == 0) {
        let message = "this file is UTF-16, not UTF-8";
        return Some(error(0, 2.min(text.len()), message, "save it as UTF-8"));
    }
    let odd = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c);
    let count = head.iter().filter(|byte| odd(byte)).count();
    if count * 10 > head.len() && count > 4 {
        let first = head.iter().position(odd).unwrap_or_default();
        return Some(error(first, first + 1, "this is a binary file", PROGRAM));
    }
    None
}

/// The conflict markers of a version control system.
fn conflict(text: &[u8]) -> Option<SyntaxError> {
    let (at, _) = lines(text).find(|(_, line)| line.starts_with(b"<<<<<<< "))?;
    lines(text).find(|(other, line)| *other > at && line.starts_with(b">>>>>>> "))?;
    let help =
        "keep one of the two versions, and remove the lines that start with <<<<<<<, ======= and >>>>>>>";
    Some(error(at, at + 7, "unresolved merge conflict", help))
}

/// Other formats, recognized by their first line or by lines that JSON5 never has.
fn other_format(text: &[u8]) -> Option<SyntaxError> {
    let (at, first) = lines(text).find(|(_, line)| !line.is_empty() && !line.starts_with(b"//"))?;
    if first.starts_with(b"#!") {
        return Some(error(at, at + 2, "this is a script, not a configuration", PROGRAM));
    }
    if first.starts_with(b"<") {
        let help = "check the path: this may be a downloaded error page";
        return Some(error(at, at + 1, "this is HTML or XML, not a configuration", help));
    }
    if matches!(first.first(), None | Some(b'{' | b'/')) {
        return None;
    }
    let all = || lines(text).map(|(_, line)| line);
    let assigns = all().any(assignment);
    if all().any(|line| line.starts_with(b"[") && line.ends_with(b"]") && section(line)) && assigns {
        return Some(error(at, at + first.len(), "this looks like TOML, not JSON5", START));
    }
    let item = all().any(|line| line.starts_with(b"- ") || line == b"---");
    let nested = all().any(|line| line.ends_with(b":"));
    let brackets = all().any(|line| line.ends_with(b"{") || line.ends_with(b"["));
    (item && (nested || colon(first)) && !brackets)
        .then(|| error(at, at + first.len(), "this looks like YAML, not JSON5", START))
}

fn assignment(line: &[u8]) -> bool {
    let word = line.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')));
    let rest = word.and_then(|end| line.get(end..)).unwrap_or_default().trim_ascii_start();
    rest.starts_with(b"=")
}

/// `[name]` and `[[name]]`
fn section(line: &[u8]) -> bool {
    let name = line.iter().filter(|byte| !matches!(byte, b'[' | b']'));
    name.clone().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && name.clone().next().is_some_and(u8::is_ascii_alphabetic)
}

fn colon(line: &[u8]) -> bool {
    line.contains(&b':')
}

/// The trimmed lines, each with the offset of its first byte.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    text.split(|byte| *byte == b'\n').map(move |line| {
        let at = start + (line.len() - line.trim_ascii_start().len());
        start += line.len() + 1;
        (at, line.trim_ascii())
    })
}

fn error(start: usize, end: usize, message: &str, help: &str) -> SyntaxError {
    SyntaxError::new(Span::new(start, end), message, Some(help.to_owned()))
}
