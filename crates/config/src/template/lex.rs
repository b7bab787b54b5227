//! The words inside `{{ … }}`.

use super::letters::{decode, is_name};
use crate::span::Span;

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Space,
    Assign,
    Declare,
    Pipe,
    /// `"…"` or a raw text in backquotes.
    Quoted,
    Character,
    Number,
    Complex,
    /// `$name`
    Variable,
    /// `.name`
    Field,
    Dot,
    Nil,
    Bool,
    Identifier,
    Keyword(Keyword),
    Open,
    Close,
    /// Any other ASCII character.
    Symbol,
    /// `}}`; the action ends here.
    Right,
    /// What cannot be read; the action ends here.
    Broken(Flaw),
}

/// Words with a meaning of their own at the start of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl Keyword {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Break => "break",
            Self::Continue => "continue",
            Self::Define => "define",
            Self::Else => "else",
            Self::End => "end",
            Self::If => "if",
            Self::Range => "range",
            Self::Template => "template",
            Self::With => "with",
        }
    }
}

/// Why a word cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Unclosed,
    UnclosedParenthesis,
    LooseParenthesis,
    Colon,
    Quote,
    RawQuote,
    CharacterQuote,
    Number,
    /// A character that ends no name and is not part of one.
    Name,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: ValueType,
    pub(super) span: Span,
}

/// Reads one action, word by word.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    source: &'s [u8],
    position: usize,
    /// The parentheses that are open.
    opened: Vec<usize>,
    /// Set once the closing delimiter was read: whether it trims the text after it.
    pub(super) closed: Option<bool>,
    over: Option<Token>,
}

/// Whether `byte` is white space to a template.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether `- ` follows the opening delimiter.
pub(super) fn trims_left(after: &[u8]) -> bool {
    after.first() == Some(&b'-') && after.get(1).copied().is_some_and(is_space)
}

/// The length of a closing delimiter, with its trim marker, at the start of `rest`.
pub(super) fn closing(rest: &[u8]) -> Option<(usize, bool)> {
    if rest.starts_with(b"}}") {
        Some((2, false))
    } else if rest.first().copied().is_some_and(is_space)
        && rest.get(1..).is_some_and(|rest| rest.starts_with(b"-}}"))
    {
        Some((4, true))
    } else {
        None
    }
}

impl<'s> Lexer<'s> {
    /// Reads from `position`, which is after the opening delimiter and its trim marker.
    pub(super) fn new(source: &'s [u8], position: usize) -> Self {
        Self { source, position, opened: Vec::new(), closed: None, over: None }
    }

    /// The innermost parenthesis that is open.
    pub(super) fn parenthesis(&self) -> Option<Span> {
        self.opened.last().map(|&at| Span::new(at, at + 1))
    }

