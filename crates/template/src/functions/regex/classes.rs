//! Character classes and escapes in patterns.

use regex_syntax::hir::ClassUnicode;

use crate::functions::regex::pattern::{PatternError, PatternParser, PatternResult, class_of};
use crate::unicode;

impl PatternParser<'_> {
    /// Reads `\d`, `\pL` and similar classes.
    pub(super) fn class_escape(&mut self) -> PatternResult<Option<ClassUnicode>> {
        let at = self.at;
        let Some(letter @ (b'd' | b'D' | b's' | b'S' | b'w' | b'W' | b'p' | b'P')) =
            self.rest().as_bytes().get(1).copied()
        else {
            return Ok(None);
        };
        if !self.rest().starts_with('\\') {
            return Ok(None);
        }
        self.at += 2;
        let mut negated = letter.is_ascii_uppercase();
        let mut class = match letter.to_ascii_lowercase() {
            b'd' => class_of(&[('0', '9')]),
            b's' => class_of(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
            b'w' => class_of(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
            _ => {
                let unknown = PatternError { message: "unknown character class", at };
                let name = if self.eat("{") {
                    let Some(length) = self.rest().find('}') else { return Err(unknown) };
                    let name = self.rest().get(..length).unwrap_or_default();
                    self.at += length + 1;
                    name
                } else {
                    let start = self.at;
                    self.next();
                    self.pattern.get(start..self.at).unwrap_or_default()
                };
                let bare = name.strip_prefix('^').unwrap_or(name);
                negated ^= bare.len() != name.len();
                unicode::class(bare).ok_or(unknown)?
            }
        };
        self.fold(&mut class);
        if negated {
            class.negate();
        }
        Ok(Some(class))
    }

    pub(super) fn character_escape(&mut self) -> PatternResult<u32> {
        let at = self.at;
        let wrong = || PatternError { message: "unknown escape sequence", at };
        self.at += 1;
        let rune = self.next().ok_or(PatternError { message: "trailing backslash", at })?;
        let octal = |rune: Option<char>| rune.and_then(|rune| rune.to_digit(8));
        match rune {
            '1'..='7' if octal(self.peek()).is_none() => Err(wrong()),
            '0'..='7' => {
                let mut code = rune.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = octal(self.peek()) else { break };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                Ok(code)
            }
            'x' => self.hexadecimal().ok_or_else(wrong),
            'a' => Ok(7),
            'f' => Ok(12),
            'n' => Ok(10),
            'r' => Ok(13),
            't' => Ok(9),
            'v' => Ok(11),
            _ if rune.is_ascii() && !rune.is_ascii_alphanumeric() => Ok(u32::from(rune)),
            _ => Err(wrong()),
        }
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        if !self.eat("{") {
            let high = self.next()?.to_digit(16)?;
            return Some(high * 16 + self.next()?.to_digit(16)?);
        }
        let mut code: Option<u32> = None;
        loop {
            match self.next()? {
                '}' => return code,
                digit => code = Some(code.unwrap_or(0) * 16 + digit.to_digit(16)?),
            }
            if code.is_some_and(|code| code > u32::from(char::MAX)) {
                return None;
            }
        }
    }

    pub(super) fn bracket(&mut self) -> PatternResult<ClassUnicode> {
        let open = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut class = ClassUnicode::empty();
        let mut first = true;
        loop {
            match self.peek() {
                None => return Err(PatternError { message: "unclosed `[`", at: open }),
                Some(']') if !first => break,
                Some(_) => {}
            }
            first = false;
            if let Some(named) = self.named_class()? {
                class.union(&named);
                continue;
            }
            if self.rest().starts_with('\\')
                && let Some(escaped) = self.class_escape()?
            {
                class.union(&escaped);
                continue;
            }
            let at = self.at;
            let low = self.class_character(open)?;
            let mut high = low;
            let rest = self.rest().as_bytes();
            if rest.first() == Some(&b'-') && rest.get(1).is_some_and(|&byte| byte != b']') {
                self.at += 1;
                high = self.class_character(open)?;
                if high < low {
                    return Err(PatternError { message: "the character range is reversed", at });
                }
            }
            let mut part = unicode::range(low, high);
            self.fold(&mut part);
            class.union(&part);
        }
        self.at += 1;
        if negated {
            class.negate();
        }
        Ok(class)
    }

    fn class_character(&mut self, open: usize) -> PatternResult<u32> {
        match self.peek() {
            None => Err(PatternError { message: "unclosed `[`", at: open }),
            Some('\\') => self.character_escape(),
            Some(rune) => {
                self.at += rune.len_utf8();
                Ok(u32::from(rune))
            }
        }
    }

    /// Reads `[:alpha:]` and similar classes.
    fn named_class(&mut self) -> PatternResult<Option<ClassUnicode>> {
        let Some(inner) = self.rest().strip_prefix("[:") else { return Ok(None) };
        let Some(length) = inner.find(":]") else { return Ok(None) };
        let name = inner.get(..length).unwrap_or_default();
        let bare = name.strip_prefix('^').unwrap_or(name);
        let ranges: &[(char, char)] = match bare {
            "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
            "alpha" => &[('A', 'Z'), ('a', 'z')],
            "ascii" => &[('\0', '\x7f')],
            "blank" => &[('\t', '\t'), (' ', ' ')],
            "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
            "digit" => &[('0', '9')],
            "graph" => &[('!', '~')],
            "lower" => &[('a', 'z')],
            "print" => &[(' ', '~')],
            "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
            "space" => &[('\t', '\r'), (' ', ' ')],
            "upper" => &[('A', 'Z')],
            "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
            _ => return Err(PatternError { message: "unknown character class", at: self.at }),
        };
        self.at += length + 4;
        let mut class = class_of(ranges);
        self.fold(&mut class);
        if bare.len() != name.len() {
            class.negate();
        }
        Ok(Some(class))
    }
}
