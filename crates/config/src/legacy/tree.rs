//! A version 3 file in the making: the values of a version 2 file under the keys of version 3.
//!
//! One tree serves both ends. As members of an object it is read by the table of fields like any file, and so becomes
//! the plan; as text it is what `migrate` prints. Neither can say what the other does not.

use crate::json5::{Member, Node, Number, Value};
use crate::span::Span;

/// A value of the new file.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A value that the old file holds too, or one that follows from it.
    Leaf(Leaf),
    /// A list.
    List(Span, Vec<Piece>),
    /// An object.
    Object(Span, Vec<Entry>),
}

/// A key of the new file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: &'static str,
    /// Where what it stands for is written in the old file.
    pub(crate) place: Span,
    /// The value.
    pub(crate) value: Piece,
    /// A line for whoever reads the new file.
    pub(crate) note: Option<String>,
}

/// A value and how it is written.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// The value.
    pub(crate) node: Node,
    /// How it is written.
    pub(crate) written: Written,
}

/// How a value is written in the new file.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// As the value is.
    Plainly,
    /// As the old file writes it there, actions of the template included; a text after these letters.
    AsThere(&'static str),
    /// In so many letters, quotes included.
    Literally(String),
}

impl Piece {
    /// A value as the old file has it.
    pub(crate) fn of(node: &Node) -> Self {
        Self::Leaf(Leaf { node: node.clone(), written: Written::AsThere("") })
    }

    /// A text that begins with these letters and goes on as the old file has it.
    pub(crate) fn after(letters: &'static str, node: &Node, text: &str) -> Self {
        let value = Value::String(format!("{letters}{text}"));
        let node = Node { value, span: node.span };
        Self::Leaf(Leaf { node, written: Written::AsThere(letters) })
    }

    /// A text that the old file does not have.
    pub(crate) fn text(text: impl Into<String>, span: Span) -> Self {
        let node = Node { value: Value::String(text.into()), span };
        Self::Leaf(Leaf { node, written: Written::Plainly })
    }

    /// A text with the letters it is written with.
    pub(crate) fn literal(text: impl Into<String>, letters: String, span: Span) -> Self {
        let node = Node { value: Value::String(text.into()), span };
        Self::Leaf(Leaf { node, written: Written::Literally(letters) })
    }

    /// `true`.
    pub(crate) fn yes(span: Span) -> Self {
        let node = Node { value: Value::Bool(true), span };
        Self::Leaf(Leaf { node, written: Written::Plainly })
    }

    /// A time: whole seconds as a number, anything else as a duration.
    pub(crate) fn time(nanoseconds: i64, span: Span) -> Self {
        let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
        if rest != 0 {
            return Self::text(crate::duration::format(nanoseconds), span);
        }
        #[expect(clippy::cast_precision_loss, reason = "a stop time of 285 million years is no more exact")]
        let number = Number { value: seconds as f64, text: seconds.to_string().into() };
        Self::Leaf(Leaf { node: Node { value: Value::Number(number), span }, written: Written::Plainly })
    }

    /// The value, as the table of fields reads it.
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

impl Entry {
    /// A key with its value.
    pub(crate) fn new(key: &'static str, place: Span, value: Piece) -> Self {
        Self { key, place, value, note: None }
    }

    /// The same, with a line for whoever reads it.
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The entries as members of an object.
pub(crate) fn members(entries: &[Entry]) -> Vec<Member> {
    entries
        .iter()
        .map(|entry| Member { key: entry.key.to_owned(), key_span: entry.place, value: entry.value.node() })
        .collect()
}