    /// Where reading stands.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    fn rest(&self) -> &'s [u8] {
        self.source.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.source.get(self.position).copied()
    }

    /// The next word. After the last one of the action it is given again and again.
    pub(super) fn next(&mut self) -> Token {
        if let Some(over) = self.over {
            return over;
        }
        let start = self.position;
        let kind = self.word();
        let token = Token { kind, span: Span::new(start, self.position) };
        if matches!(kind, ValueType::Right | ValueType::Broken(_)) {
            self.over = Some(token);
        }
        token
    }

    fn word(&mut self) -> ValueType {
        if let Some((width, trims)) = closing(self.rest()) {
            if !self.opened.is_empty() {
                return ValueType::Broken(Flaw::UnclosedParenthesis);
            }
            self.position += width;
            self.closed = Some(trims);
            return ValueType::Right;
        }
        let (rune, width) = decode(self.rest());
        if width == 0 {
            return ValueType::Broken(Flaw::Unclosed);
        }
        self.position += width;
        match rune {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => ValueType::Assign,
            ':' if self.peek() == Some(b'=') => {
                self.position += 1;
                ValueType::Declare
            }
            ':' => ValueType::Broken(Flaw::Colon),
            '|' => ValueType::Pipe,
            '"' => self.quoted(b'"', Flaw::Quote),
            '\'' => match self.quoted(b'\'', Flaw::CharacterQuote) {
                ValueType::Quoted => ValueType::Character,
                broken => broken,
            },
            '`' => match memchr::memchr(b'`', self.rest()) {
                Some(length) => {
                    self.position += length + 1;
                    ValueType::Quoted
                }
                None => ValueType::Broken(Flaw::RawQuote),
            },
            '$' => self.name(ValueType::Variable, ValueType::Variable),
            '.' if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) => {
                self.name(ValueType::Field, ValueType::Dot)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.position -= 1;
                self.number()
            }
            '(' => {
                self.opened.push(self.position - 1);
                ValueType::Open
            }
            ')' if self.opened.pop().is_none() => ValueType::Broken(Flaw::LooseParenthesis),
            ')' => ValueType::Close,
            _ if is_name(rune) => {
                let start = self.position - width;
                match self.name(ValueType::Identifier, ValueType::Identifier) {
                    ValueType::Identifier => {
                        reserved(self.source.get(start..self.position).unwrap_or_default())
                    }
                    broken => broken,
                }
            }
            '!'..='~' => ValueType::Symbol,
            _ => ValueType::Broken(Flaw::Unknown),
        }
    }

    fn space(&mut self) -> ValueType {
        while self.peek().is_some_and(is_space) {
            // The last space before `-}}` belongs to the closing delimiter.
            if closing(self.rest()).is_some() {
                break;
            }
            self.position += 1;
        }
        ValueType::Space
    }

    fn quoted(&mut self, quote: u8, flaw: Flaw) -> ValueType {
        loop {
            let Some(length) =
                self.rest().iter().position(|&byte| byte == quote || byte == b'\\' || byte == b'\n')
            else {
                return ValueType::Broken(flaw);
            };
            self.position += length;
            match self.peek() {
                Some(b'\\') if self.source.get(self.position + 1).is_some_and(|&byte| byte != b'\n') => {
                    self.position += 2;
                }
                Some(byte) if byte == quote => {
                    self.position += 1;
                    return ValueType::Quoted;
                }
                _ => return ValueType::Broken(flaw),
            }
        }
    }

    /// The letters and digits from here on; `alone` if there are none.
    fn name(&mut self, kind: ValueType, alone: ValueType) -> ValueType {
        let start = self.position;
        loop {
            let (rune, width) = decode(self.rest());
            if width == 0 || !is_name(rune) {
                break;
            }
            self.position += width;
        }
        let ends = match self.peek() {
            None | Some(b'.' | b',' | b'|' | b':' | b')' | b'(' | b'}') => true,
            Some(byte) => is_space(byte),
        };
        if !ends {
            return ValueType::Broken(Flaw::Name);
        }
        if self.position == start { alone } else { kind }
    }

    fn number(&mut self) -> ValueType {
        if !self.scan_number() {
            return ValueType::Broken(Flaw::Number);
        }
        if !matches!(self.peek(), Some(b'+' | b'-')) {
            return ValueType::Number;
        }
        if self.scan_number() && self.source.get(self.position - 1) == Some(&b'i') {
            ValueType::Complex
        } else {
            ValueType::Broken(Flaw::Number)
        }
    }

    fn accept(&mut self, set: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| set.contains(&byte));
        self.position += usize::from(found);
        found
    }

    fn scan_number(&mut self) -> bool {
        self.accept(b"+-");
        let mut digits: &[u8] = b"0123456789_";
        let mut exponent: &[u8] = b"eE";
        if self.accept(b"0") {
            if self.accept(b"xX") {
                digits = b"0123456789abcdefABCDEF_";
                exponent = b"pP";
            } else if self.accept(b"oO") {
                digits = b"01234567_";
                exponent = b"";
            } else if self.accept(b"bB") {
                digits = b"01_";
                exponent = b"";
            }
        }
        while self.accept(digits) {}
        if self.accept(b".") {
            while self.accept(digits) {}
        }
        if self.accept(exponent) {
            self.accept(b"+-");
            while self.accept(b"0123456789_") {}
        }
        self.accept(b"i");
        let (rune, width) = decode(self.rest());
        if width > 0 && is_name(rune) {
            self.position += width;
            return false;
        }
        true
    }
}

fn reserved(word: &[u8]) -> ValueType {
    ValueType::Keyword(match word {
        b"true" | b"false" => return ValueType::Bool,
        b"nil" => return ValueType::Nil,
        b"block" => Keyword::Block,
        b"break" => Keyword::Break,
        b"continue" => Keyword::Continue,
        b"define" => Keyword::Define,
        b"else" => Keyword::Else,
        b"end" => Keyword::End,
        b"if" => Keyword::If,
        b"range" => Keyword::Range,
        b"template" => Keyword::Template,
        b"with" => Keyword::With,
        _ => return ValueType::Identifier,
    })
}
