//! The tokens of one action with look-ahead, the variables in scope, and parse errors.

use std::collections::HashMap;

use crate::Dialect;
use crate::limits;
use crate::parse::lexer::{ActionLexer, ActionToken, ActionTokenKind};
use crate::scope::{DOLLAR, Scope, VariableName};
use crate::span::Span;

/// The position of a pipeline, which determines its declarations and messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PipelinePosition {
    /// The keyword or description for messages.
    pub(crate) word: &'static str,
    pub(crate) range: bool,
}

/// An error in one action.
#[derive(Debug)]
pub(crate) struct ParseError {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl ParseError {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// State shared by all actions of a source: variables, and the number of nodes.
#[derive(Debug)]
pub(crate) struct SourceState {
    pub(crate) dialect: Dialect,
    numbers: HashMap<Vec<u8>, VariableName>,
    pub(crate) variables: Vec<String>,
    /// The variables in scope.
    pub(crate) scope: Scope<()>,
    /// The number of operands and blocks so far.
    pub(crate) nodes: usize,
}

impl SourceState {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let mut names =
            Self { dialect, numbers: HashMap::new(), variables: Vec::new(), scope: Scope::new(), nodes: 0 };
        let dollar = names.number(b"$");
        debug_assert_eq!(dollar, DOLLAR);
        names.scope.push(DOLLAR, ());
        names
    }

    pub(crate) fn number(&mut self, name: &[u8]) -> VariableName {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let next = VariableName::try_from(self.variables.len()).unwrap_or(VariableName::MAX);
        self.variables.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.to_vec(), next);
        next
    }

    /// Declares a variable.
    pub(crate) fn declare(&mut self, name: &[u8]) {
        let name = self.number(name);
        self.scope.push(name, ());
    }

    /// Counts a node against the limit.
    pub(crate) fn count(&mut self, span: Span) -> Result<(), ParseError> {
        self.nodes += 1;
        if self.nodes > limits::NODES {
            return Err(ParseError::new(span, format!("the template has more than {} nodes", limits::NODES))
                .help("split the configuration, or write repeated parts with `range`"));
        }
        Ok(())
    }
}

/// The tokens of one action with look-ahead.
#[derive(Debug)]
pub(crate) struct ActionWords<'s> {
    pub(crate) lexer: ActionLexer<'s>,
    source: &'s [u8],
    /// The tokens read ahead, the next one last.
    ahead: Vec<ActionToken>,
    /// The variables before the first `:=` or `=`, for recovery after an error.
    pub(crate) targets: Vec<ActionToken>,
    /// The last token read, for messages.
    pub(crate) last: Option<ActionToken>,
}

impl<'s> ActionWords<'s> {
    pub(crate) fn new(source: &'s [u8], position: usize) -> Self {
        let lexer = ActionLexer::new(source, position);
        Self { lexer, source, ahead: Vec::new(), targets: Vec::new(), last: None }
    }

    pub(crate) fn text(&self, span: Span) -> &'s [u8] {
        self.source.get(span.range()).unwrap_or_default()
    }

    /// The source from `from` on, cut after 200 bytes.
    pub(crate) fn tail(&self, from: usize) -> &'s [u8] {
        let tail = self.source.get(from..).unwrap_or_default();
        tail.get(..200).unwrap_or(tail)
    }

    pub(crate) fn shown(&self, span: Span) -> String {
        String::from_utf8_lossy(self.text(span)).into_owned()
    }

    pub(crate) fn next(&mut self) -> ActionToken {
        let token = self.ahead.pop().unwrap_or_else(|| self.lexer.next());
        self.last = Some(token);
        token
    }

    pub(crate) fn back(&mut self, token: ActionToken) {
        self.ahead.push(token);
    }

    pub(crate) fn peek(&mut self) -> ActionToken {
        let token = self.ahead.pop().unwrap_or_else(|| self.lexer.next());
        self.ahead.push(token);
        token
    }

    pub(crate) fn next_word(&mut self) -> ActionToken {
        loop {
            let token = self.next();
            if token.kind != ActionTokenKind::Space {
                return token;
            }
        }
    }

    pub(crate) fn peek_word(&mut self) -> ActionToken {
        let token = self.next_word();
        self.back(token);
        token
    }
}
