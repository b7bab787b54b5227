//! `regexReplaceAll`: Go's regular expressions.
//!
//! Crates such as `regex` were considered. Their syntax differs from Go's, so the parser is needed in any case, and
//! they cannot bound the total work of finding all matches, which is quadratic at worst.

mod classes;
mod machine;
mod pattern;

use crate::budget::Budget;
use crate::error::FunctionError;
use crate::limits;
use crate::unicode;
use crate::utf8::decode;
use machine::{FirstByte, Machine, NONE, PatternProgram};
use pattern::PatternError;

/// A compiled regular expression in Go's syntax, for texts that are matched many times.
#[derive(Debug)]
pub struct Pattern {
    program: PatternProgram,
    /// What the first byte tells, for patterns such as `^\s` that are tried on every line of a log.
    first: Option<Box<[FirstByte; 256]>>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// Returns why the pattern is not valid, or that it is too large.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let (tree, _) = pattern::parse(pattern.as_bytes()).map_err(|error| {
            let rest = pattern.get(error.at..).unwrap_or_default();
            let part: String = rest.chars().take(20).collect();
            if part.is_empty() { format!("{error} at its end") } else { format!("{error} at `{part}`") }
        })?;
        // The positions of groups are not needed.
        let program =
            PatternProgram::compile(&tree, 0).filter(|program| program.len() <= limits::PATTERN_PROGRAM);
        let too_large = || format!("it compiles to more than {} instructions", limits::PATTERN_PROGRAM);
        program.map(|program| Self { first: program.first_bytes(), program }).ok_or_else(too_large)
    }

    /// Returns true if a part of the text matches. A text for which that takes too many steps does not match.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        let byte = text.first().and_then(|byte| self.first.as_ref()?.get(usize::from(*byte)));
        match byte {
            Some(FirstByte::Matches) => return true,
            Some(FirstByte::Fails) => return false,
            Some(FirstByte::Undecided) | None => {}
        }
        let mut budget = Budget::default();
        matches!(Machine::new(&self.program, text).find(0, &mut budget), Ok(Some(_)))
    }
}

/// Replaces each match of `pattern` in `subject` by `to`, in which `$1` and `${name}` stand for groups.
pub(crate) fn replace_all(
    pattern: &[u8],
    to: &[u8],
    subject: &[u8],
    budget: &mut Budget,
) -> Result<Vec<u8>, FunctionError> {
    budget.step(pattern.len() as u64)?;
    let (tree, names) = pattern::parse(pattern).map_err(|error| invalid(&error, pattern))?;
    // Without a `$`, the positions of groups are not needed.
    let groups = if to.contains(&b'$') { names.len() } else { 1 };
    let program = PatternProgram::compile(&tree, groups).ok_or_else(|| {
        FunctionError::new(format!(
            "the pattern compiles to more than {} instructions",
            limits::REGEX_PROGRAM
        ))
        .help("reduce the repeat counts")
        .at(0)
    })?;
    budget.step(program.len() as u64)?;
    let mut machine = Machine::new(&program, subject);
    let mut out = Vec::new();
    let (mut copied, mut search) = (0, 0);
    while search <= subject.len() {
        let Some(slots) = machine.find(search, budget)? else { break };
        let (start, end) = (slots.first().copied().unwrap_or(0), slots.get(1).copied().unwrap_or(0));
        let length = out.len();
        out.extend_from_slice(subject.get(copied..start).unwrap_or_default());
        // An empty match right after another match is not replaced.
        if end > copied || start == 0 {
            expand(&mut out, to, &names, subject, &slots);
        }
        budget.bytes(out.len() - length)?;
        copied = end;
        let (_, width) = decode(subject.get(search..).unwrap_or_default());
        search = end.max(search + width.max(1));
    }
    out.extend_from_slice(subject.get(copied..).unwrap_or_default());
    budget.bytes(subject.len().saturating_sub(copied))?;
    Ok(out)
}

