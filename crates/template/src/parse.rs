//! Splits the source into text and actions, and builds the tree.
//!
//! Open blocks are kept in a list, not on the call stack. After an error the parser can skip to the `}}` of the action with
//! the blocks around it intact, and deep nesting needs only memory.

mod blocks;
mod lexer;
mod literal;
mod messages;
mod number;
mod pipeline;
mod words;

use std::collections::{BTreeMap, HashMap};

use memchr::memmem;

use crate::Dialect;
use crate::error::{TemplateError, TemplateStage};
use crate::limits;
use crate::span::Span;
use crate::tree::{Pipeline, TemplateNode, TemplateSet};
use lexer::ActionKeyword;
use words::{ActionWords, ParseError, SourceState};

/// Parses the source, or returns all errors in it.
pub(crate) fn parse(source: &[u8], dialect: Dialect) -> Result<TemplateSet, Vec<TemplateError>> {
    let mut parser = Parser {
        source,
        names: SourceState::new(dialect),
        errors: Vec::new(),
        open: Vec::new(),
        list: Vec::new(),
        templates: Vec::new(),
        defined: HashMap::new(),
        ranges: 0,
        stray_else: false,
    };
    parser.text_and_actions();
    let main = std::mem::take(&mut parser.list);
    parser.define(Vec::new(), Span::at(0), main);
    if parser.errors.is_empty() {
        let mut templates = BTreeMap::new();
        templates.extend(parser.templates);
        Ok(TemplateSet { templates, variables: parser.names.variables })
    } else {
        Err(parser.errors)
    }
}

/// A block whose `{{ end }}` has not been read yet.
struct OpenBlock {
    keyword: ActionKeyword,
    /// The opening action.
    span: Span,
    /// The nodes before it in the enclosing block.
    before: Vec<TemplateNode>,
    /// The pipeline of the current branch.
    pipe: Pipeline,
    /// The complete branches.
    branches: Vec<(Pipeline, Vec<TemplateNode>)>,
    /// The `{{ else }}`, if it has been read.
    otherwise: Option<Span>,
    /// The first variable of the block.
    mark: usize,
    /// For `define` and `block`: the state of the enclosing template.
    outer: Option<Outer>,
}

/// The state of a template while a `define` or `block` inside it is parsed.
struct Outer {
    name: Option<(Vec<u8>, Span)>,
    base: usize,
    ranges: usize,
}

struct Parser<'s> {
    source: &'s [u8],
    names: SourceState,
    errors: Vec<TemplateError>,
    open: Vec<OpenBlock>,
    list: Vec<TemplateNode>,
    /// The templates in the order of their definitions.
    templates: Vec<(Vec<u8>, Vec<TemplateNode>)>,
    /// The index of each template in `templates`.
    defined: HashMap<Vec<u8>, u32>,
    /// The number of open `range` blocks in this template.
    ranges: usize,
    /// An `else` without a block was reported. Its `end` is not reported again.
    stray_else: bool,
}

impl<'s> Parser<'s> {
    fn report(&mut self, error: ParseError) {
        let ParseError { span, message, help } = error;
        TemplateError { stage: TemplateStage::Parse, span, message, help }.add_to(&mut self.errors);
    }

    fn is_full(&self) -> bool {
        self.errors.len() >= limits::ERRORS
    }

