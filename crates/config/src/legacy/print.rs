//! Prints a translated file.
//!
//! A value of the old file is copied from its source with its template actions, so that the new file still depends on the
//! environment. Actions around values, such as an `if` around a service, are evaluated and listed in the notes.

use std::fmt::Write;

use crate::diagnostics::SourceFile;
use crate::json5::write::{comment, key, quoted};
use crate::json5::{Node, Value};
use crate::legacy::tree::{Entry, Form, Leaf, Piece};
use crate::span::{Origin, Span};

/// The maximum length of a line.
const MAX_LINE: usize = 100;

/// Prints entries as a JSON5 file.
pub(crate) struct Printer<'a> {
    file: &'a SourceFile,
    /// True if values are copied from the old file.
    keep_actions: bool,
    /// The copied ranges of the old file.
    used: Vec<Span>,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(file: &'a SourceFile, keep_actions: bool) -> Self {
        Self { file, keep_actions, used: Vec::new() }
    }

    /// Prints the file without its heading.
    pub(crate) fn file(&mut self, entries: &[Entry]) -> String {
        let mut out = "{\n".to_owned();
        self.entries(&mut out, entries, 1);
        out.push_str("}\n");
        out
    }

    fn entries(&mut self, out: &mut String, entries: &[Entry], depth: usize) {
        let indent = "  ".repeat(depth);
        for entry in entries {
            if let Some(note) = &entry.note {
                let _ = writeln!(out, "{indent}// {}", comment(note));
            }
            let _ = write!(out, "{indent}{}: ", entry.key);
            self.piece(out, &entry.value, depth);
            out.push_str(",\n");
        }
    }

    fn piece(&mut self, out: &mut String, piece: &Piece, depth: usize) {
        let indent = "  ".repeat(depth);
        let broken = matches!(piece, Piece::List(_, items) if items.iter().any(|one| !matches!(one, Piece::Leaf(_))))
            || has_notes(piece);
        if !broken {
            let line = self.line(piece);
            if indent.len() + line.chars().count() <= MAX_LINE {
                out.push_str(&line);
                return;
            }
        }
        match piece {
            Piece::Leaf(leaf) => self.leaf_broken(out, leaf, depth),
            Piece::List(_, items) => {
                out.push_str("[\n");
                for item in items {
                    let _ = write!(out, "{indent}  ");
                    self.piece(out, item, depth + 1);
                    out.push_str(",\n");
                }
                let _ = write!(out, "{indent}]");
            }
            Piece::Object(_, entries) => {
                out.push_str("{\n");
                self.entries(out, entries, depth + 1);
                let _ = write!(out, "{indent}}}");
            }
        }
    }

    /// Prints a value that is too long for a line.
    fn leaf_broken(&mut self, out: &mut String, leaf: &Leaf, depth: usize) {
        let indent = "  ".repeat(depth);
        match (&leaf.node.value, &leaf.form) {
            (Value::List(items), Form::Source(_)) => {
                out.push_str("[\n");
                for item in items {
                    let _ = write!(out, "{indent}  ");
                    self.piece(out, &Piece::of(item), depth + 1);
                    out.push_str(",\n");
                }
                let _ = write!(out, "{indent}]");
            }
            (Value::Object(members), Form::Source(_)) => {
                out.push_str("{\n");
                for member in members {
                    let _ = write!(out, "{indent}  {}: ", key(&member.key));
                    self.piece(out, &Piece::of(&member.value), depth + 1);
                    out.push_str(",\n");
                }
                let _ = write!(out, "{indent}}}");
            }
            _ => {
                let line = self.leaf(leaf);
                out.push_str(&line);
            }
        }
    }

    /// Prints a value on one line.
    fn line(&mut self, piece: &Piece) -> String {
        match piece {
            Piece::Leaf(leaf) => self.leaf(leaf),
            Piece::List(_, items) => {
                let items: Vec<String> = items.iter().map(|item| self.line(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Piece::Object(_, entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|entry| format!("{}: {}", entry.key, self.line(&entry.value)))
                    .collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf) -> String {
        match &leaf.form {
            Form::Literal(literal) if self.keep_actions => literal.clone(),
            Form::Source(prefix) if self.keep_actions => self.node(&leaf.node, prefix),
            _ => literal(&leaf.node),
        }
    }

    /// Copies a value from the source of the old file, if possible.
    fn node(&mut self, node: &Node, prefix: &str) -> String {
        match &node.value {
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.node(item, "")).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|member| format!("{}: {}", key(&member.key), self.node(&member.value, "")))
                    .collect();
                format!("{{ {} }}", members.join(", "))
            }
            value => {
                let Some((span, source)) = self.written(node.span) else { return literal(node) };
                let text = match value {
                    Value::String(_) => with_prefix(source, prefix),
                    _ => Some(source.to_owned()),
                };
                let Some(text) = text else { return literal(node) };
                self.used.push(span);
                text
            }
        }
    }

    /// The source of a range of the rendered text, if all its blocks are complete.
    fn written(&self, rendered: Span) -> Option<(Span, &'a str)> {
        let start = match self.file.map.origin(rendered.start) {
            Origin::Copied(at) => at,
            Origin::Produced(action) => action.start,
        };
        let end = match self.file.map.origin(rendered.end.checked_sub(1)?) {
            Origin::Copied(at) => at + 1,
            Origin::Produced(action) => action.end,
        };
        let span = Span { start, end };
        let source = self.file.source.get(start as usize..end as usize)?;
        let source = std::str::from_utf8(source).ok()?;
        // A block that starts or ends outside must not be split.
        let words: Vec<&str> = actions(source).map(|(_, action)| first_word(action)).collect();
        let opened = words.iter().filter(|word| matches!(**word, "if" | "range" | "with" | "block")).count();
        let closed = words.iter().filter(|word| **word == "end").count();
        let calls = words.iter().any(|word| matches!(*word, "define" | "template"));
        (opened == closed && !calls && !source.contains(['\n', '\r'])).then_some((span, source))
    }

    /// The template actions that were evaluated instead of copied, with their lines.
    pub(crate) fn evaluated(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.file.source);
        let mut lines: Vec<String> = Vec::new();
        for (at, action) in actions(&text) {
            let inside = |used: &Span| (used.start as usize..used.end as usize).contains(&at);
            if matches!(first_word(action), "end" | "else" | "") || self.used.iter().any(inside) {
                continue;
            }
            let line = text.get(..at).map_or(1, |before| 1 + before.matches('\n').count());
            lines.push(format!("line {line}: {}", action.trim()));
        }
        lines.dedup();
        lines
    }
}