fn invalid(error: &PatternError, pattern: &[u8]) -> FunctionError {
    let rest = pattern.get(error.at..).unwrap_or_default();
    let part: String = String::from_utf8_lossy(rest).chars().take(20).collect();
    let place = if part.is_empty() { "at its end".to_owned() } else { format!("at `{part}`") };
    FunctionError::new(format!("invalid pattern {place}: {error}"))
        .help("patterns use RE2 syntax: see https://github.com/google/re2/wiki/Syntax")
        .at(0)
}

/// Appends the replacement text with its references to groups resolved.
fn expand(out: &mut Vec<u8>, to: &[u8], names: &[Option<String>], subject: &[u8], slots: &[usize]) {
    let mut rest = to;
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(rest.get(..dollar).unwrap_or_default());
        rest = rest.get(dollar + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            out.push(b'$');
            continue;
        };
        rest = after;
        let matched = |group: usize| {
            let start = *slots.get(group * 2)?;
            let end = *slots.get(group * 2 + 1)?;
            if start == NONE { None } else { subject.get(start..end) }
        };
        let number = std::str::from_utf8(name)
            .ok()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|name| *name == "0" || !name.starts_with('0'));
        let part = match number {
            Some(number) => {
                number.parse::<usize>().ok().filter(|&number| number < names.len()).and_then(matched)
            }
            // The first group of that name that matched.
            None => names
                .iter()
                .enumerate()
                .filter(|(_, group)| group.as_ref().is_some_and(|group| group.as_bytes() == name))
                .find_map(|(group, _)| matched(group)),
        };
        out.extend_from_slice(part.unwrap_or_default());
    }
    out.extend_from_slice(rest);
}

/// The name after a `$`, with or without braces, and the text after it.
fn reference(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"{");
    let start = inner.unwrap_or(text);
    let mut length = 0;
    loop {
        let (rune, width) = decode(start.get(length..).unwrap_or_default());
        if width == 0 || !unicode::is_name(rune) {
            break;
        }
        length += width;
    }
    if length == 0 {
        return None;
    }
    let (name, rest) = start.split_at_checked(length)?;
    if inner.is_some() { rest.strip_prefix(b"}").map(|rest| (name, rest)) } else { Some((name, rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l8_first_byte_tells_the_same_as_the_whole_machine() {
        let patterns = [
            r"^\s",
            "^",
            "^$",
            "^a|^b",
            "^(a|b)",
            "a",
            "^a?",
            "^[^0-9]",
            r"^\S",
            "^é",
            "^(\\s|at |Caused by:)",
            r"\A\s+at",
            r"^\bx",
            "(?m)^x",
            "^a|b",
            "^(?:x*)y",
            "(?i)^caused",
            r"^[\t ]|^$",
            "^.",
            "^x$",
            "^$|x",
            ".*",
            "^\u{7ff}",
        ];
        let lines: [&[u8]; 16] = [
            b"",
            b"a",
            b"b",
            b" x",
            b"\tat y",
            b"at z",
            b"Caused by: x",
            b"0",
            b"x",
            b"xy",
            b"y",
            "\u{e9}".as_bytes(),
            b"\xff",
            b"ba",
            b"q\nx",
            "\u{7ff}".as_bytes(),
        ];
        let mut decided = 0;
        for text in patterns {
            let pattern = Pattern::new(text).unwrap();
            for line in lines {
                let whole = matches!(
                    Machine::new(&pattern.program, line).find(0, &mut Budget::default()),
                    Ok(Some(_))
                );
                let unanchored = Pattern::new(text).unwrap().program.unanchored();
                let slow =
                    matches!(Machine::new(&unanchored, line).find(0, &mut Budget::default()), Ok(Some(_)));
                assert_eq!([pattern.is_match(line), whole], [slow; 2], "{text} {line:?}");
            }
            decided += usize::from(pattern.first.is_some());
        }
        assert!(decided > 12, "{decided}");
    }
}
