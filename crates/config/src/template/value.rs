//! The values a template computes with: the few Go types that the functions of a configuration can make.

use std::borrow::Borrow;
use std::ops::Deref;
use std::rc::Rc;

use std::collections::BTreeMap;

/// A byte string that shares its memory with the text it was cut from.
#[derive(Clone, Debug)]
pub(super) struct Text {
    base: Rc<[u8]>,
    start: usize,
    end: usize,
}

impl Text {
    /// The part `start..end`, which must lie within; what lies outside is cut off.
    pub(super) fn cut(&self, start: usize, end: usize) -> Self {
        let end = self.start.saturating_add(end).min(self.end);
        Self { base: Rc::clone(&self.base), start: self.start.saturating_add(start).min(end), end }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.base.get(self.start..self.end).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self { base: bytes.into(), start: 0, end }
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self { base: bytes.into(), start: 0, end: bytes.len() }
    }
}

impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

/// A Go slice: a window on shared elements that can be widened again up to its capacity, as `slice` does.
#[derive(Clone, Debug)]
pub(super) struct List<T> {
    base: Rc<Vec<T>>,
    start: usize,
    length: usize,
    capacity: usize,
}

impl<T> List<T> {
    /// A list of `length` elements; what follows them in `base` is spare capacity.
    pub(super) fn new(base: Vec<T>, length: usize) -> Self {
        let capacity = base.len();
        Self { base: Rc::new(base), start: 0, length: length.min(capacity), capacity }
    }

    pub(super) fn items(&self) -> &[T] {
        self.base.get(self.start..self.start + self.length).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The window `from..to` with capacity up to `limit`; the caller has checked `from <= to <= limit <= capacity`.
    pub(super) fn window(&self, from: usize, to: usize, limit: usize) -> Self {
        Self {
            base: Rc::clone(&self.base),
            start: self.start + from,
            length: to.saturating_sub(from),
            capacity: limit.saturating_sub(from),
        }
    }
}

/// Any value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    /// One byte of a text: Go's `uint8`.
    Byte(u8),
    Float(f64),
    Complex(f64, f64),
    Text(Text),
    Ints(List<i64>),
    Texts(List<Text>),
    /// The environment.
    Map(Rc<BTreeMap<Text, Text>>),
}

impl Value {
    /// The name of the type in Go, as `%T` prints it.
    pub(super) fn type_name(&self) -> &'static str {
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
            Self::Map(_) => "template.Environment",
        }
    }

    /// What the value is, in words for a message.
    pub(super) fn described(&self) -> &'static str {
        match self {
            Self::Nil => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a whole number",
            Self::Byte(_) => "one byte",
            Self::Float(_) => "a number with a fraction",
            Self::Complex(..) => "a complex number",
            Self::Text(_) => "text",
            Self::Ints(_) => "a list of numbers",
            Self::Texts(_) => "a list of texts",
            Self::Map(_) => "the whole environment",
        }
    }

    /// Whether `if` takes it as true: it is not the zero or empty value of its type.
    pub(super) fn truth(&self) -> bool {
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
            Self::Map(map) => !map.is_empty(),
        }
    }
}
