//! The new file: its keys, each with the line of the original it comes from, and how it is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use containerpilot_config::json5::write::{Layout, Row, comment, escaped, quoted};

use crate::durations;
use crate::files::SourceLine;

/// A converted configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The new file.
    pub text: String,
    /// What has no exact equivalent, one line each. The new file lists it too.
    pub inexact: Vec<String>,
}

/// A value of the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text, in which nothing is a template action.
    Text(String),
    /// A text with template actions.
    Template(Vec<Part>),
    /// A number as it is written.
    Number(String),
    /// True or false.
    Flag(bool),
    /// Null: the built-in default in place of that of `defaults`.
    Null,
    /// A list.
    List(Vec<Value>),
    /// An object.
    Object(Vec<Field>),
    /// A value with further comments, which are printed above its key, or above the item of a list.
    Commented(Vec<String>, Box<Value>),
}

impl Value {
    /// The value with comments above it.
    #[must_use]
    pub fn commented(self, comments: Vec<String>) -> Self {
        if comments.is_empty() { self } else { Self::Commented(comments, Box::new(self)) }
    }
}

/// A part of a text with template actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text that stays as it is.
    Literal(String),
    /// What is between `{{` and `}}`.
    Action(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        Self::Text(durations::written(duration))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The line it comes from, which is printed above it.
    pub from: Option<SourceLine>,
    /// What a reader has to know about it, which is printed above it, too.
    pub note: Option<String>,
}

impl Field {
    /// A field without a line of the original.
    #[must_use]
    pub fn new(key: &str, value: impl Into<Value>) -> Self {
        Self { key: key.to_owned(), value: value.into(), from: None, note: None }
    }
}

/// Fields that are set one after the other.
pub trait Fields {
    /// Sets a key. If it has a value already, the new one replaces it.
    fn set(&mut self, key: &str, value: impl Into<Value>, from: Option<&SourceLine>);
    /// The same for a value that comes from several lines.
    fn set_from(&mut self, key: &str, value: impl Into<Value>, from: &[SourceLine]);
    /// The value of a key, without its comments.
    fn get(&self, key: &str) -> Option<&Value>;
    /// Adds what a reader has to know about a key. Does nothing if the key has no value.
    fn note(&mut self, key: &str, note: impl Into<String>);
}

impl Fields for Vec<Field> {
    fn set(&mut self, key: &str, value: impl Into<Value>, from: Option<&SourceLine>) {
        let field = Field { from: from.cloned(), ..Field::new(key, value) };
        match self.iter_mut().find(|field| field.key == key) {
            Some(old) => *old = field,
            None => self.push(field),
        }
    }

    fn set_from(&mut self, key: &str, value: impl Into<Value>, from: &[SourceLine]) {
        let mut seen = BTreeSet::new();
        let lines: Vec<&SourceLine> =
            from.iter().filter(|place| seen.insert((place.file.as_str(), place.line))).collect();
        let (first, more) =
            lines.split_first().map_or((None, [].as_slice()), |(first, more)| (Some(*first), more));
        self.set(key, value.into().commented(more.iter().map(ToString::to_string).collect()), first);
    }

    fn get(&self, key: &str) -> Option<&Value> {
        let field = self.iter().find(|field| field.key == key)?;
        Some(match &field.value {
            Value::Commented(_, inner) => inner,
            value => value,
        })
    }

    fn note(&mut self, key: &str, note: impl Into<String>) {
        if let Some(field) = self.iter_mut().find(|field| field.key == key) {
            field.note = Some(note.into());
        }
    }
}

/// A job of the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name, which no other job has.
    pub name: String,
    /// The line that defines it.
    pub from: Option<SourceLine>,
    /// Its keys except `name`.
    pub fields: Vec<Field>,
}

/// The new file.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The keys of the top level, except `jobs`.
    pub top: Vec<Field>,
    /// The jobs.
    pub jobs: Vec<Job>,
    inexact: Vec<(SourceLine, String)>,
    not_needed: Vec<(SourceLine, String)>,
    remarks: Vec<String>,
    names: BTreeSet<String>,
    next_numbers: BTreeMap<String, usize>,
}

impl Document {
    /// A name for a job that is valid and that this function has not returned before: similar to `wanted`.
    #[must_use]
    pub fn free_name(&mut self, wanted: &str) -> String {
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = wanted.chars().map(|c| if valid(c) { c } else { '-' }).collect();
        let name = match name.trim_matches('-') {
            "" => "job".to_owned(),
            name => name.to_owned(),
        };
        let mut free = name.clone();
        while !self.names.insert(free.clone()) {
            let number = self.next_numbers.entry(name.clone()).or_insert(1);
            *number += 1;
            free = format!("{name}-{number}");
        }
        free
    }

