//! Errors that several steps of the parser share: missing commas, values and brackets, and strings without quotes.

use super::lexer::{Bracket, TokenKind};
use super::parser::{Parser, Step};
use super::{Node, SyntaxError, unquoted};
use crate::span::Span;

impl Parser<'_> {
    pub(super) fn missing_comma(&mut self, bracket: Bracket) {
        let comma = format!("expected a comma or `{}` after this value", bracket.close());
        let (message, help) = match self.token.kind {
            _ if !self.quotes_within() => (comma, "add a comma here"),
            TokenKind::String { .. } => {
                (comma, "add a comma here, or write \\\" for a quotation mark inside a string")
            }
            _ => {
                let message = "the string ends at the quotation mark before this".to_owned();
                (message, "write \\\" for a quotation mark inside a string")
            }
        };
        self.report(Span::at(self.end), message, help);
    }

    /// Returns true if a string probably ended too early: `"say "hello""`.
    pub(super) fn quotes_within(&self) -> bool {
        let value = matches!(
            self.token.kind,
            TokenKind::Word(_) | TokenKind::Text | TokenKind::String { .. } | TokenKind::Number(_)
        );
        let after_quote = self.end.checked_sub(1).and_then(|last| self.lexer.text.get(last));
        value && after_quote == Some(&b'"') && self.token.span.start as usize == self.end
    }

    /// Returns true if `{` follows an object in a list because the object's `}` is missing.
    pub(super) fn object_lacks_its_end(&mut self) -> bool {
        let parent = self.stack.len().checked_sub(2).and_then(|parent| self.stack.get(parent));
        parent.is_some_and(|parent| parent.bracket == Bracket::List) && self.remaining() < self.stack.len()
    }

    /// Returns true if `key:` follows a list in an object because the list's `]` is missing.
    pub(super) fn list_lacks_its_end(&mut self) -> bool {
        let parent = self.stack.len().checked_sub(2).and_then(|parent| self.stack.get(parent));
        self.token.newline
            && matches!(self.token.kind, TokenKind::Word(_) | TokenKind::String { .. })
            && parent.is_some_and(|parent| parent.bracket == Bracket::Object)
            && self.colon_follows()
            && self.remaining() < self.stack.len()
    }

    /// Reports consecutive commas, once.
    pub(super) fn commas(&mut self, what: &str) {
        let first = self.token.span;
        let mut last = first;
        self.errors.append(&mut self.lexer.pending);
        let junk = self.token.junk;
        while self.token.kind == TokenKind::Comma {
            last = self.take().span;
        }
        if !junk {
            let message = format!("missing {what} before this comma");
            self.errors.push(SyntaxError::new(first.to(last), message, Some("remove the comma".to_owned())));
        }
        self.set_quiet(false);
    }

    /// Reports a key without a colon or a value.
    pub(super) fn no_value(&mut self, what: &str) {
        let place = if what == "a value" { "the colon" } else { "this key" };
        let message = format!("expected {what} after {place}");
        self.report(Span::at(self.end), message, "write `key: value`");
        self.set_key(None);
        self.set_quiet(true);
        self.step = Step::After;
    }

    /// Reads a value without quotes.
    pub(super) fn bare(&mut self) {
        let start = self.token.span.start as usize;
        let end = unquoted::end(&mut self.lexer, start).max(self.token.span.end as usize);
        let span = Span::new(start, end);
        let guess = unquoted::guess(self.lexer.text.get(start..end).unwrap_or_default());
        self.report(span, guess.message, guess.help);
        self.errors.append(&mut self.lexer.pending);
        self.lexer.at = end;
        self.end = end;
        self.token = self.lexer.next();
        self.attach(Node { value: guess.value, span });
        self.set_quiet(true);
    }

    /// Reports a `{{ … }}` that was not rendered.
    pub(super) fn template(&mut self) {
        let help = "the output of a template action is not rendered again; an object has only one brace";
        self.report(self.token.span, "unexpected `{{`", help);
        self.take();
        self.set_quiet(true);
    }
}
