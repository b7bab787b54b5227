//! The tokens inside `{{ … }}`.

use crate::span::Span;
use crate::unicode::is_name;
use crate::utf8::decode;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionTokenKind {
    Space,
    Assign,
    Declare,
    Pipe,
    /// A string in double quotes or backquotes.
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
    Keyword(ActionKeyword),
    Open,
    Close,
    /// Any other ASCII character.
    Symbol,
    /// `}}`, which ends the action.
    Right,
    /// An invalid token, which ends the action.
    Broken(LexError),
}

/// The first word of an action that is not a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionKeyword {
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

impl ActionKeyword {
    pub(crate) fn word(self) -> &'static str {
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

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexError {
    Unclosed,
    UnclosedParenthesis,
    LooseParenthesis,
    Colon,
    Quote,
    RawQuote,
    CharacterQuote,
    Number,
    /// A character that cannot follow a name.
    Name,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionToken {
    pub(crate) kind: ActionTokenKind,
    pub(crate) span: Span,
}

/// Reads the tokens of one action.
#[derive(Debug)]
pub(crate) struct ActionLexer<'s> {
    source: &'s [u8],
    position: usize,
    /// The offsets of the open parentheses.
    opened: Vec<usize>,
    /// Set by the closing delimiter: whether it trims the text after it.
    pub(crate) closed: Option<bool>,
    over: Option<ActionToken>,
}

/// Returns true if `byte` is white space in a template.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Returns true if `- ` follows the opening delimiter.
pub(crate) fn trims_left(after: &[u8]) -> bool {
    after.first() == Some(&b'-') && after.get(1).copied().is_some_and(is_space)
}

/// The length of a closing delimiter, with its trim marker, at the start of `rest`.
pub(crate) fn closing(rest: &[u8]) -> Option<(usize, bool)> {
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

impl<'s> ActionLexer<'s> {
    /// Reads from `position`, which is after the opening delimiter and its trim marker.
    pub(crate) fn new(source: &'s [u8], position: usize) -> Self {
        Self { source, position, opened: Vec::new(), closed: None, over: None }
    }

    /// The innermost parenthesis that is open.
    pub(crate) fn parenthesis(&self) -> Option<Span> {
        self.opened.last().map(|&at| Span::new(at, at + 1))
    }

    /// The offset of the next token.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    fn rest(&self) -> &'s [u8] {
        self.source.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.source.get(self.position).copied()
    }

    /// The next token. The last token of the action is returned again and again.
    pub(crate) fn next(&mut self) -> ActionToken {
        if let Some(over) = self.over {
            return over;
        }
        let start = self.position;
        let kind = self.word();
        let token = ActionToken { kind, span: Span::new(start, self.position) };
        if matches!(kind, ActionTokenKind::Right | ActionTokenKind::Broken(_)) {
            self.over = Some(token);
        }
        token
    }

    fn word(&mut self) -> ActionTokenKind {
        if let Some((width, trims)) = closing(self.rest()) {
            if !self.opened.is_empty() {
                return ActionTokenKind::Broken(LexError::UnclosedParenthesis);
            }
            self.position += width;
            self.closed = Some(trims);
            return ActionTokenKind::Right;
        }
        let (rune, width) = decode(self.rest());
        if width == 0 {
            return ActionTokenKind::Broken(LexError::Unclosed);
        }
        self.position += width;
        match rune {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => ActionTokenKind::Assign,
            ':' if self.peek() == Some(b'=') => {
                self.position += 1;
                ActionTokenKind::Declare
            }
            ':' => ActionTokenKind::Broken(LexError::Colon),
            '|' => ActionTokenKind::Pipe,
            '"' => self.quoted(b'"', LexError::Quote),
            '\'' => match self.quoted(b'\'', LexError::CharacterQuote) {
                ActionTokenKind::Quoted => ActionTokenKind::Character,
                broken => broken,
            },
            '`' => match memchr::memchr(b'`', self.rest()) {
                Some(length) => {
                    self.position += length + 1;
                    ActionTokenKind::Quoted
                }
                None => ActionTokenKind::Broken(LexError::RawQuote),
            },
            '$' => self.name(ActionTokenKind::Variable, ActionTokenKind::Variable),
            '.' if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) => {
                self.name(ActionTokenKind::Field, ActionTokenKind::Dot)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.position -= 1;
                self.number()
            }
            '(' => {
                self.opened.push(self.position - 1);
                ActionTokenKind::Open
            }
            ')' if self.opened.pop().is_none() => ActionTokenKind::Broken(LexError::LooseParenthesis),
            ')' => ActionTokenKind::Close,
            _ if is_name(rune) => {
                let start = self.position - width;
                match self.name(ActionTokenKind::Identifier, ActionTokenKind::Identifier) {
                    ActionTokenKind::Identifier => {
                        reserved(self.source.get(start..self.position).unwrap_or_default())
                    }
                    broken => broken,
                }
            }
            '!'..='~' => ActionTokenKind::Symbol,
            _ => ActionTokenKind::Broken(LexError::Unknown),
        }
    }

    fn space(&mut self) -> ActionTokenKind {
        while self.peek().is_some_and(is_space) {
            // The last space before `-}}` belongs to the closing delimiter.
            if closing(self.rest()).is_some() {
                break;
            }
            self.position += 1;
        }
        ActionTokenKind::Space
    }

    fn quoted(&mut self, quote: u8, error: LexError) -> ActionTokenKind {
        loop {
            let Some(length) =
                self.rest().iter().position(|&byte| byte == quote || byte == b'\\' || byte == b'\n')
            else {
                return ActionTokenKind::Broken(error);
            };
            self.position += length;
            match self.peek() {
                Some(b'\\') if self.source.get(self.position + 1).is_some_and(|&byte| byte != b'\n') => {
                    self.position += 2;
                }
                Some(byte) if byte == quote => {
                    self.position += 1;
                    return ActionTokenKind::Quoted;
                }
                _ => return ActionTokenKind::Broken(error),
            }
        }
    }

    /// Reads letters and digits. Returns `alone` if there are none.
    fn name(&mut self, kind: ActionTokenKind, alone: ActionTokenKind) -> ActionTokenKind {
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
            return ActionTokenKind::Broken(LexError::Name);
        }
        if self.position == start { alone } else { kind }
    }

    fn number(&mut self) -> ActionTokenKind {
        if !self.scan_number() {
            return ActionTokenKind::Broken(LexError::Number);
        }
        if !matches!(self.peek(), Some(b'+' | b'-')) {
            return ActionTokenKind::Number;
        }
        if self.scan_number() && self.source.get(self.position - 1) == Some(&b'i') {
            ActionTokenKind::Complex
        } else {
            ActionTokenKind::Broken(LexError::Number)
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

fn reserved(word: &[u8]) -> ActionTokenKind {
    ActionTokenKind::Keyword(match word {
        b"true" | b"false" => return ActionTokenKind::Bool,
        b"nil" => return ActionTokenKind::Nil,
        b"block" => ActionKeyword::Block,
        b"break" => ActionKeyword::Break,
        b"continue" => ActionKeyword::Continue,
        b"define" => ActionKeyword::Define,
        b"else" => ActionKeyword::Else,
        b"end" => ActionKeyword::End,
        b"if" => ActionKeyword::If,
        b"range" => ActionKeyword::Range,
        b"template" => ActionKeyword::Template,
        b"with" => ActionKeyword::With,
        _ => return ActionTokenKind::Identifier,
    })
}
