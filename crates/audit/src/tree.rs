//! The values of a deployment file in YAML, JSON or HCL, with their lines.

use containerpilot_import::yaml;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The line of its key; of an item of a list, its own. From 1.
    pub line: usize,
    /// The labels of a block of HCL.
    pub labels: Vec<String>,
    /// The value itself.
    pub value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A text or flag as it is written.
    Text(String),
    /// A number as it is written, without quotes.
    Number(String),
    /// An expression whose value is not in the file.
    Unknown,
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the order of the file. A key may occur several times.
    Map(Vec<(String, Node)>),
}

/// A value of the model and the line where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The line, from 1.
    pub line: usize,
    /// The value.
    pub value: T,
}

impl Node {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The values of a key that may occur several times, such as a block.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Self> {
        self.entries().iter().filter(move |(known, _)| known == key).map(|(_, value)| value)
    }

    /// The value at the end of several keys.
    #[must_use]
    pub fn path(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The keys and values of a mapping.
    #[must_use]
    pub fn entries(&self) -> &[(String, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// A text, number or flag as it is written.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text),
            _ => None,
        }
    }

    /// A text whose value is in the file: not one with `${…}`, which another program replaces.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        self.text().filter(|text| !text.contains("${"))
    }

    /// Returns true for a number without quotes.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self.value, Value::Number(_))
    }

    /// A whole number.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.known()?.parse().ok()
    }

    /// Returns true for a flag that is set.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self.text(), Some("true" | "True" | "TRUE" | "yes" | "on"))
    }

    /// A list of texts.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Self::text).map(str::to_owned).collect()
    }

    /// A value with this line.
    #[must_use]
    pub fn at<T>(&self, value: T) -> At<T> {
        At { line: self.line, value }
    }
}

/// The tree of a YAML document, or of a JSON document, which is YAML too.
#[must_use]
pub fn from_yaml(node: &yaml::YamlNode) -> Node {
    convert(node, node.place().line)
}

fn convert(node: &yaml::YamlNode, line: usize) -> Node {
    let value = if let Some(map) = node.map() {
        let entries = map.entries().iter();
        Value::Map(entries.map(|entry| (entry.key.clone(), convert(&entry.value, entry.line()))).collect())
    } else if let Some(items) = node.list() {
        Value::List(items.iter().map(from_yaml).collect())
    } else {
        let is_number = matches!(node.kind(), Some(yaml::Kind::Integer | yaml::Kind::Float));
        match node.text().map(str::to_owned) {
            Some(text) if is_number => Value::Number(text),
            Some(text) => Value::Text(text),
            None => Value::Null,
        }
    };
    Node { line, labels: Vec::new(), value }
}
