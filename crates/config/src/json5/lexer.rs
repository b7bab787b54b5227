//! Splits the text into tokens.
//!
//! White space and comments are skipped. Bytes that are never allowed (a NUL, a `#` comment) are reported and then treated as
//! white space. The next token is marked, so that the parser does not report the gap again.

use super::chars::{char_at, line_end_length};
use super::{Number, SyntaxError, number, string};
use crate::limits;
use crate::span::Span;

/// The two kinds of brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    Object,
    List,
}

impl Bracket {
    pub(super) fn open(self) -> char {
        if self == Self::Object { '{' } else { '[' }
    }

    pub(super) fn close(self) -> char {
        if self == Self::Object { '}' } else { ']' }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Open(Bracket),
    Close(Bracket),
    Comma,
    Colon,
    /// `=`, `==` or `=>`
    Equals,
    Semicolon,
    /// A quoted string; `broken` if it is unterminated.
    String {
        text: String,
        broken: bool,
    },
    Number(Number),
    /// An identifier, which may be a key or a literal.
    Word(String),
    /// Any other characters.
    Text,
    /// `{{ … }}`, a template action that was not rendered.
    Template,
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
    /// True if a line ended before this token.
    pub(super) newline: bool,
    /// True if an error was reported before this token.
    pub(super) junk: bool,
}

#[derive(Clone)]
pub(super) struct Lexer<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// The errors inside the last token and before it.
    pub(super) pending: Vec<SyntaxError>,
    /// There is no `}}` on the line up to this offset. Keeps the time for `{{{{{{…` linear.
    no_template_before: usize,
    /// A `#` before this offset does not start a comment, for the same reason.
    no_hash_comment_before: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, pending: Vec::new(), no_template_before: 0, no_hash_comment_before: 0 }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn error(&mut self, start: usize, end: usize, message: impl Into<String>, help: &str) {
        if self.pending.len() < limits::ERRORS {
            self.pending.push(SyntaxError::new(Span::new(start, end), message, Some(help.to_owned())));
        }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Token {
        let before = self.pending.len();
        let newline = self.blanks();
        let junk = self.pending.len() > before;
        let start = self.at;
        let kind = self.token(start);
        Token { kind, span: Span::new(start, self.at), newline, junk }
    }

    fn token(&mut self, start: usize) -> TokenKind {
        let Some(byte) = self.byte(start) else { return TokenKind::End };
        let punctuation = match byte {
            b'{' => {
                if let Some(end) = self.template(start) {
                    self.at = end;
                    return TokenKind::Template;
                }
                TokenKind::Open(Bracket::Object)
            }
            b'[' => TokenKind::Open(Bracket::List),
            b'}' => TokenKind::Close(Bracket::Object),
            b']' => TokenKind::Close(Bracket::List),
            b',' => TokenKind::Comma,
            b':' => TokenKind::Colon,
            b';' => TokenKind::Semicolon,
            b'=' => {
                self.at += usize::from(matches!(self.byte(start + 1), Some(b'=' | b'>')));
                TokenKind::Equals
            }
            b'"' | b'\'' => {
                let quoted = string::read(self.text, start, &mut self.pending);
                self.at = quoted.end;
                return TokenKind::String { text: quoted.text, broken: quoted.broken };
            }
            _ => return self.run(start),
        };
        self.at += 1;
        punctuation
    }

    /// Reads up to the next white space, bracket, quote or separator.
    fn run(&mut self, start: usize) -> TokenKind {
        if let Some((quote, length)) = char_at(self.text, start).filter(|(char, _)| is_wrong_quote(*char)) {
            return self.wrongly_quoted(start, quote, length);
        }
        let mut at = start;
        while let Some((char, length)) = char_at(self.text, at) {
            let comment = char == '/' && matches!(self.byte(at + 1), Some(b'/' | b'*'));
            let ends = "{}[],:;=\"'".contains(char) || is_blank(char) || is_stray_control(char);
            if comment || ends || is_wrong_quote(char) {
                break;
            }
            at += length;
        }
        // The caller has checked that the first character does not end the run.
        self.at = at.max(start + 1);
        let Some(Ok(text)) = self.text.get(start..self.at).map(str::from_utf8) else {
            return TokenKind::Text;
        };
        let digit_like = text.starts_with(|char: char| char.is_ascii_digit() || "+-.".contains(char));
        if digit_like {
            return number::parse(text).map_or(TokenKind::Text, TokenKind::Number);
        }
        identifier(text).map_or(TokenKind::Text, TokenKind::Word)
    }

    /// A string in typographic quotes or backquotes, which is not JSON5.
    fn wrongly_quoted(&mut self, start: usize, quote: char, length: usize) -> TokenKind {
        let inside = start + length;
        let mut end = inside;
        let mut close = None;
        while let Some(byte) = self.byte(end).filter(|byte| !matches!(byte, b'\n' | b'\r')) {
            let char = char_at(self.text, end);
            if let Some((char, length)) = char.filter(|(char, _)| closes(quote, *char)) {
                close = Some((end, end + length, char));
                break;
            }
            end += if byte < 0x80 { 1 } else { char.map_or(1, |(_, length)| length) };
        }
        self.error(
            start,
            inside,
            format!("{quote} is not a JSON5 quotation mark"),
            "put the string in straight quotes: \"…\"",
        );
        let (text_end, token_end) = match close {
            Some((text_end, token_end, _)) => (text_end, token_end),
            None => {
                let line = self.text.get(inside..end).unwrap_or_default();
                let kept = string::probable_length(line);
                (inside + kept, inside + kept)
            }
        };
        self.at = token_end;
        let mut text = String::new();
        string::push_lossy(&mut text, self.text.get(inside..text_end).unwrap_or_default());
        TokenKind::String { text, broken: close.is_none() }
    }

    /// The end of the `{{ … }}` at `start`, if there is one.
    pub(super) fn template(&mut self, start: usize) -> Option<usize> {
        if self.byte(start + 1) != Some(b'{') || start < self.no_template_before {
            return None;
        }
        let rest = self.text.get(start..)?;
        let line = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let end = rest.get(..line)?.windows(2).position(|pair| pair == b"}}");
        if end.is_none() {
            self.no_template_before = start + line;
        }
        end.map(|end| start + end + 2)
    }

    /// Skips white space and comments. Returns true if a line ended.
    fn blanks(&mut self) -> bool {
        let mut newline = false;
        while let Some(byte) = self.byte(self.at) {
            match byte {
                b' ' | b'\t' | b'\x0b' | b'\x0c' => self.at += 1,
                b'\n' | b'\r' => {
                    newline = true;
                    self.at += 1;
                }
                b'/' if self.byte(self.at + 1) == Some(b'/') => self.line_comment(),
                b'/' if self.byte(self.at + 1) == Some(b'*') => newline |= self.comment(),
                b'*' if self.byte(self.at + 1) == Some(b'/') => {
                    self.error(
                        self.at,
                        self.at + 2,
                        "`*/` without a comment",
                        "comments do not nest: the first `*/` ends the comment",
                    );
                    self.at += 2;
                }
                b'#' => self.hash(),
                0x21..=0x7e => break,
                _ => match char_at(self.text, self.at) {
                    Some((char, length)) if is_blank(char) => {
                        newline |= matches!(char, '\u{2028}' | '\u{2029}');
                        self.at += length;
                    }
                    Some((char, _)) if !is_stray_control(char) => break,
                    found => self.stray_bytes(found.is_some()),
                },
            }
        }
        newline
    }

    /// Reports control characters, or invalid UTF-8, outside of a string.
    fn stray_bytes(&mut self, control: bool) {
        let start = self.at;
        let byte = self.byte(start).unwrap_or_default();
        let same_sort = |found: Option<(char, usize)>| match found {
            Some((char, _)) => control && is_stray_control(char),
            None => !control,
        };
        while self.at < self.text.len() && same_sort(char_at(self.text, self.at)) {
            self.at += char_at(self.text, self.at).map_or(1, |(_, length)| length);
        }
        let (message, help) = if control {
            (format!("unexpected control character 0x{byte:02x}"), "remove it")
        } else {
            (format!("invalid UTF-8: byte 0x{byte:02x}"), "save the file as UTF-8")
        };
        self.error(start, self.at, message, help);
    }

    /// Reports a `#`. The rest of the line is probably a comment.
    fn hash(&mut self) {
        let start = self.at;
        self.error(start, start + 1, "`#` does not start a comment", "use `//`");
        self.at += 1;
        if start < self.no_hash_comment_before {
            return;
        }
        let rest = self.text.get(start..).unwrap_or_default();
        let line = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let balance = rest.iter().take(line).fold(0i64, |balance, byte| match byte {
            b'{' | b'[' => balance + 1,
            b'}' | b']' => balance - 1,
            _ => balance,
        });
        // If the line closes brackets, it is not a comment: `{#a: 1}`.
        if balance < 0 {
            self.no_hash_comment_before = start + line;
        } else {
            self.at = start + line;
        }
    }

    fn line_comment(&mut self) {
        while self.byte(self.at).is_some() && line_end_length(self.text, self.at) == 0 {
            self.at += 1;
        }
    }

    /// Skips `/* … */`. Returns true if it contains a line end.
    fn comment(&mut self) -> bool {
        let start = self.at;
        let rest = self.text.get(start + 2..).unwrap_or_default();
        let Some(length) = rest.windows(2).position(|pair| pair == b"*/") else {
            self.error(start, start + 2, "unterminated comment", "add `*/` at its end");
            self.at = self.text.len();
            return false;
        };
        self.at = start + 2 + length + 2;
        rest.iter().take(length).any(|byte| matches!(byte, b'\n' | b'\r'))
    }

    /// Returns true if a colon or `=` follows, so that the token before it is a key.
    pub(super) fn colon_follows(&self, end: usize) -> bool {
        let rest = self.text.get(end..).unwrap_or_default().trim_ascii_start();
        match rest.first() {
            Some(b':') => rest.get(1) != Some(&b'/'),
            Some(b'=') => true,
            _ => false,
        }
    }
}

