//! JSON5 1.0, read over bytes, with a place for every node and all mistakes found in one pass (C3, C5).
//!
//! The reader is three layers. [`lexer`] cuts the text into tokens; [`parser`] is a loop over an explicit
//! stack, so that depth costs no machine stack; [`bare`] knows what people write when they forget the
//! quotes, [`foreign`] what is no JSON5 at all. A mistake is reported once, at the narrowest place, and the reader then goes on from the nearest
//! point where it is sure again: a comma, a closing bracket or the next line. What it skips on the way it
//! skips in silence, because a second message about the same slip only hides the first.
//!
//! Where ContainerPilot 3.8's reader differs from the specification, the specification is followed.

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

use crate::span::Span;

/// A value and the place where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it stands in the text that was parsed.
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
    /// Text; bytes that were not UTF-8 have become U+FFFD.
    String(String),
    /// `[…]`
    List(Vec<Node>),
    /// `{…}`, duplicates and order kept as written.
    Object(Vec<Member>),
}

/// A number, and how it was written: `value` cannot tell `9007199254740993` from its neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The nearest 64-bit float.
    pub value: f64,
    /// The literal as written.
    pub text: Box<str>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The key, with quotes removed and escapes resolved.
    pub key: String,
    /// Where the key stands, quotes included.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// What sort of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxKind {
    /// The text is not JSON5.
    Syntax,
    /// The text is JSON5, but no object at the top.
    NotObject,
}

/// One mistake in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// What sort of mistake it is.
    pub kind: SyntaxKind,
    /// The narrowest place of the mistake; empty where something is missing.
    pub span: Span,
    /// What is wrong at exactly that place.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Where a text was cut off before its end.
    pub cut: Option<Span>,
}

impl SyntaxError {
    fn new(span: Span, message: impl Into<String>, help: Option<String>) -> Self {
        Self { kind: SyntaxKind::Syntax, span, message: message.into(), help, cut: None }
    }
}

/// What a text turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The top-level object, or `null`. With errors it is what could be made out, which is good enough to
    /// look for further mistakes in, but not to run.
    pub root: Option<Node>,
    /// All mistakes, in the order of the text, at most [`crate::limits::ERRORS`].
    pub errors: Vec<SyntaxError>,
}

/// Reads a text. It is accepted if and only if there are no errors; a top-level `null` is accepted, as 3.8 does.
#[must_use]
pub fn parse(text: &[u8]) -> Parsed {
    parser::Parser::new(text).parse()
}
