//! The parsed template.

use std::collections::BTreeMap;

use crate::functions::Function;
use crate::scope::VariableName;
use crate::span::Span;
use crate::value::TemplateValue;

/// The templates of a source by name. The source itself has the empty name.
#[derive(Debug, Default)]
pub(crate) struct TemplateSet {
    pub(crate) templates: BTreeMap<Vec<u8>, Vec<TemplateNode>>,
    /// The names of the variables, for messages.
    pub(crate) variables: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum TemplateNode {
    /// Literal text, copied from the source.
    Text(Span),
    /// `{{ pipeline }}`, with the range of the whole action.
    Action(Pipeline, Span),
    /// `if`, its `else if`s in order, and `else`.
    If(Vec<(Pipeline, Vec<TemplateNode>)>, Vec<TemplateNode>),
    Range(Box<Block>),
    With(Box<Block>),
    /// `template NAME PIPELINE`, and the call at the position of a `block`.
    Template {
        name: Vec<u8>,
        name_span: Span,
        pipe: Option<Pipeline>,
    },
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) pipe: Pipeline,
    pub(crate) body: Vec<TemplateNode>,
    pub(crate) otherwise: Vec<TemplateNode>,
}

/// `$a, $b := command | command …`
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    pub(crate) declared: Vec<(VariableName, Span)>,
    /// `=` and not `:=`.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<CommandNode>,
    pub(crate) span: Span,
}

/// An operand and its arguments.
#[derive(Debug)]
pub(crate) struct CommandNode {
    pub(crate) operand: Operand,
    pub(crate) arguments: Vec<Operand>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) kind: OperandKind,
    pub(crate) span: Span,
}

/// A name after a dot.
#[derive(Debug)]
pub(crate) struct FieldNode {
    pub(crate) name: Vec<u8>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum OperandKind {
    Dot,
    Nil,
    Constant(TemplateValue),
    /// An integer that is too large, which is an error only if it is evaluated.
    Overflow,
    Function(Function),
    Fields(Vec<FieldNode>),
    Variable(VariableName, Vec<FieldNode>),
    Pipe(Box<Pipeline>),
    Chain(Box<Operand>, Vec<FieldNode>),
}
