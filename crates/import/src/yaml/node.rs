//! Values with their lines.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use containerpilot_config::limits::SOURCE_BYTES;

use crate::error::ImportError;
use crate::files::{SourceLine, Text};

/// Nesting of lists and mappings, with aliases in place of what they refer to.
pub(super) const MAX_DEPTH: usize = 64;
/// Bytes of all texts and number of all nodes, with aliases in place of what they refer to.
pub(super) const MAX_SIZE: usize = 2 * SOURCE_BYTES;
/// Characters of a line that are shown.
pub(super) const SHOWN: usize = 160;

/// A file, for the places of its nodes.
#[derive(Debug)]
pub(super) struct Source {
    path: String,
    lines: Vec<String>,
}

impl Source {
    pub(super) fn new(text: &Text) -> Rc<Self> {
        let shown = |line: &str| {
            let line = line.trim();
            match line.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
                None => line.to_owned(),
            }
        };
        Rc::new(Self { path: text.path.clone(), lines: text.text.lines().map(shown).collect() })
    }

    fn place(&self, line: usize) -> SourceLine {
        let text = self.lines.get(line.saturating_sub(1)).cloned().unwrap_or_default();
        SourceLine { file: self.path.clone(), line, text }
    }

    pub(super) fn error(&self, line: usize, message: impl Into<String>) -> ImportError {
        ImportError::Invalid { file: self.path.clone(), line, message: message.into() }
    }
}

/// A value and where it is. A clone shares the value.
#[derive(Clone, Debug)]
pub struct YamlNode {
    pub(super) value: Rc<YamlValue>,
    pub(super) tag: Option<Rc<str>>,
    pub(super) source: Rc<Source>,
    pub(super) line: usize,
    pub(super) depth: usize,
    pub(super) size: usize,
}

#[derive(Debug)]
pub(super) enum YamlValue {
    Scalar(Kind, String),
    List(Vec<YamlNode>),
    Map(Map),
}

/// What YAML says about a scalar (the core schema, and octal numbers with a leading zero as in YAML 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Flag,
    /// A whole number, also `0x1f`, `0o644` and `0644`.
    Integer,
    /// A number with a fraction or an exponent.
    Float,
    /// Any other text, and all text in quotes.
    Text,
}

/// A mapping, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: Vec<YamlEntry>,
    index: BTreeMap<String, usize>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct YamlEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: YamlNode,
    pub(super) source: Rc<Source>,
    pub(super) line: usize,
}

impl YamlEntry {
    /// An entry that takes its place from a value.
    #[must_use]
    pub fn at(key: &str, value: YamlNode, place_of: &YamlNode) -> Self {
        let (source, line) = (Rc::clone(&place_of.source), place_of.line);
        Self { key: key.to_owned(), value, source, line }
    }

    /// The same key at the same line with another value.
    #[must_use]
    pub fn with(&self, value: YamlNode) -> Self {
        Self { value, ..self.clone() }
    }

    /// The number of the key's line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The line of the key.
    #[must_use]
    pub fn place(&self) -> SourceLine {
        self.source.place(self.line)
    }

    /// An error about this key.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> ImportError {
        self.source.error(self.line, message)
    }
}