/// The identifier with its escapes resolved; `None` if the text is not one.
fn identifier(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (char, length) = if first == '\\' {
            if rest.as_bytes().get(1) != Some(&b'u') {
                return None;
            }
            (char::from_u32(string::code(rest.as_bytes(), 2, 4)?)?, 6)
        } else {
            (first, first.len_utf8())
        };
        let joiner = matches!(char, '\u{200c}' | '\u{200d}');
        let fits = matches!(char, '$' | '_')
            || if out.is_empty() {
                unicode_ident::is_xid_start(char)
            } else {
                unicode_ident::is_xid_continue(char) || joiner
            };
        if !fits {
            return None;
        }
        out.push(char);
        rest = rest.get(length..)?;
    }
    Some(out)
}

/// Returns true for the white space and the line ends of JSON5.
fn is_blank(char: char) -> bool {
    matches!(char, '\t'..='\r' | ' ' | '\u{a0}' | '\u{feff}' | '\u{2028}' | '\u{2029}')
        || matches!(char, '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Returns true for invisible characters that are not white space.
fn is_stray_control(char: char) -> bool {
    char.is_control() && !is_blank(char) || char == '\u{200b}'
}

fn is_wrong_quote(char: char) -> bool {
    matches!(char, '`' | '\u{2018}'..='\u{201f}' | '«' | '»')
}

/// Returns true if `close` ends a string that starts with the wrong quote `open`. Any double quote ends a double quote,
/// because they are often mixed.
fn closes(open: char, close: char) -> bool {
    match open {
        '`' => close == '`',
        '\u{2018}'..='\u{201b}' => matches!(close, '\u{2018}'..='\u{201b}' | '\''),
        _ => matches!(close, '\u{201c}'..='\u{201f}' | '«' | '»' | '"'),
    }
}
