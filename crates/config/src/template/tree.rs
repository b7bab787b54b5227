//! What the parser hands to the executor.

use super::scope::Name;
use super::value::Value;
use crate::span::Span;
use std::collections::BTreeMap;

/// A whole text: the templates it defines, the text itself being the one with the empty name.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) templates: BTreeMap<Vec<u8>, Vec<Node>>,
    /// The names of the variables, for messages.
    pub(super) variables: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Node {
    /// Literal text, copied from the source.
    Text(Span),
    /// `{{ pipeline }}`, with the range of the whole action.
    Action(Pipe, Span),
    /// `if`, its `else if`s in order, and `else`.
    If(Vec<(Pipe, Vec<Node>)>, Vec<Node>),
    Range(Box<Block>),
    With(Box<Block>),
    /// `template NAME PIPELINE`, also what is left of a `block` at its place.
    Template {
        name: Vec<u8>,
        name_span: Span,
        pipe: Option<Pipe>,
    },
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) pipe: Pipe,
    pub(super) body: Vec<Node>,
    pub(super) otherwise: Vec<Node>,
}

/// `$a, $b := command | command …`
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub(super) declared: Vec<(Name, Span)>,
    /// `=` and not `:=`.
    pub(super) assigns: bool,
    pub(super) commands: Vec<Command>,
    pub(super) span: Span,
}

/// An operand and its arguments.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) operand: Operand,
    pub(super) arguments: Vec<Operand>,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) struct Operand {
    pub(super) kind: ValueType,
    pub(super) span: Span,
}

/// A name after a dot.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Vec<u8>,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum ValueType {
    Dot,
    Nil,
    /// A constant.
    Constant(Value),
    /// A whole number that is too large; an error only when it is used.
    Overflow,
    Function(super::funcs::Function),
    Fields(Vec<Field>),
    Variable(Name, Vec<Field>),
    Pipe(Box<Pipe>),
    Chain(Box<Operand>, Vec<Field>),
}
