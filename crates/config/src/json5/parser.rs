//! From tokens to nodes.
//!
//! One loop over an explicit stack of open brackets. [`Step`] is what the innermost bracket expects next:
//!
//! | step    | in        | expects                  | then      |
//! |---------|-----------|--------------------------|-----------|
//! | `Key`   | an object | a key                    | `Colon`   |
//! | `Colon` | an object | `:`                      | `Value`   |
//! | `Value` | both      | a value, or a bracket    | `After`   |
//! | `After` | both      | `,` or the end           | `Key`, `Value` |
//!
//! A frame is *quiet* after an error in its current member. Nothing more is reported until the next comma or valid `key:`.

use super::lexer::{Bracket, Lexer, Token, TokenKind};
use super::{Member, Node, Parsed, SyntaxError, SyntaxKind, Value, foreign};
use crate::limits;
use crate::span::Span;
use containerpilot_core::sort_by;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Key,
    Colon,
    Value,
    After,
    Done,
}

pub(super) struct Frame {
    pub(super) open: Span,
    pub(super) bracket: Bracket,
    /// True if the braces around the whole file are missing.
    pub(super) implicit: bool,
    pub(super) items: Vec<Node>,
    pub(super) members: Vec<Member>,
    /// The key of the next value; `None` if the value is dropped.
    pub(super) key: Option<(String, Span)>,
    pub(super) quiet: bool,
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) token: Token,
    /// The end of the last consumed token.
    pub(super) end: usize,
    pub(super) step: Step,
    pub(super) stack: Vec<Frame>,
    pub(super) root: Option<Node>,
    pub(super) errors: Vec<SyntaxError>,
    /// Opening minus closing brackets so far.
    pub(super) balance: i64,
    /// The `balance` at the end of the file; counted once, when a closing bracket does not match.
    pub(super) last_balance: Option<i64>,
    /// The end of the last unmatched closing bracket. Further ones directly after it are not reported.
    pub(super) surplus: Option<usize>,
    /// The first bracket with an end that is indented less than its start: a missing bracket is probably inside it.
    pub(super) misindented: Option<(Bracket, Span)>,
    /// True if text before the top-level value was reported.
    pub(super) wrapped: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Self {
            lexer,
            token,
            end: 0,
            step: Step::Value,
            stack: Vec::new(),
            root: None,
            errors: Vec::new(),
            balance: 0,
            last_balance: None,
            surplus: None,
            misindented: None,
            wrapped: false,
        }
    }

    pub(super) fn parse(mut self) -> Parsed {
        self.top();
        while self.step != Step::Done && self.errors.len() < limits::ERRORS {
            match self.step {
                Step::Key => self.key(),
                Step::Colon => self.colon(),
                Step::Value => self.value(),
                Step::After => self.after(),
                Step::Done => {}
            }
        }
        if self.step == Step::Done {
            self.trailing();
        }
        // A file in another format has only one error.
        if let Some(error) = self.errors.first().and_then(|_| foreign::recognise(self.lexer.text)) {
            return Parsed { root: None, errors: vec![error] };
        }
        self.errors.truncate(limits::ERRORS);
        sort_by(&mut self.errors, |one, other| one.span.start.cmp(&other.span.start));
        Parsed { root: self.root, errors: self.errors }
    }

    // ---- tokens and errors

    /// Consumes the token and keeps the errors of the lexer.
    pub(super) fn take(&mut self) -> Token {
        self.errors.append(&mut self.lexer.pending);
        self.advance()
    }

    /// Consumes the token and drops the errors of the lexer.
    pub(super) fn skip(&mut self) {
        self.lexer.pending.clear();
        self.advance();
    }

    fn advance(&mut self) -> Token {
        match self.token.kind {
            TokenKind::Open(_) => self.balance += 1,
            TokenKind::Close(_) => self.balance -= 1,
            _ => {}
        }
        self.end = self.token.span.end as usize;
        let next = self.lexer.next();
        std::mem::replace(&mut self.token, next)
    }

    /// Reports an error at the current token, unless the frame is quiet.
    pub(super) fn report(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let quiet = self.stack.last_mut().is_some_and(|frame| std::mem::replace(&mut frame.quiet, true));
        if !quiet {
            self.report_always(span, message, help);
        }
    }

    /// Reports an error even if the frame is quiet.
    pub(super) fn report_always(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.token.junk {
            self.errors.append(&mut self.lexer.pending);
        } else {
            self.errors.push(SyntaxError::new(span, message, Some(help.into())));
        }
    }

    pub(super) fn set_quiet(&mut self, quiet: bool) {
        if let Some(frame) = self.stack.last_mut() {
            frame.quiet = quiet;
        }
    }

    pub(super) fn set_key(&mut self, key: Option<(String, Span)>) {
        if let Some(frame) = self.stack.last_mut() {
            frame.key = key;
        }
    }

    /// The current token as written.
    pub(super) fn written(&self) -> String {
        String::from_utf8_lossy(self.lexer.text.get(self.token.span.range()).unwrap_or_default()).into_owned()
    }

    pub(super) fn colon_follows(&self) -> bool {
        self.lexer.colon_follows(self.token.span.end as usize)
    }

    /// Skips to the next comma, the end of the bracket or the next line.
    pub(super) fn synchronise(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.token.kind {
                TokenKind::End => break,
                TokenKind::Comma | TokenKind::Close(_) if depth == 0 => break,
                TokenKind::Close(_) => depth -= 1,
                TokenKind::Open(_) => depth += 1,
                _ => {}
            }
            self.skip();
            if depth == 0 && self.token.newline {
                break;
            }
        }
        self.set_key(None);
        self.set_quiet(true);
        self.step = Step::After;
    }

    // ---- the top level

    fn top(&mut self) {
        loop {
            let reported = self.wrapped;
            match self.token.kind {
                TokenKind::Open(_) => return,
                TokenKind::Number(_) | TokenKind::String { .. } if !reported && !self.colon_follows() => {
                    return;
                }
                TokenKind::Word(ref word)
                    if !reported && !self.colon_follows() && literal(word).is_some() =>
                {
                    return;
                }
                TokenKind::End => {
                    if !reported {
                        let help = "a configuration is an object: `{ jobs: [ … ] }`";
                        self.report_always(self.token.span, "the configuration is empty", help);
                    }
                    self.errors.append(&mut self.lexer.pending);
                    self.step = Step::Done;
                    return;
                }
                TokenKind::Word(_) | TokenKind::String { .. } | TokenKind::Text
                    if !reported && self.colon_follows() =>
                {
                    let help = "add `{` at the start of the file and `}` at its end";
                    self.report_always(Span::at(self.token.span.start as usize), "expected `{` here", help);
                    self.open(Bracket::Object, self.token.span, true);
                    return;
                }
                TokenKind::Template if !reported => {
                    self.template();
                    self.wrapped = true;
                }
                _ => {
                    if !reported {
                        let help = "a configuration is an object: it starts with `{`";
                        self.report_always(self.token.span, "expected `{` here", help);
                    }
                    self.wrapped = true;
                    self.skip();
                }
            }
        }
    }

    /// Checks the top-level value and the text after it.
    fn trailing(&mut self) {
        if self.token.kind != TokenKind::End {
            if !self.wrapped {
                let help =
                    "the `}` before it ends the configuration: remove this, or a bracket too many before it";
                self.report_always(
                    self.token.span,
                    "unexpected text after the end of the configuration",
                    help,
                );
            }
            self.lexer.pending.truncate(usize::from(self.token.junk));
        }
        self.errors.append(&mut self.lexer.pending);
        let Some(root) = &self.root else { return };
        let what = match root.value {
            Value::Object(_) | Value::Null => return,
            Value::List(_) if self.wrapped => return,
            Value::List(_) => "a list",
            Value::String(_) => "a string",
            Value::Number(_) => "a number",
            Value::Bool(_) => "a boolean",
        };
        let start = root.span.start as usize;
        let list = matches!(root.value, Value::List(_));
        let span = if list { Span::new(start, start + 1) } else { root.span };
        let help = if list { "write `{ jobs: [ … ] }`" } else { "start it with `{` and end it with `}`" };
        let message = format!("a configuration is an object, not {what}");
        let error = SyntaxError::new(span, message, Some(help.to_owned()));
        self.errors.push(SyntaxError { kind: SyntaxKind::NotObject, ..error });
        self.root = None;
    }
}

pub(super) fn literal(word: &str) -> Option<Value> {
    match word {
        "null" => Some(Value::Null),
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "Infinity" | "NaN" => super::number::parse(word).map(Value::Number),
        _ => None,
    }
}
