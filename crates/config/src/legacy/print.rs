//! Prints a translated file.
//!
//! A value of the old file is copied from its source with its template actions, so that the new file still depends on the
//! environment. Actions around values, such as an `if` around a service, are evaluated and listed in the notes.

use crate::diagnostics::SourceFile;
use crate::json5::write::{Layout, Row, quoted};
use crate::json5::{Member, Node, Value};
use crate::legacy::tree::{Piece, TreeEntry, ValueForm};
use crate::span::{ByteOrigin, Span};

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
    pub(crate) fn file(&mut self, entries: &[TreeEntry]) -> String {
        Layout::file(self.rows(entries))
    }

    fn rows(&mut self, entries: &[TreeEntry]) -> Vec<Row> {
        let row = |entry: &TreeEntry| Row {
            comments: entry.note.iter().cloned().collect(),
            ..Row::member(entry.key, self.piece(&entry.value))
        };
        entries.iter().map(row).collect()
    }

    fn piece(&mut self, piece: &Piece) -> Layout {
        match piece {
            Piece::Leaf(leaf) => match &leaf.form {
                ValueForm::Literal(literal) if self.keep_actions => Layout::Atom(literal.clone()),
                ValueForm::Source(prefix) if self.keep_actions => self.node(&leaf.node, Some(prefix)),
                _ => self.node(&leaf.node, None),
            },
            Piece::List(_, items) => {
                let is_broken = items.iter().any(|item| !matches!(item, Piece::Leaf(_)));
                let list = Layout::List(items.iter().map(|item| Row::item(self.piece(item))).collect());
                if is_broken { list.broken() } else { list }
            }
            Piece::Object(_, entries) => Layout::Object(self.rows(entries)),
        }
    }

    /// A value. With a prefix, which strings get, it is copied from the source of the old file if possible.
    fn node(&mut self, node: &Node, prefix: Option<&str>) -> Layout {
        let inner = prefix.map(|_| "");
        let literal = match &node.value {
            Value::List(items) => {
                return Layout::List(items.iter().map(|item| Row::item(self.node(item, inner))).collect());
            }
            Value::Object(members) => {
                let row = |member: &Member| Row::member(&member.key, self.node(&member.value, inner));
                return Layout::Object(members.iter().map(row).collect());
            }
            Value::Null => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.text.to_string(),
            Value::String(text) => quoted(text),
        };
        Layout::Atom(prefix.and_then(|prefix| self.copied(node, prefix)).unwrap_or(literal))
    }

    fn copied(&mut self, node: &Node, prefix: &str) -> Option<String> {
        let (span, source) = self.written(node.span)?;
        let text = match node.value {
            Value::String(_) => with_prefix(source, prefix)?,
            _ => source.to_owned(),
        };
        self.used.push(span);
        Some(text)
    }

    /// The source of a range of the rendered text, if all its blocks are complete.
    fn written(&self, rendered: Span) -> Option<(Span, &'a str)> {
        let start = match self.file.map.origin(rendered.start) {
            ByteOrigin::Copied(at) => at,
            ByteOrigin::Produced(action) => action.start,
        };
        let end = match self.file.map.origin(rendered.end.checked_sub(1)?) {
            ByteOrigin::Copied(at) => at + 1,
            ByteOrigin::Produced(action) => action.end,
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
