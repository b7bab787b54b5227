//! Errors that several steps of the parser share: missing commas, values and brackets, and strings without quotes.

use super::lexer::{Bracket, TokenKind};
use super::parser::{Parser, Step};
use super::{Node, SyntaxError, unquoted};
use crate::span::Span;

impl Parser<'_> {
    pub(super) fn missing_comma(&mut self, bracket: Bracket) {
        let comma = format!("expected a comma or `{}` after this value", bracket.close());
        let (message, help) = match self.token.kind {
            _ if !self.quotes_within() => (comma, "put a comma here"),
            TokenKind::String { .. } => {
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
    pub(super) fn quotes_within(&self) -> bool {
        let value = matches!(
            self.token.kind,
            TokenKind::Word(_) | TokenKind::Text | TokenKind::String { .. } | TokenKind::Number(_)
        );
        let after_quote = self.end.checked_sub(1).and_then(|last| self.lexer.text.get(last));
        value && after_quote == Some(&b'"') && self.token.span.start as usize == self.end
    }

    /// Whether an object in a list is followed by `{` because its own `}` was forgotten.
    pub(super) fn object_lacks_its_end(&mut self) -> bool {
        let parent = self.stack.len().checked_sub(2).and_then(|parent| self.stack.get(parent));
        parent.is_some_and(|parent| parent.bracket == Bracket::List) && self.remaining() < self.stack.len()
    }

    /// Whether a list in an object is followed by `key:` because its `]` was forgotten.
    pub(super) fn list_lacks_its_end(&mut self) -> bool {
        let parent = self.stack.len().checked_sub(2).and_then(|parent| self.stack.get(parent));
        self.token.newline
            && matches!(self.token.kind, TokenKind::Word(_) | TokenKind::String { .. })
            && parent.is_some_and(|parent| parent.bracket == Bracket::Object)
            && self.colon_follows()
            && self.remaining() < self.stack.len()
    }

    /// A run of commas with nothing between them: one message.
    pub(super) fn commas(&mut self, what: &str) {
        let first = self.token.span;
        let mut last = first;
        self.errors.append(&mut self.lexer.pending);
        let junk = self.token.junk;
        while self.token.kind == TokenKind::Comma {
            last = self.take().span;
        }
        if !junk {
            let message = format!("there must be {what} before this comma");
            self.errors.push(SyntaxError::new(first.to(last), message, Some("delete the comma".to_owned())));
        }
        self.set_quiet(false);
    }

    /// A key whose colon or value is missing.
    pub(super) fn no_value(&mut self, what: &str) {
        let place = if what == "a value" { "the colon" } else { "this key" };
        let message = format!("expected {what} after {place}");
        self.report(Span::at(self.end), message, "a member is written `key: value`");
        self.set_key(None);
        self.set_quiet(true);
        self.step = Step::After;
    }

    /// Text without quotes in the place of a value.
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

    /// A `{{ … }}` that is still there.
    pub(super) fn template(&mut self) {
        let help = "a template action in the output of another one is not rendered again; without a template, \
                    one brace is enough";
        self.report(self.token.span, "`{{` cannot stand here", help);
        self.take();
        self.set_quiet(true);
    }
}
