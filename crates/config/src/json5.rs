//! JSON5 1.0 over bytes, with the range of every node, and with all errors found in one pass (C3, C5).
//!
//! `lexer` splits the text into tokens. `parser` is a loop over an explicit stack, so that depth uses no call stack. `unquoted`
//! handles values without quotes, and `foreign` recognizes files in other formats. An error is reported once, at the narrowest
//! range. The parser then continues at the next comma, closing bracket or line, and reports nothing in between, because a
//! second message about the same mistake hides the first one.
//!
//! Where the parser of ContainerPilot 3.8 differs from the specification, the specification is followed.

mod brackets;
mod chars;
mod foreign;
mod lexer;
mod number;
mod parser;
mod recovery;
mod steps;
mod string;
#[cfg(test)]
mod tests;
mod unquoted;
pub mod write;

use crate::span::Span;

pub(crate) use foreign::not_text;

/// A value and its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its range in the text.
    pub span: Span,
}

/// A JSON5 value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string. Invalid UTF-8 is replaced by U+FFFD.
    String(String),
    /// `[…]`
    List(Vec<Node>),
    /// `{…}`, with the order and duplicates of the text.
    Object(Vec<Member>),
}

/// A number with its literal, because a float cannot represent `9007199254740993`.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The nearest 64-bit float.
    pub value: f64,
    /// The literal.
    pub text: Box<str>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The key, with quotes removed and escapes resolved.
    pub key: String,
    /// The range of the key with its quotes.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// The kind of a syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxKind {
    /// The text is not JSON5.
    Syntax,
    /// The text is JSON5, but not an object.
    NotObject,
}

/// An error in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Its kind.
    pub kind: SyntaxKind,
    /// The narrowest range of the error; empty where something is missing.
    pub span: Span,
    /// What is wrong there.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The end of an unterminated string.
    pub cut: Option<Span>,
}

impl SyntaxError {
    fn new(span: Span, message: impl Into<String>, help: Option<String>) -> Self {
        Self { kind: SyntaxKind::Syntax, span, message: message.into(), help, cut: None }
    }
}

/// The result of parsing.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The top-level object, or `null`. If there are errors, it is incomplete: good enough to find more errors, but not to
    /// run.
    pub root: Option<Node>,
    /// All errors in the order of the text, at most [`crate::limits::ERRORS`].
    pub errors: Vec<SyntaxError>,
}

/// Parses a text. A top-level `null` is accepted, as in 3.8.
#[must_use]
pub fn parse(text: &[u8]) -> Parsed {
    parser::Parser::new(text).parse()
}