    /// Says at the top of the file, once, how the new configuration differs from the original.
    pub fn remark(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// Lists something of the original that needs no equivalent, and why. Unlike what has no exact equivalent, it changes nothing.
    pub fn not_needed(&mut self, place: &SourceLine, why: impl Into<String>) {
        self.not_needed.push((place.clone(), why.into()));
    }

    /// Lists something of the original that has no exact equivalent: what differs, and what to do.
    pub fn inexact(&mut self, place: &SourceLine, why: impl Into<String>) {
        self.inexact.push((place.clone(), why.into()));
    }

    /// The lines of the original that the file mentions, as they are printed.
    #[must_use]
    pub fn mentioned(&self) -> BTreeSet<String> {
        let mut lines: BTreeSet<String> =
            self.inexact.iter().chain(&self.not_needed).map(|(place, _)| place.to_string()).collect();
        for job in &self.jobs {
            lines.extend(job.from.iter().map(ToString::to_string));
            job.fields.iter().for_each(|field| mentioned(field, &mut lines));
        }
        self.top.iter().for_each(|field| mentioned(field, &mut lines));
        lines
    }

    /// Sorts what has no exact equivalent, and what needs none, by the lines of the original.
    pub fn sort_by_line(&mut self) {
        let mut files: BTreeMap<String, usize> = BTreeMap::new();
        for list in [&mut self.inexact, &mut self.not_needed] {
            for (place, _) in list.iter() {
                let next = files.len();
                files.entry(place.file.clone()).or_insert(next);
            }
            list.sort_by_key(|(place, _)| (files.get(&place.file).copied(), place.line));
        }
    }

    /// Prints the file.
    #[must_use]
    pub fn print(&self, source: &str, paths: &[String]) -> Imported {
        let listed = |list: &[(SourceLine, String)]| -> Vec<String> {
            let line = |(place, why): &(SourceLine, String)| {
                format!("{}:{}: `{}`: {why}", place.file, place.line, place.text)
            };
            let mut seen = BTreeSet::new();
            let lines = list.iter().map(line).map(|line| line.replace(['\n', '\r'], " "));
            // Several jobs can share a line, as by a template or a YAML anchor.
            lines.filter(|line| seen.insert(line.clone())).collect()
        };
        let inexact = listed(&self.inexact);
        let paths = paths.join(" ");
        let mut text =
            format!("// Converted by `containerpilot migrate --from {source} {}`.\n", comment(&paths));
        let mut list = |title: &str, lines: &[String]| {
            if !lines.is_empty() {
                let _ = writeln!(text, "//\n// {title}");
            }
            for line in lines {
                let _ = writeln!(text, "// - {}", comment(line));
            }
        };
        list("What is different:", &self.remarks);
        list("No exact equivalent:", &inexact);
        list("Not needed:", &listed(&self.not_needed));
        let jobs = self.jobs.iter().map(|job| {
            let name = Field { from: job.from.clone(), ..Field::new("name", job.name.as_str()) };
            let mut members = rows(std::slice::from_ref(&name));
            members.extend(rows(&job.fields));
            Row::item(Layout::Object(members).broken())
        });
        let jobs = Layout::List(jobs.collect()).broken();
        let mut members = rows(&self.top);
        members.push(Row::member("jobs", jobs));
        text.push_str(&Layout::file(members));
        Imported { text, inexact }
    }
}

fn mentioned(field: &Field, lines: &mut BTreeSet<String>) {
    fn inside(value: &Value, lines: &mut BTreeSet<String>) {
        match value {
            Value::Commented(comments, inner) => {
                lines.extend(comments.iter().cloned());
                inside(inner, lines);
            }
            Value::List(items) => items.iter().for_each(|item| inside(item, lines)),
            Value::Object(members) => members.iter().for_each(|member| mentioned(member, lines)),
            _ => {}
        }
    }
    lines.extend(field.from.iter().map(ToString::to_string));
    inside(&field.value, lines);
}

/// The members of an object, each with the line it comes from, unless the member before it comes from the same line.
fn rows(fields: &[Field]) -> Vec<Row> {
    let mut last = None;
    let mut rows = Vec::new();
    for field in fields {
        let from = field.from.as_ref();
        let mut comments: Vec<String> =
            from.filter(|_| from != last).map(ToString::to_string).into_iter().collect();
        last = from;
        let item = item(&field.value);
        comments.extend(item.comments);
        comments.extend(field.note.clone());
        rows.push(Row { comments, key: Some(field.key.clone()), value: item.value });
    }
    rows
}

fn item(value: &Value) -> Row {
    match value {
        Value::Commented(comments, inner) => Row { comments: comments.clone(), ..item(inner) },
        value => Row::item(layout(value)),
    }
}

fn layout(value: &Value) -> Layout {
    Layout::Atom(match value {
        Value::List(items) => return Layout::List(items.iter().map(item).collect()),
        Value::Object(members) => return Layout::Object(rows(members)),
        Value::Commented(_, inner) => return layout(inner),
        Value::Text(text) => quoted(text),
        Value::Template(parts) => {
            let parts = parts.iter().map(|part| match part {
                Part::Literal(text) => escaped(text),
                Part::Action(action) => format!("{{{{ {action} }}}}"),
            });
            format!("\"{}\"", parts.collect::<String>())
        }
        Value::Number(number) => number.clone(),
        Value::Flag(flag) => flag.to_string(),
        Value::Null => "null".to_owned(),
    })
}