    fn from(&self, position: usize) -> &'s [u8] {
        self.source.get(position..).unwrap_or_default()
    }

    fn text_and_actions(&mut self) {
        let finder = memmem::Finder::new(b"{{");
        let mut position = 0;
        while !self.is_full() {
            let Some(length) = finder.find(self.from(position)) else {
                self.text(position, self.source.len());
                return self.finish();
            };
            let open = position + length;
            let inside = open + 2;
            let trims = lexer::trims_left(self.from(inside));
            let mut end = open;
            if trims {
                let before = self.source.get(position..open).unwrap_or_default();
                end = before
                    .iter()
                    .rposition(|&byte| !lexer::is_space(byte))
                    .map_or(position, |at| position + at + 1);
            }
            self.text(position, end);
            let inside = if trims { inside + 2 } else { inside };
            let next = if self.from(inside).starts_with(b"/*") {
                self.comment(open, inside)
            } else {
                self.action(open, inside)
            };
            match next {
                Some(next) => position = next,
                None => return,
            }
        }
    }

    fn text(&mut self, start: usize, end: usize) {
        if start < end {
            self.list.push(TemplateNode::Text(Span::new(start, end)));
        }
    }

    /// The position after an action that ends at `end`, and after the space that it trims.
    fn after(&self, end: usize, trims: bool) -> usize {
        if !trims {
            return end;
        }
        let rest = self.from(end);
        end + rest.iter().position(|&byte| !lexer::is_space(byte)).unwrap_or(rest.len())
    }

    fn comment(&mut self, open: usize, inside: usize) -> Option<usize> {
        let Some(length) = memmem::find(self.from(inside + 2), b"*/") else {
            self.report(ParseError::new(Span::new(open, inside + 2), "unclosed comment").help("add `*/}}`"));
            return None;
        };
        let end = inside + 2 + length + 2;
        match lexer::closing(self.from(end)) {
            Some((width, trims)) => Some(self.after(end + width, trims)),
            None => {
                self.report(
                    ParseError::new(Span::new(inside, end), "a comment must be an action of its own")
                        .help("write `}}` or ` -}}` directly after `*/`, and the rest in another {{ … }}"),
                );
                self.resume(open, end)
            }
        }
    }

    /// The position to continue at after an error at `position` in the action at `open`.
    fn resume(&self, open: usize, position: usize) -> Option<usize> {
        let position = position.max(open + 2);
        let close = memmem::find(self.from(position), b"}}").map(|length| position + length);
        match (close, self.next_action(position)) {
            (Some(close), Some(next)) if next < close => Some(next),
            (None, Some(next)) => Some(next),
            (Some(close), _) => {
                let end = close + 2;
                let before = self.source.get(..close).unwrap_or_default();
                Some(self.after(end, before.ends_with(b" -")))
            }
            (None, None) => None,
        }
    }

    /// The start of the next action.
    fn next_action(&self, position: usize) -> Option<usize> {
        memmem::find(self.from(position), b"{{").map(|length| position + length)
    }

    /// Returns true if no `}}` follows `position` before the next action or the end of the source.
    fn is_unclosed(&self, position: usize) -> bool {
        let close = memmem::find(self.from(position), b"}}").map(|length| position + length);
        match (close, self.next_action(position)) {
            (Some(close), Some(next)) => next < close,
            (close, _) => close.is_none(),
        }
    }

    fn action(&mut self, open: usize, inside: usize) -> Option<usize> {
        let mut words = ActionWords::new(self.source, inside);
        let result = self.statement(&mut words, open);
        if let Err(error) = result {
            for target in std::mem::take(&mut words.targets) {
                // The declaration is invalid, but uses of its variable are not further errors.
                self.names.declare(self.source.get(target.span.range()).unwrap_or_default());
            }
            let at = (error.span.start as usize).max(inside);
            let last = words.last;
            if words.lexer.closed.is_none() && pipeline::suggests_unclosed(last) && self.is_unclosed(at) {
                self.report(messages::unclosed_at(self.source, open));
            } else {
                self.report(error);
            }
            if self.open.len() > limits::DEPTH {
                // Continuing would build a tree too deep to drop, and repeat the same error.
                self.open.clear();
                return None;
            }
            if let (Some(trims), position) = (words.lexer.closed, words.lexer.position()) {
                return Some(self.after(position, trims));
            }
            let next = self.resume(open, at);
            if next.is_none() {
                // The rest of the source is lost, so that nothing is known about the open blocks.
                self.open.clear();
            }
            return next;
        }
        Some(self.after(words.lexer.position(), words.lexer.closed == Some(true)))
    }

    /// Reports the blocks that are still open at the end of the source.
    fn finish(&mut self) {
        for block in std::mem::take(&mut self.open).into_iter().rev() {
            if self.is_full() {
                return;
            }
            let word = block.keyword.word();
            self.report(
                ParseError::new(block.span, format!("`{word}` has no {{{{ end }}}}"))
                    .help(format!("add {{{{ end }}}} where the `{word}` block ends")),
            );
        }
    }
}
