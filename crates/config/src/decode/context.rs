//! The state of decoding: the file, its problems, and the decoder of sections.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::decode::describe::{found, shortened, weak_text};
use crate::decode::field_table::{DefaultValue, Field, SectionInfo};
use crate::decode::unknown_key::{Roots, is_ignored_key, unknown_key};
use crate::diagnostics::{FileId, Place, Problem, Severity, is_reported};
use crate::json5::{self, Member, Node, Value};
use crate::limits;
use crate::span::Span;

/// The fields of a section by the index of their row, so that one function can decode all sections.
pub trait Rows {
    /// Decodes the value found for a row, or clears the field. Returns true if it then has a value.
    fn fill(&mut self, row: usize, cx: &mut DecodeContext<'_>, found: Option<&Found<'_>>) -> bool;
}

/// The fields of a section without its first rows.
pub struct Skip<'a, R>(pub usize, pub &'a mut R);

impl<R: Rows> Rows for Skip<'_, R> {
    fn fill(&mut self, row: usize, cx: &mut DecodeContext<'_>, found: Option<&Found<'_>>) -> bool {
        self.1.fill(self.0 + row, cx, found)
    }
}

/// The value for a row of the table: a member of an object, or the default of the row.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub(super) name: &'static str,
    pub(super) node: &'a Node,
    pub(super) place: Place,
    pub(super) key: Place,
    pub(super) written: bool,
}

/// The state of decoding one file.
pub struct DecodeContext<'a> {
    /// The file.
    pub file: FileId,
    problems: &'a mut Vec<Problem>,
    /// For suggestions about unknown keys.
    roots: Option<&'static Roots>,
    /// The parsed defaults: a thousand jobs have the same ones.
    defaults: BTreeMap<&'static str, Option<Rc<Node>>>,
}

impl<'a> DecodeContext<'a> {
    /// Creates the context of a file.
    pub fn new(file: FileId, problems: &'a mut Vec<Problem>) -> Self {
        Self { file, problems, roots: None, defaults: BTreeMap::new() }
    }

    /// Adds the tables of whole files, for suggestions about unknown keys.
    #[must_use]
    pub fn with_roots(self, roots: &'static Roots) -> Self {
        Self { roots: Some(roots), ..self }
    }

    /// The place of a range of the file.
    #[must_use]
    pub fn at(&self, span: Span) -> Place {
        Place::rendered(self.file, span)
    }

    /// Reports an error: what is wrong, and what to do about it.
    pub fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Severity::Error, span, message.into(), help.into());
    }

    /// Reports a warning: what is probably not intended, and what to do about it.
    pub fn warn(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Severity::Warning, span, message.into(), help.into());
    }

    /// Reports a fault: what can never work, and what to do about it.
    pub fn fault(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Severity::Fault, span, message.into(), help.into());
    }

    /// Returns true if an error in a section already mentions a key.
    #[must_use]
    pub fn is_reported(&self, section: Place, key: &str) -> bool {
        is_reported(self.problems, Some(section), key)
    }

    /// Returns true if the file has errors.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        let here = |problem: &Problem| problem.place.is_some_and(|place| place.file == self.file);
        self.problems.iter().any(|problem| problem.severity == Severity::Error && here(problem))
    }

    fn report(&mut self, severity: Severity, span: Span, message: String, help: String) {
        if self.problems.len() >= limits::PROBLEMS {
            return;
        }
        let problem = Problem::new(severity, self.at(span), message);
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    /// Decodes the members of an object into the fields of a section, and fills in defaults. Of two members with the same
    /// key, the last one counts.
    pub(crate) fn section(
        &mut self,
        info: &SectionInfo,
        span: Span,
        members: &[Member],
        rows: &mut dyn Rows,
    ) {
        let mut filled = vec![false; info.fields.len()];
        let mut keys: Vec<Option<Span>> = vec![None; info.fields.len()];
        for member in members {
            let same = |field: &Field| match info.any_case {
                true => member.key.eq_ignore_ascii_case(field.key),
                false => member.key == field.key,
            };
            let row = info.fields.iter().zip(&mut filled).enumerate().find(|(_, (field, _))| same(field));
            let Some((row, (field, filled))) = row else {
                // Suggestions are expensive, and no more than this many problems are collected.
                if !is_ignored_key(&member.key) && self.problems.len() < limits::PROBLEMS {
                    let (message, help) = unknown_key(info, &member.key, self.roots);
                    self.error(member.key_span, message, help);
                }
                continue;
            };
            let name = field.key;
            if let Some(earlier) = keys.get_mut(row).and_then(|key| key.replace(member.key_span)) {
                self.replaced(name, earlier, member.key_span);
            }
            let node = &member.value;
            let (place, key) = (self.at(node.span), self.at(member.key_span));
            let found = Found { name, node, place, key, written: true };
            *filled = rows.fill(row, self, Some(&found).filter(|_| node.value != Value::Null));
        }
        for (row, (field, filled)) in info.fields.iter().zip(filled).enumerate() {
            if let DefaultValue::Is(text) = field.default
                && !filled
                && let Some(node) = self.defaults.entry(text).or_insert_with(|| default_node(text)).clone()
            {
                let place = self.at(span);
                let found = Found { name: field.key, node: &node, place, key: place, written: false };
                rows.fill(row, self, Some(&found));
            }
        }
    }

    /// Warns about a key that a later one of the same name replaces, as in 3.8.
    pub fn replaced(&mut self, key: &str, earlier: Span, later: Span) {
        if self.problems.len() < limits::PROBLEMS {
            let message = format!("`{key}` is written twice, and the last one counts");
            let problem =
                Problem::new(Severity::Warning, self.at(earlier), message).help("remove one of them");
            self.problems.push(Problem { other: Some(self.at(later)), ..problem });
        }
    }

    /// The members of an object. Any other value is an error.
    pub fn members<'n>(&mut self, key: &str, node: &'n Node, example: &str) -> Option<&'n [Member]> {
        if let Value::Object(members) = &node.value {
            return Some(members);
        }
        let message = format!("`{key}` must be an object, not {}", found(node));
        self.error(node.span, message, format!("for example: {key}: {example}"));
        None
    }

    /// The string of a value, which may be a string, a number or a boolean (C3).
    pub fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = weak_text(&node.value);
        if text.is_none() {
            let help = match &node.value {
                Value::List(items) => match items.as_slice() {
                    [Node { value: Value::String(only), .. }] => {
                        format!("write {key}: \"{}\"", shortened(only))
                    }
                    _ => format!("write one string: {key}: \"…\""),
                },
                _ => format!("write {key}: \"…\""),
            };
            self.error(node.span, format!("`{key}` must be a string, not {}", found(node)), help);
        }
        text
    }
}

/// Parses the default of a row.
fn default_node(text: &str) -> Option<Rc<Node>> {
    let parsed = json5::parse(format!("{{v:{text}}}").as_bytes());
    match parsed.root?.value {
        Value::Object(members) => Some(Rc::new(members.into_iter().next()?.value)),
        _ => None,
    }
}
