//! Opening and closing brackets, and brackets that do not match.

use super::lexer::{Bracket, TokenKind};
use super::parser::{Frame, Parser, Step};
use super::{Member, Node, Value};
use crate::limits;
use crate::span::Span;

impl Parser<'_> {
    pub(super) fn open(&mut self, bracket: Bracket, open: Span, implicit: bool) {
        if self.stack.len() >= limits::JSON_DEPTH {
            let message = format!("brackets are nested more than {} deep", limits::JSON_DEPTH);
            self.report_always(open, message, "the rest of the file was not parsed");
            self.lexer.pending.clear();
            self.lexer.at = self.lexer.text.len();
            self.token = self.lexer.next();
            // The rest is skipped, so that open brackets are not errors.
            self.token.junk = true;
            self.step = Step::After;
            return;
        }
        let (items, members) = (Vec::new(), Vec::new());
        self.stack.push(Frame { open, bracket, implicit, items, members, key: None, quiet: false });
        self.step = if bracket == Bracket::Object { Step::Key } else { Step::Value };
    }

    /// Closes the innermost bracket, which ends at `end`.
    pub(super) fn close(&mut self, end: Span) {
        let Some(frame) = self.stack.pop() else { return };
        let value = match frame.bracket {
            Bracket::Object => Value::Object(frame.members),
            Bracket::List => Value::List(frame.items),
        };
        self.attach(Node { value, span: frame.open.to(end) });
    }

    /// Adds a complete value to the innermost bracket.
    pub(super) fn attach(&mut self, node: Node) {
        self.step = Step::After;
        match self.stack.last_mut() {
            None => {
                self.root = Some(node);
                self.step = Step::Done;
            }
            Some(frame) if frame.bracket == Bracket::List => {
                frame.items.push(node);
                frame.quiet = false;
            }
            Some(frame) => {
                if let Some((key, key_span)) = frame.key.take() {
                    frame.members.push(Member { key, key_span, value: node });
                }
            }
        }
    }

    /// Handles a closing bracket, which may not be the expected one.
    pub(super) fn closer(&mut self, bracket: Bracket) {
        let newline = self.token.newline;
        let junk = self.token.junk;
        let previous = self.end;
        let span = self.take().span;
        let Some(top) = self.stack.last() else { return };
        let (expected, open) = (top.bracket, top.open);
        if expected == bracket {
            if newline && self.misindented.is_none() && self.dedented(open, span) {
                self.misindented = Some((expected, open));
            }
            self.close(span);
            return;
        }
        // Three explanations: a bracket is missing before this one; this one is of the wrong kind; it is one too many. The
        // explanation that balances the brackets of the whole file is used.
        let depth = self.stack.len();
        let partner = self.stack.iter().rposition(|frame| frame.bracket == bracket);
        let remaining = self.remaining();
        let missing = partner.is_some_and(|partner| partner == remaining);
        let wrong_kind = depth == remaining + 1;
        let surplus = remaining >= depth;
        let next_junk = std::mem::replace(&mut self.token.junk, junk);
        match partner {
            Some(partner) if missing || !wrong_kind && !surplus => {
                let missing: String =
                    self.stack.iter().skip(partner + 1).rev().map(|frame| frame.bracket.close()).collect();
                self.report_always(
                    open,
                    format!("`{}` is not closed before the next `{}`", expected.open(), bracket.close()),
                    format!("add `{missing}` at its end"),
                );
                while self.stack.len() > partner {
                    self.close(span);
                }
            }
            _ if surplus && !wrong_kind => {
                if self.surplus != Some(previous) {
                    let message = format!("unmatched `{}`", bracket.close());
                    self.report_always(span, message, "remove it, or one too many before it");
                }
                // The comma after it is skipped too, unless one is expected.
                if self.token.kind == TokenKind::Comma && self.step != Step::After {
                    self.skip();
                }
                self.surplus = Some(self.end);
            }
            _ => {
                let what = if expected == Bracket::List { "list" } else { "object" };
                let message = format!("`{}` cannot close the {what}", bracket.close());
                self.report_always(span, message, format!("write `{}` here", expected.close()));
                self.close(span);
            }
        }
        self.token.junk = next_junk;
    }

    /// The number of open brackets that the rest of the text closes, including the current token.
    pub(super) fn remaining(&mut self) -> usize {
        let last = match self.last_balance {
            Some(last) => last,
            None => {
                let mut lexer = self.lexer.clone();
                lexer.at = self.token.span.start as usize;
                let mut balance = self.balance;
                loop {
                    match lexer.next().kind {
                        TokenKind::Open(_) => balance += 1,
                        TokenKind::Close(_) => balance -= 1,
                        TokenKind::End => break,
                        _ => {}
                    }
                    lexer.pending.clear();
                }
                self.last_balance = Some(balance);
                balance
            }
        };
        usize::try_from(self.balance - last).unwrap_or_default()
    }

    /// Returns true if the closing bracket is indented less than the line of its opening bracket.
    fn dedented(&self, open: Span, close: Span) -> bool {
        /// Deeper indentation is ignored.
        const MAX_INDENT: usize = 200;
        let text = self.lexer.text;
        let indent = |offset: u32| {
            let before = text.get(..offset as usize).unwrap_or_default();
            let line = before.iter().rev().take(MAX_INDENT).position(|byte| matches!(byte, b'\n' | b'\r'))?;
            let line = before.get(before.len() - line..)?;
            Some(line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
        };
        matches!((indent(open.start), indent(close.start)), (Some(open), Some(close)) if close < open)
    }

    /// Reports an object in a list that is followed by another one before its end. The indentation often shows that the missing
    /// bracket is not its own, but one inside it.
    pub(super) fn object_without_end(&mut self) {
        let inner = self.misindented.filter(|(bracket, _)| *bracket == Bracket::Object).map(|(_, open)| open);
        let within = |open: &Span| self.stack.last().is_some_and(|frame| frame.open.start <= open.start);
        if let Some(open) = inner.filter(within) {
            let help = "add `}` at its end, with the indentation of its line";
            self.report_always(open, "unclosed `{`", help);
        } else {
            let message = if self.step == Step::Key {
                "expected a key, or `}` before the next object"
            } else {
                "expected a comma or `}` after this value"
            };
            let help = "close this object with `}` and add a comma before the next one";
            self.report_always(Span::at(self.end), message, help);
        }
        self.close(Span::at(self.end));
    }

    /// Reports a list in an object that is followed by the next key before its end.
    pub(super) fn list_without_end(&mut self) {
        let Some(open) = self.stack.last().map(|frame| frame.open) else { return };
        let help = format!("add `]` before `{}`", self.written());
        self.report_always(open, "unclosed `[`", help);
        self.close(Span::at(self.end));
        self.step = Step::Key;
    }

    /// Reports brackets that are open at the end of the text.
    pub(super) fn unclosed(&mut self) {
        let at_end = Span::at(self.token.span.start as usize);
        let missing: String = self
            .stack
            .iter()
            .rev()
            .filter(|frame| !frame.implicit)
            .map(|frame| frame.bracket.close())
            .collect();
        let innermost = self.stack.iter().rev().find(|frame| !frame.implicit);
        if let Some((bracket, open)) = innermost.map(|frame| (frame.bracket, frame.open)) {
            let (bracket, open, help) = match self.misindented {
                Some((bracket, open)) if missing.chars().count() == 1 => (
                    bracket,
                    open,
                    format!("add `{}` at its end, with the indentation of its line", bracket.close()),
                ),
                _ => (bracket, open, format!("add `{missing}` at the end of the file, or where it ends")),
            };
            self.report_always(open, format!("unclosed `{}`", bracket.open()), help);
        }
        self.errors.append(&mut self.lexer.pending);
        while !self.stack.is_empty() {
            self.close(at_end);
        }
    }
}
