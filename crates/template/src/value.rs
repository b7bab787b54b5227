//! The values of a template: the Go types that its functions can return.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use crate::error::FunctionError;
use crate::suggest;

/// A byte string that shares memory with the string it was cut from.
#[derive(Clone, Debug)]
pub(crate) struct TextValue {
    base: Rc<[u8]>,
    start: usize,
    end: usize,
}

impl TextValue {
    /// The part `start..end`, clamped to the string.
    pub(crate) fn cut(&self, start: usize, end: usize) -> Self {
        let end = self.start.saturating_add(end).min(self.end);
        Self { base: Rc::clone(&self.base), start: self.start.saturating_add(start).min(end), end }
    }
}

impl Deref for TextValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.base.get(self.start..self.end).unwrap_or_default()
    }
}

impl From<Vec<u8>> for TextValue {
    fn from(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self { base: bytes.into(), start: 0, end }
    }
}

impl From<&[u8]> for TextValue {
    fn from(bytes: &[u8]) -> Self {
        Self { base: bytes.into(), start: 0, end: bytes.len() }
    }
}

impl Borrow<[u8]> for TextValue {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for TextValue {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for TextValue {}

impl PartialOrd for TextValue {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TextValue {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

/// A Go slice: a window on shared elements. `slice` can widen it up to its capacity.
#[derive(Clone, Debug)]
pub(crate) struct List<T> {
    base: Rc<Vec<T>>,
    start: usize,
    length: usize,
    capacity: usize,
}

impl<T> List<T> {
    /// A list of `length` elements. The remaining elements of `base` are spare capacity.
    pub(crate) fn new(base: Vec<T>, length: usize) -> Self {
        let capacity = base.len();
        Self { base: Rc::new(base), start: 0, length: length.min(capacity), capacity }
    }

    pub(crate) fn items(&self) -> &[T] {
        self.base.get(self.start..self.start + self.length).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The window `from..to` with capacity up to `limit`; the caller has checked `from <= to <= limit <= capacity`.
    pub(crate) fn window(&self, from: usize, to: usize, limit: usize) -> Self {
        Self {
            base: Rc::clone(&self.base),
            start: self.start + from,
            length: to.saturating_sub(from),
            capacity: limit.saturating_sub(from),
        }
    }
}

/// An object with named fields, such as an instance of a service (D15).
#[derive(Debug)]
pub(crate) struct RecordValue {
    /// What it is, for messages.
    pub(crate) kind: &'static str,
    pub(crate) fields: Vec<(&'static str, TemplateValue)>,
}

impl RecordValue {
    pub(crate) fn field(&self, name: &[u8]) -> Option<&TemplateValue> {
        self.fields.iter().find(|(other, _)| other.as_bytes() == name).map(|(_, value)| value)
    }

    pub(crate) fn unknown(&self, name: &[u8]) -> FunctionError {
        let name = String::from_utf8_lossy(name);
        let names = || self.fields.iter().map(|(name, _)| *name);
        let help = match suggest::nearest(&name, names()) {
            Some(near) => format!("did you mean .{near}?"),
            None => format!(
                "its fields are {}; write $.{name} for an environment variable",
                names().collect::<Vec<_>>().join(", ")
            ),
        };
        FunctionError::new(format!("{} has no field `{name}`", self.kind)).help(help)
    }
}

/// Any value.
#[derive(Clone, Debug)]
pub(crate) enum TemplateValue {
    Nil,
    Bool(bool),
    Int(i64),
    /// One byte of a string: Go's `uint8`.
    Byte(u8),
    Float(f64),
    Complex(f64, f64),
    Text(TextValue),
    Ints(List<i64>),
    Texts(List<TextValue>),
    Record(Rc<RecordValue>),
    Records(List<Rc<RecordValue>>),
    /// The environment, or metadata of an instance.
    Map(Rc<BTreeMap<TextValue, TextValue>>),
}

impl TemplateValue {
    /// The name of the type in Go, as `%T` prints it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Text(_) => "string",
            Self::Ints(_) => "[]int",
            Self::Texts(_) => "[]string",
            Self::Record(_) => "template.Object",
            Self::Records(_) => "[]template.Object",
            Self::Map(_) => "template.Environment",
        }
    }

    /// The type of the value, for messages.
    pub(crate) fn described(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Byte(_) => "a byte",
            Self::Float(_) => "a float",
            Self::Complex(..) => "a complex number",
            Self::Text(_) => "a string",
            Self::Ints(_) => "a list of integers",
            Self::Texts(_) => "a list of strings",
            Self::Record(record) => record.kind,
            Self::Records(_) => "a list of objects",
            Self::Map(_) => "the environment",
        }
    }

    /// Returns true unless the value is the zero or empty value of its type, as `if` does.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Ints(list) => list.len() > 0,
            Self::Texts(list) => list.len() > 0,
            Self::Record(_) => true,
            Self::Records(list) => list.len() > 0,
            Self::Map(map) => !map.is_empty(),
        }
    }
}
