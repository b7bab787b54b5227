//! The steps of the parser: a key, a colon, a value, and what follows a value.

use super::lexer::{Bracket, TokenKind};
use super::parser::{Parser, Step, literal};
use super::{Node, Value, unquoted};
use crate::span::Span;

impl Parser<'_> {
    pub(super) fn key(&mut self) {
        let span = self.token.span;
        let lacks_end =
            matches!(self.token.kind, TokenKind::Open(Bracket::Object)) && self.object_lacks_its_end();
        match self.token.kind {
            TokenKind::Close(bracket) => self.closer(bracket),
            TokenKind::End => self.unclosed(),
            TokenKind::Comma => self.commas("key and value"),
            TokenKind::String { .. } | TokenKind::Word(_) => {
                if let TokenKind::String { text, broken: false } | TokenKind::Word(text) = self.take().kind {
                    self.set_key(Some((text, span)));
                } else {
                    self.set_key(None);
                    self.set_quiet(true);
                }
                self.step = Step::Colon;
            }
            TokenKind::Number(_) | TokenKind::Text if self.colon_follows() => {
                let key = self.written();
                self.report(span, "this key needs quotes", format!("write {}", unquoted::quoted(&key)));
                self.take();
                self.set_key(Some((key, span)));
                self.step = Step::Colon;
            }
            TokenKind::Number(_) | TokenKind::Text => {
                let written = self.written();
                let word = written.chars().any(char::is_alphanumeric);
                self.report(span, format!("expected a key, found `{written}`"), "write `key: value`");
                if word {
                    self.synchronise();
                } else {
                    self.skip();
                }
            }
            TokenKind::Colon | TokenKind::Equals => {
                self.report(span, "missing key", "write `key: value`");
                self.take();
                self.set_key(None);
                self.step = Step::Value;
            }
            TokenKind::Semicolon => {
                self.report(span, "expected a key, found `;`", "remove it; members are separated by commas");
                self.take();
            }
            TokenKind::Template => {
                self.template();
                self.step =
                    if matches!(self.token.kind, TokenKind::Colon) { Step::Colon } else { Step::After };
            }
            TokenKind::Open(Bracket::Object) if lacks_end => {
                self.object_without_end();
                self.step = Step::Value;
            }
            TokenKind::Open(bracket) => {
                let what = if bracket == Bracket::List { "a list" } else { "an object" };
                self.report(span, format!("expected a key, found {what}"), "write `key:` before it");
                self.set_key(None);
                self.take();
                self.open(bracket, span, false);
            }
        }
    }

    pub(super) fn colon(&mut self) {
        let span = self.token.span;
        match self.token.kind {
            TokenKind::Colon => {
                self.take();
                let sound = self.stack.last().is_some_and(|frame| frame.key.is_some());
                self.set_quiet(!sound);
                self.step = Step::Value;
            }
            TokenKind::Equals => {
                self.set_quiet(false);
                self.report(span, format!("expected `:`, found `{}`", self.written()), "write `key: value`");
                self.take();
                self.step = Step::Value;
            }
            TokenKind::End => self.unclosed(),
            TokenKind::Comma | TokenKind::Close(_) | TokenKind::Semicolon => {
                self.no_value("a colon and a value")
            }
            TokenKind::String { .. } | TokenKind::Word(_) | TokenKind::Text | TokenKind::Number(_)
                if self.token.newline =>
            {
                self.no_value("a colon and a value");
            }
            _ if self.stack.last().is_some_and(|frame| frame.quiet) => self.synchronise(),
            TokenKind::Word(_) if self.colon_follows() => {
                // `my key: 1`
                let Some((first, first_span)) = self.stack.last_mut().and_then(|frame| frame.key.take())
                else {
                    return self.synchronise();
                };
                let key = format!("{first} {}", self.written());
                let span = first_span.to(span);
                self.report(
                    span,
                    "a key with a space needs quotes",
                    format!("write {}", unquoted::quoted(&key)),
                );
                self.take();
                self.set_key(Some((key, span)));
            }
            _ => {
                let help = "add `:` between the key and its value";
                self.report(Span::at(self.end), "expected a colon after this key", help);
                self.step = Step::Value;
            }
        }
    }

    pub(super) fn value(&mut self) {
        let span = self.token.span;
        let list = self.stack.last().is_some_and(|frame| frame.bracket == Bracket::List);
        if list && self.list_lacks_its_end() {
            return self.list_without_end();
        }
        match &self.token.kind {
            TokenKind::Close(bracket) if list => self.closer(*bracket),
            TokenKind::End => self.unclosed(),
            TokenKind::Comma if list => self.commas("value"),
            TokenKind::Close(_) | TokenKind::Comma => self.no_value("a value"),
            // The value is missing; this is the next key.
            TokenKind::String { .. } | TokenKind::Word(_)
                if !list && self.token.newline && self.colon_follows() =>
            {
                self.no_value("a value");
            }
            TokenKind::Colon if list => {
                self.report(span, "expected a value, found `:`", "a list contains values without keys");
                self.synchronise();
            }
            TokenKind::Colon | TokenKind::Equals if !list => {
                let message = format!("one `{}` too many", self.written());
                self.report(span, message, "one colon separates a key from its value");
                self.take();
            }
            TokenKind::Template => {
                self.template();
                self.set_key(None);
                self.step = Step::After;
            }
            TokenKind::Open(bracket) => {
                let bracket = *bracket;
                self.take();
                self.open(bracket, span, false);
            }
            TokenKind::String { .. } | TokenKind::Number(_) => {
                let (value, broken) = match self.take().kind {
                    TokenKind::String { text, broken } => (Value::String(text), broken),
                    TokenKind::Number(number) => (Value::Number(number), false),
                    _ => (Value::Null, true),
                };
                self.attach(Node { value, span });
                if broken {
                    self.set_quiet(true);
                }
            }
            TokenKind::Word(word) => match literal(word) {
                Some(value) => {
                    self.take();
                    self.attach(Node { value, span });
                }
                None => self.bare(),
            },
            TokenKind::Text | TokenKind::Colon | TokenKind::Equals | TokenKind::Semicolon => self.bare(),
        }
    }

    pub(super) fn after(&mut self) {
        let span = self.token.span;
        let Some(frame) = self.stack.last() else {
            self.step = Step::Done;
            return;
        };
        let bracket = frame.bracket;
        let list = bracket == Bracket::List;
        let next = if list { Step::Value } else { Step::Key };
        let object_begins = matches!(self.token.kind, TokenKind::Open(Bracket::Object));
        let lacks_end = object_begins && !list && self.object_lacks_its_end();
        match self.token.kind {
            TokenKind::Comma => {
                self.take();
                self.set_quiet(false);
                self.step = next;
            }
            TokenKind::Close(bracket) => self.closer(bracket),
            TokenKind::End => self.unclosed(),
            TokenKind::Semicolon => {
                self.report(span, "expected a comma, found `;`", "use `,`");
                self.take();
                self.set_quiet(false);
                self.step = next;
            }
            TokenKind::Colon | TokenKind::Equals if list => {
                self.report(
                    span,
                    "a list contains values without keys",
                    "write `{ key: value }` for an object",
                );
                self.synchronise();
            }
            TokenKind::Colon | TokenKind::Equals => {
                self.missing_comma(bracket);
                self.take();
                self.set_key(None);
                self.step = Step::Value;
            }
            TokenKind::Template => self.template(),
            TokenKind::Open(Bracket::Object) if lacks_end => {
                self.object_without_end();
                self.set_quiet(true);
            }
            TokenKind::Open(_) if !list => {
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
}