/// The template actions of a text with their offsets, without comments.
fn actions(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let open = at + text.get(at..)?.find("{{")?;
            let inner = open + 2;
            let length = text.get(inner..)?.find("}}")?;
            at = inner + length + 2;
            let action = text.get(inner..inner + length)?;
            let action = action.strip_prefix("- ").unwrap_or(action);
            let action = action.strip_suffix(" -").unwrap_or(action).trim();
            if !action.starts_with("/*") {
                return Some((open, action));
            }
        }
    })
}

fn first_word(action: &str) -> &str {
    action.split_whitespace().next().unwrap_or_default()
}

/// Adds a prefix to a string literal.
fn with_prefix(source: &str, prefix: &str) -> Option<String> {
    let quote = source.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = source.strip_prefix(quote)?.strip_suffix(quote)?;
    Some(format!("{quote}{prefix}{inner}{quote}"))
}

fn has_notes(piece: &Piece) -> bool {
    match piece {
        Piece::Leaf(_) => false,
        Piece::List(_, items) => items.iter().any(has_notes),
        Piece::Object(_, entries) => {
            entries.iter().any(|entry| entry.note.is_some() || has_notes(&entry.value))
        }
    }
}

/// A value as JSON5, without characters that start a template action.
fn literal(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.text.to_string(),
        Value::String(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|member| format!("{}: {}", key(&member.key), literal(&member.value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}
