//! Tokens become nodes.
//!
//! One loop over an explicit stack of open brackets. [`Step`] says what the innermost bracket waits for:
//!
//! | step    | in        | takes                    | then      |
//! |---------|-----------|--------------------------|-----------|
//! | `Key`   | an object | a key                    | `Colon`   |
//! | `Colon` | an object | `:`                      | `Value`   |
//! | `Value` | both      | a value, or a bracket    | `After`   |
//! | `After` | both      | `,` or the end           | `Key`, `Value` |
//!
//! A frame is *quiet* once a mistake was reported for its present member: what follows is guesswork until a
//! comma or a sound `key:`, so nothing more is reported before that.

use super::lexer::{Bracket, Lexer, Token, ValueType};
use super::{Member, Node, Parsed, SyntaxError, SyntaxKind, Value, bare, foreign};
use crate::limits;
use crate::span::Span;

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
    /// The braces were left out around the whole file.
    pub(super) implicit: bool,
    pub(super) items: Vec<Node>,
    pub(super) members: Vec<Member>,
    /// The key that waits for its value; `None` if the value is not worth keeping.
    pub(super) key: Option<(String, Span)>,
    pub(super) quiet: bool,
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) token: Token,
    /// The end of the last token taken.
    pub(super) end: usize,
    pub(super) step: Step,
    pub(super) stack: Vec<Frame>,
    pub(super) root: Option<Node>,
    pub(super) errors: Vec<SyntaxError>,
    /// Brackets opened minus brackets closed so far.
    pub(super) balance: i64,
    /// The value of `balance` that the file ends with; counted once, when a closing bracket does not fit.
    pub(super) last_balance: Option<i64>,
    /// The end of the last bracket that closed nothing; those that follow it at once are not worth a word.
    pub(super) surplus: Option<usize>,
    /// The first bracket whose end is indented unlike its beginning: if one is missing, it is here.
    pub(super) misindented: Option<(Bracket, Span)>,
    /// Something stands around the top-level value that should not; said once, before it.
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
        // What is no JSON5 at all has one mistake, whatever was tripped over on the way.
        if let Some(error) = self.errors.first().and_then(|_| foreign::recognise(self.lexer.text)) {
            return Parsed { root: None, errors: vec![error] };
        }
        self.errors.truncate(limits::ERRORS);
        self.errors.sort_by_key(|error| error.span.start);
        Parsed { root: self.root, errors: self.errors }
    }

    // ---- tokens and messages

    /// Takes the token, with what the lexer had to say about it.
    pub(super) fn take(&mut self) -> Token {
        self.errors.append(&mut self.lexer.pending);
        self.advance()
    }

    /// Takes the token and keeps silent about it.
    pub(super) fn skip(&mut self) {
        self.lexer.pending.clear();
        self.advance();
    }

    fn advance(&mut self) -> Token {
        match self.token.kind {
            ValueType::Open(_) => self.balance += 1,
            ValueType::Close(_) => self.balance -= 1,
            _ => {}
        }
        self.end = self.token.span.end as usize;
        let next = self.lexer.next();
        std::mem::replace(&mut self.token, next)
    }

    /// Reports a mistake at the present token, unless one was reported for this place already.
    fn report(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let quiet = self.stack.last_mut().is_some_and(|frame| std::mem::replace(&mut frame.quiet, true));
        if !quiet {
            self.report_always(span, message, help);
        }
    }

    /// The same, whether or not the frame is quiet.
    pub(super) fn report_always(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.token.junk {
            self.errors.append(&mut self.lexer.pending);
        } else {
            self.errors.push(SyntaxError::new(span, message, Some(help.into())));
        }
    }

    fn set_quiet(&mut self, quiet: bool) {
        if let Some(frame) = self.stack.last_mut() {
            frame.quiet = quiet;
        }
    }

    fn set_key(&mut self, key: Option<(String, Span)>) {
        if let Some(frame) = self.stack.last_mut() {
            frame.key = key;
        }
    }

    /// The written form of the present token.
    pub(super) fn written(&self) -> String {
        String::from_utf8_lossy(self.lexer.text.get(self.token.span.range()).unwrap_or_default()).into_owned()
    }

    fn colon_follows(&self) -> bool {
        self.lexer.colon_follows(self.token.span.end as usize)
    }

    /// Skips to where reading can go on: a comma, the end of the bracket, or the next line.
    fn synchronise(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.token.kind {
                ValueType::End => break,
                ValueType::Comma | ValueType::Close(_) if depth == 0 => break,
                ValueType::Close(_) => depth -= 1,
                ValueType::Open(_) => depth += 1,
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
                ValueType::Open(_) => return,
                ValueType::Number(_) | ValueType::String { .. } if !reported && !self.colon_follows() => {
                    return;
                }
                ValueType::Word(ref word)
                    if !reported && !self.colon_follows() && literal(word).is_some() =>
                {
                    return;
                }
                ValueType::End => {
                    if !reported {
                        let help = "a configuration is an object: `{ jobs: [ … ] }`";
                        self.report_always(self.token.span, "the configuration is empty", help);
                    }
                    self.errors.append(&mut self.lexer.pending);
                    self.step = Step::Done;
                    return;
                }
                ValueType::Word(_) | ValueType::String { .. } | ValueType::Text
                    if !reported && self.colon_follows() =>
                {
                    let help = "put `{` at the beginning of the file and `}` at its end";
                    self.report_always(Span::at(self.token.span.start as usize), "expected `{` here", help);
                    self.open(Bracket::Object, self.token.span, true);
                    return;
                }
                ValueType::Template if !reported => {
                    self.template();
                    self.wrapped = true;
                }
                _ => {
                    if !reported {
                        let help = "a configuration is an object: it begins with `{`";
                        self.report_always(self.token.span, "expected `{` here", help);
                    }
                    self.wrapped = true;
                    self.skip();
                }
            }
        }
    }

    /// What comes after the top-level value, and whether that was one to be had.
    fn trailing(&mut self) {
        if self.token.kind != ValueType::End {
            if !self.wrapped {
                let help = "the last `}` before has ended it: delete this, or a bracket too many before it";
                self.report_always(self.token.span, "nothing may follow the end of the configuration", help);
            }
            self.lexer.pending.truncate(usize::from(self.token.junk));
        }
        self.errors.append(&mut self.lexer.pending);
        let Some(root) = &self.root else { return };
        let what = match root.value {
            Value::Object(_) | Value::Null => return,
            Value::List(_) if self.wrapped => return,
            Value::List(_) => "a list",
            Value::String(_) => "text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "a boolean",
        };
        let start = root.span.start as usize;
        let list = matches!(root.value, Value::List(_));
        let span = if list { Span::new(start, start + 1) } else { root.span };
        let help = if list { "write `{ jobs: [ … ] }`" } else { "begin it with `{` and end it with `}`" };
        let message = format!("a configuration is an object, not {what}");
        let error = SyntaxError::new(span, message, Some(help.to_owned()));
        self.errors.push(SyntaxError { kind: SyntaxKind::NotObject, ..error });
        self.root = None;
    }

    // ---- the steps

    fn key(&mut self) {
        let span = self.token.span;
        let lacks_end =
            matches!(self.token.kind, ValueType::Open(Bracket::Object)) && self.object_lacks_its_end();
        match self.token.kind {
            ValueType::Close(bracket) => self.closer(bracket),
            ValueType::End => self.unclosed(),
            ValueType::Comma => self.commas("a key and a value"),
            ValueType::String { .. } | ValueType::Word(_) => {
                if let ValueType::String { text, broken: false } | ValueType::Word(text) = self.take().kind {
                    self.set_key(Some((text, span)));
                } else {
                    self.set_key(None);
                    self.set_quiet(true);
                }
                self.step = Step::Colon;
            }
            ValueType::Number(_) | ValueType::Text if self.colon_follows() => {
                let key = self.written();
                self.report(span, "this key must stand in quotes", format!("write {}", bare::quoted(&key)));
                self.take();
                self.set_key(Some((key, span)));
                self.step = Step::Colon;
            }
            ValueType::Number(_) | ValueType::Text => {
                let written = self.written();
                let word = written.chars().any(char::is_alphanumeric);
                self.report(
                    span,
                    format!("expected a key, found `{written}`"),
                    "a member is written `key: value`",
                );
                if word {
                    self.synchronise();
                } else {
                    self.skip();
                }
            }
            ValueType::Colon | ValueType::Equals => {
                self.report(span, "there is no key before this", "a member is written `key: value`");
                self.take();
                self.set_key(None);
                self.step = Step::Value;
            }
            ValueType::Semicolon => {
                self.report(span, "expected a key, found `;`", "delete it; members are separated by commas");
                self.take();
            }
            ValueType::Template => {
                self.template();
                self.step =
                    if matches!(self.token.kind, ValueType::Colon) { Step::Colon } else { Step::After };
            }
            ValueType::Open(Bracket::Object) if lacks_end => {
                self.object_without_end();
                self.step = Step::Value;
            }
            ValueType::Open(bracket) => {
                let what = if bracket == Bracket::List { "a list" } else { "an object" };
                self.report(span, format!("expected a key, found {what}"), "write `key:` before it");
                self.set_key(None);
                self.take();
                self.open(bracket, span, false);
            }
        }
    }

    fn colon(&mut self) {
        let span = self.token.span;
        match self.token.kind {
            ValueType::Colon => {
                self.take();
                let sound = self.stack.last().is_some_and(|frame| frame.key.is_some());
                self.set_quiet(!sound);
                self.step = Step::Value;
            }
            ValueType::Equals => {
                self.set_quiet(false);
                self.report(span, format!("expected `:`, found `{}`", self.written()), "write `key: value`");
                self.take();
                self.step = Step::Value;
            }
            ValueType::End => self.unclosed(),
            ValueType::Comma | ValueType::Close(_) | ValueType::Semicolon => {
                self.no_value("a colon and a value")
            }
            ValueType::String { .. } | ValueType::Word(_) | ValueType::Text | ValueType::Number(_)
                if self.token.newline =>
            {
                self.no_value("a colon and a value");
            }
            _ if self.stack.last().is_some_and(|frame| frame.quiet) => self.synchronise(),
            ValueType::Word(_) if self.colon_follows() => {
                // `my key: 1`
                let Some((first, first_span)) = self.stack.last_mut().and_then(|frame| frame.key.take())
                else {
                    return self.synchronise();
                };
                let key = format!("{first} {}", self.written());
                let span = first_span.to(span);
                self.report(
                    span,
                    "a key with a blank must stand in quotes",
                    format!("write {}", bare::quoted(&key)),
                );
                self.take();
                self.set_key(Some((key, span)));
            }
            _ => {
                let help = "put `:` between the key and its value";
                self.report(Span::at(self.end), "expected a colon after this key", help);
                self.step = Step::Value;
            }
        }
    }

    fn value(&mut self) {
        let span = self.token.span;
        let list = self.stack.last().is_some_and(|frame| frame.bracket == Bracket::List);
        if list && self.list_lacks_its_end() {
            return self.list_without_end();
        }
        match &self.token.kind {
            ValueType::Close(bracket) if list => self.closer(*bracket),
            ValueType::End => self.unclosed(),
            ValueType::Comma if list => self.commas("a value"),
            ValueType::Close(_) | ValueType::Comma => self.no_value("a value"),
            // The value is missing, and this is the next key.
            ValueType::String { .. } | ValueType::Word(_)
                if !list && self.token.newline && self.colon_follows() =>
            {
                self.no_value("a value");
            }
            ValueType::Colon if list => {
                self.report(span, "expected a value, found `:`", "a list holds values without keys");
                self.synchronise();
            }
            ValueType::Colon | ValueType::Equals if !list => {
                let message = format!("this `{}` is one too many", self.written());
                self.report(span, message, "one colon separates a key from its value");
                self.take();
            }
            ValueType::Template => {
                self.template();
                self.set_key(None);
                self.step = Step::After;
            }
            ValueType::Open(bracket) => {
                let bracket = *bracket;
                self.take();
                self.open(bracket, span, false);
            }
            ValueType::String { .. } | ValueType::Number(_) => {
                let (value, broken) = match self.take().kind {
                    ValueType::String { text, broken } => (Value::String(text), broken),
                    ValueType::Number(number) => (Value::Number(number), false),
                    _ => (Value::Null, true),
                };
                self.attach(Node { value, span });
                if broken {
                    self.set_quiet(true);
                }
            }
            ValueType::Word(word) => match literal(word) {
                Some(value) => {
                    self.take();
                    self.attach(Node { value, span });
                }
                None => self.bare(),
            },
            ValueType::Text | ValueType::Colon | ValueType::Equals | ValueType::Semicolon => self.bare(),
        }
    }

    fn after(&mut self) {
        let span = self.token.span;
        let Some(frame) = self.stack.last() else {
            self.step = Step::Done;
            return;
        };
        let bracket = frame.bracket;
        let list = bracket == Bracket::List;
        let next = if list { Step::Value } else { Step::Key };
        let object_begins = matches!(self.token.kind, ValueType::Open(Bracket::Object));
        let lacks_end = object_begins && !list && self.object_lacks_its_end();
        match self.token.kind {
            ValueType::Comma => {
                self.take();
                self.set_quiet(false);
                self.step = next;
            }
            ValueType::Close(bracket) => self.closer(bracket),
            ValueType::End => self.unclosed(),
            ValueType::Semicolon => {
                self.report(span, "expected a comma, found `;`", "write `,` instead");
                self.take();
                self.set_quiet(false);
                self.step = next;
            }
            ValueType::Colon | ValueType::Equals if list => {
                self.report(span, "a list holds values without keys", "write `{ key: value }` for a pair");
                self.synchronise();
            }
            ValueType::Colon | ValueType::Equals => {
                self.missing_comma(bracket);
                self.take();
                self.set_key(None);
                self.step = Step::Value;
            }
            ValueType::Template => self.template(),
            ValueType::Open(Bracket::Object) if lacks_end => {
                self.object_without_end();
                self.set_quiet(true);
            }
            ValueType::Open(_) if !list => {
                self.missing_comma(bracket);
                self.synchronise();
            }
            _ => {
                let within = self.quotes_within();
                self.missing_comma(bracket);
                if within {
                    self.synchronise();
                } else {
                    self.step = next;
                }
            }
        }
    }

    // ---- the slips that several steps share

    fn missing_comma(&mut self, bracket: Bracket) {
        let comma = format!("expected a comma or `{}` after this value", bracket.close());
        let (message, help) = match self.token.kind {
            _ if !self.quotes_within() => (comma, "put a comma here"),
            ValueType::String { .. } => {
                (comma, "put a comma here, or write \\\" for a quotation mark inside a text")
            }
            _ => {
                let message = "the text ends with the quotation mark before this".to_owned();
                (message, "write \\\" for a quotation mark inside a text")
            }
        };
        self.report(Span::at(self.end), message, help);
    }

    /// Whether a text ended earlier than its writer thinks: `"say "hello""`.
    fn quotes_within(&self) -> bool {
        let value = matches!(
            self.token.kind,
            ValueType::Word(_) | ValueType::Text | ValueType::String { .. } | ValueType::Number(_)
        );
        let after_quote = self.end.checked_sub(1).and_then(|last| self.lexer.text.get(last));
        value && after_quote == Some(&b'"') && self.token.span.start as usize == self.end
    }

    /// Whether an object in a list is followed by `{` because its own `}` was forgotten.
    fn object_lacks_its_end(&mut self) -> bool {
        let parent = self.stack.len().checked_sub(2).and_then(|parent| self.stack.get(parent));
        parent.is_some_and(|parent| parent.bracket == Bracket::List) && self.remaining() < self.stack.len()
    }

    /// Whether a list in an object is followed by `key:` because its `]` was forgotten.
    fn list_lacks_its_end(&mut self) -> bool {
        let parent = self.stack.len().checked_sub(2).and_then(|parent| self.stack.get(parent));
        self.token.newline
            && matches!(self.token.kind, ValueType::Word(_) | ValueType::String { .. })
            && parent.is_some_and(|parent| parent.bracket == Bracket::Object)
            && self.colon_follows()
            && self.remaining() < self.stack.len()
    }

    /// A run of commas with nothing between them: one message.
    fn commas(&mut self, what: &str) {
        let first = self.token.span;
        let mut last = first;
        self.errors.append(&mut self.lexer.pending);
        let junk = self.token.junk;
        while self.token.kind == ValueType::Comma {
            last = self.take().span;
        }
        if !junk {
            let message = format!("there must be {what} before this comma");
            self.errors.push(SyntaxError::new(first.to(last), message, Some("delete the comma".to_owned())));
        }
        self.set_quiet(false);
    }

    /// A key whose colon or value is missing.
    fn no_value(&mut self, what: &str) {
        let place = if what == "a value" { "the colon" } else { "this key" };
        let message = format!("expected {what} after {place}");
        self.report(Span::at(self.end), message, "a member is written `key: value`");
        self.set_key(None);
        self.set_quiet(true);
        self.step = Step::After;
    }

    /// Text without quotes in the place of a value.
    fn bare(&mut self) {
        let start = self.token.span.start as usize;
        let end = bare::end(&mut self.lexer, start).max(self.token.span.end as usize);
        let span = Span::new(start, end);
        let guess = bare::guess(self.lexer.text.get(start..end).unwrap_or_default());
        self.report(span, guess.message, guess.help);
        self.errors.append(&mut self.lexer.pending);
        self.lexer.at = end;
        self.end = end;
        self.token = self.lexer.next();
        self.attach(Node { value: guess.value, span });
        self.set_quiet(true);
    }

    /// A `{{ … }}` that is still there.
    fn template(&mut self) {
        let help = "a template action in the output of another one is not rendered again; without a template, \
                    one brace is enough";
        self.report(self.token.span, "`{{` cannot stand here", help);
        self.take();
        self.set_quiet(true);
    }
}

fn literal(word: &str) -> Option<Value> {
    match word {
        "null" => Some(Value::Null),
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "Infinity" | "NaN" => super::number::parse(word).map(Value::Number),
        _ => None,
    }
}
