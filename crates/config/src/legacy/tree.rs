//! A translated file: the values of a version 2 file under the keys of version 3.
//!
//! The same tree is decoded to the plan and printed by `migrate`, so that both agree.

use crate::json5::{Member, Node, Value};
use crate::span::Span;

/// A value of the translated file.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A value of the old file, or one that is derived from it.
    Leaf(Leaf),
    /// A list.
    List(Span, Vec<Piece>),
    /// An object.
    Object(Span, Vec<TreeEntry>),
}

/// A key of the translated file.
#[derive(Clone, Debug)]
pub(crate) struct TreeEntry {
    /// The key.
    pub(crate) key: &'static str,
    /// The range of the original key in the old file.
    pub(crate) place: Span,
    /// The value.
    pub(crate) value: Piece,
    /// A comment in the new file.
    pub(crate) note: Option<String>,
}

/// A value and its form in the new file.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// The value.
    pub(crate) node: Node,
    /// Its form.
    pub(crate) form: ValueForm,
}

/// The form of a value in the new file.
#[derive(Clone, Debug)]
pub(crate) enum ValueForm {
    /// The value.
    Value,
    /// The source of the old file, with template actions; a string gets this prefix.
    Source(&'static str),
    /// This literal.
    Literal(String),
}

impl Piece {
    /// A value of the old file.
    pub(crate) fn of(node: &Node) -> Self {
        Self::Leaf(Leaf { node: node.clone(), form: ValueForm::Source("") })
    }

    /// A string of the old file with a prefix.
    pub(crate) fn prefixed(prefix: &'static str, node: &Node, text: &str) -> Self {
        let value = Value::String(format!("{prefix}{text}"));
        let node = Node { value, span: node.span };
        Self::Leaf(Leaf { node, form: ValueForm::Source(prefix) })
    }

    /// A string that is not in the old file.
    pub(crate) fn text(text: impl Into<String>, span: Span) -> Self {
        let node = Node { value: Value::String(text.into()), span };
        Self::Leaf(Leaf { node, form: ValueForm::Value })
    }

    /// A string with its literal.
    pub(crate) fn literal(text: impl Into<String>, literal: String, span: Span) -> Self {
        let node = Node { value: Value::String(text.into()), span };
        Self::Leaf(Leaf { node, form: ValueForm::Literal(literal) })
    }

    /// `true`.
    pub(crate) fn yes(span: Span) -> Self {
        let node = Node { value: Value::Bool(true), span };
        Self::Leaf(Leaf { node, form: ValueForm::Value })
    }

    /// The value as a JSON5 node.
    pub(crate) fn node(&self) -> Node {
        match self {
            Self::Leaf(leaf) => leaf.node.clone(),
            Self::List(span, items) => {
                Node { value: Value::List(items.iter().map(Self::node).collect()), span: *span }
            }
            Self::Object(span, entries) => Node { value: Value::Object(members(entries)), span: *span },
        }
    }
}

impl TreeEntry {
    /// Creates an entry.
    pub(crate) fn new(key: &'static str, place: Span, value: Piece) -> Self {
        Self { key, place, value, note: None }
    }

    /// Adds a comment.
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The entries as members of an object.
pub(crate) fn members(entries: &[TreeEntry]) -> Vec<Member> {
    entries
        .iter()
        .map(|entry| Member { key: entry.key.to_owned(), key_span: entry.place, value: entry.value.node() })
        .collect()
}