impl Map {
    /// The entry with this key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&YamlEntry> {
        self.index.get(key).and_then(|index| self.entries.get(*index))
    }

    /// The value of this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[YamlEntry] {
        &self.entries
    }

    /// The entries whose keys are not among these.
    #[must_use]
    pub fn without(&self, keys: &BTreeSet<&str>) -> Self {
        let mut map = Self::default();
        let kept = self.entries.iter().filter(|entry| !keys.contains(entry.key.as_str()));
        kept.for_each(|entry| map.set(entry.clone()));
        map
    }

    /// Sets a key. An existing entry is replaced.
    pub fn set(&mut self, entry: YamlEntry) {
        match self.index.get(&entry.key).and_then(|index| self.entries.get_mut(*index)) {
            Some(old) => *old = entry,
            None => {
                self.index.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = &'a YamlEntry;
    type IntoIter = std::slice::Iter<'a, YamlEntry>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl YamlNode {
    /// The line where the value begins. For an alias it is the line of the value that it refers to.
    #[must_use]
    pub fn place(&self) -> SourceLine {
        self.source.place(self.line)
    }

    /// The line of a text that contains these words. If the text is folded or does not contain them, the line on which
    /// the value begins.
    #[must_use]
    pub fn place_of(&self, words: &str) -> SourceLine {
        let lines = self.text().map_or(0, |text| text.lines().count() + 1);
        let lines = self.line..self.line + lines;
        let found = lines.map(|line| self.source.place(line)).find(|place| place.text.contains(words));
        found.unwrap_or_else(|| self.place())
    }

    /// An error about this value.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> ImportError {
        self.source.error(self.line, message)
    }

    /// A tag of the file's own, such as `!reset`.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// A scalar as it is written, without its quotes. Nothing (null) is not a text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &*self.value {
            YamlValue::Scalar(kind, text) if *kind != Kind::Null => Some(text),
            _ => None,
        }
    }

    /// What YAML says about a scalar; `None` for a list or a mapping.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match &*self.value {
            YamlValue::Scalar(kind, _) => Some(*kind),
            YamlValue::List(_) | YamlValue::Map(_) => None,
        }
    }

    /// Whether it is nothing: an empty value, `~` or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Some(Kind::Null)
    }

    /// A flag: `true`, `false`, and the words of YAML 1.1 that most programs accept for one (`yes`, `no`, `on`, `off`).
    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        match self.text()? {
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
            _ => None,
        }
    }

    /// A whole number: decimal, `0x1f`, `0o644`, `0644` or `0b11`, with `_` between its digits. Also one in quotes.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        integer(self.text()?)
    }

    /// A list.
    #[must_use]
    pub fn list(&self) -> Option<&[YamlNode]> {
        match &*self.value {
            YamlValue::List(items) => Some(items),
            YamlValue::Scalar(..) | YamlValue::Map(_) => None,
        }
    }

    /// A mapping.
    #[must_use]
    pub fn map(&self) -> Option<&Map> {
        match &*self.value {
            YamlValue::Map(map) => Some(map),
            YamlValue::Scalar(..) | YamlValue::List(_) => None,
        }
    }

    /// The value of a key, if this is a mapping.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        self.map()?.get(key)
    }

    /// What this is, for an error message.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match &*self.value {
            YamlValue::Scalar(Kind::Null, _) => "nothing",
            YamlValue::Scalar(Kind::Flag, _) => "a flag",
            YamlValue::Scalar(Kind::Integer | Kind::Float, _) => "a number",
            YamlValue::Scalar(Kind::Text, _) => "a text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a mapping",
        }
    }

    /// The bytes of all texts and the number of all nodes in it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The same place and tag with other contents.
    #[must_use]
    pub fn with_map(&self, map: Map) -> Self {
        let size = map.entries.iter().map(|entry| entry.key.len() + entry.value.size).sum::<usize>() + 1;
        Self { value: Rc::new(YamlValue::Map(map)), size, ..self.clone() }
    }

    /// The same place with a text.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Self {
        Self { value: Rc::new(YamlValue::Scalar(Kind::Text, text.to_owned())), tag: None, ..self.clone() }
    }

    /// The same place with nothing.
    #[must_use]
    pub fn with_nothing(&self) -> Self {
        Self { value: Rc::new(YamlValue::Scalar(Kind::Null, String::new())), tag: None, ..self.clone() }
    }

    /// The same place and tag with other contents.
    #[must_use]
    pub fn with_list(&self, items: Vec<Self>) -> Self {
        let size = items.iter().map(|item| item.size).sum::<usize>() + 1;
        Self { value: Rc::new(YamlValue::List(items)), size, ..self.clone() }
    }
}

fn integer(text: &str) -> Option<i64> {
    let text = text.replace('_', "");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let with_radix = |prefix: &str, radix: u32| Some((digits.strip_prefix(prefix)?, radix));
    let (digits, radix) = with_radix("0x", 16)
        .or_else(|| with_radix("0o", 8))
        .or_else(|| with_radix("0b", 2))
        .or_else(|| with_radix("0", 8).filter(|(rest, _)| !rest.is_empty()))
        .unwrap_or((digits, 10));
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i64::from_str_radix(digits, radix).ok()?;
    Some(if negative { -number } else { number })
}

pub(super) fn kind_of(text: &str) -> Kind {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let begins_as_number = digits.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Kind::Flag,
        ".nan" | ".NaN" | ".NAN" => Kind::Float,
        _ if matches!(digits, ".inf" | ".Inf" | ".INF") => Kind::Float,
        _ if begins_as_number && integer(text).is_some() => Kind::Integer,
        _ if begins_as_number && text.parse::<f64>().is_ok() => Kind::Float,
        _ => Kind::Text,
    }
}
