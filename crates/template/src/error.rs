//! Errors of a template: those that a user sees, and those of a single function call.

use crate::limits;
use crate::span::Span;

/// The stage in which an error was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateStage {
    /// The source is not a valid template.
    Parse,
    /// The template cannot be rendered with this environment.
    Exec,
}

/// An error in a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// The stage in which it was found.
    pub stage: TemplateStage,
    /// The part of the source in error.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl TemplateError {
    /// Adds it to the errors of a source, which are in the order of the source and not more than are shown.
    pub(crate) fn add_to(self, errors: &mut Vec<Self>) {
        let place = errors.partition_point(|other| other.span <= self.span);
        errors.insert(place, self);
        errors.truncate(limits::ERRORS);
    }
}

/// Why a function, or another part of a template, has no value.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct FunctionError {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The argument in error, counted from 0.
    pub(crate) argument: Option<usize>,
    /// Rendering stops here.
    pub(crate) fatal: bool,
}

impl FunctionError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, argument: None, fatal: false }
    }

    pub(crate) fn fatal(message: impl Into<String>) -> Self {
        Self { fatal: true, ..Self::new(message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn at(mut self, argument: usize) -> Self {
        self.argument = Some(argument);
        self
    }
}
