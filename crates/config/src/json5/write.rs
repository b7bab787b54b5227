//! Writes JSON5 that is also a template: no text in it starts a template action.

use std::fmt::Write;

/// The maximum length of a line. Only an atom can be longer.
const MAX_LINE: usize = 100;

/// A value to print. A list or an object is on one line if it has no comments and the line is short enough.
#[derive(Clone, Debug)]
pub enum Layout {
    /// A value that is always on one line, as it is printed.
    Atom(String),
    /// A list.
    List(Vec<Row>),
    /// An object.
    Object(Vec<Row>),
    /// A list or an object with a line for each row, unless it is inside of a value that is on one line.
    Broken(Box<Layout>),
}

/// An item of a list, or a member of an object.
#[derive(Clone, Debug)]
pub struct Row {
    /// The comments above it.
    pub comments: Vec<String>,
    /// The key of a member.
    pub key: Option<String>,
    /// The value.
    pub value: Layout,
}

impl Row {
    /// An item of a list.
    #[must_use]
    pub fn item(value: Layout) -> Self {
        Self { comments: Vec::new(), key: None, value }
    }

    /// A member of an object.
    #[must_use]
    pub fn member(key: &str, value: Layout) -> Self {
        Self { comments: Vec::new(), key: Some(key.to_owned()), value }
    }

    fn prefix(&self) -> String {
        self.key.as_ref().map_or_else(String::new, |name| format!("{}: ", key(name)))
    }
}

impl Layout {
    /// A list or an object with a line for each row.
    #[must_use]
    pub fn broken(self) -> Self {
        Self::Broken(Box::new(self))
    }

    /// The text of a file with these members.
    #[must_use]
    pub fn file(members: Vec<Row>) -> String {
        let mut out = String::new();
        Self::Object(members).broken().write(&mut out, 0);
        out.push('\n');
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let (value, line) = match self {
            Self::Broken(inner) => (&**inner, None),
            value => (value, value.line().filter(|line| 2 * depth + line.chars().count() <= MAX_LINE)),
        };
        let (open, rows, close) = match (value, line) {
            (_, Some(line)) => return out.push_str(&line),
            (Self::Atom(text), None) => return out.push_str(text),
            (Self::List(items), None) => ('[', items, ']'),
            (Self::Object(members), None) => ('{', members, '}'),
            (Self::Broken(inner), None) => return inner.write(out, depth),
        };
        let indent = "  ".repeat(depth);
        let _ = writeln!(out, "{open}");
        for row in rows {
            for text in &row.comments {
                let _ = writeln!(out, "{indent}  // {}", comment(text));
            }
            let _ = write!(out, "{indent}  {}", row.prefix());
            row.value.write(out, depth + 1);
            out.push_str(",\n");
        }
        let _ = write!(out, "{indent}{close}");
    }

    /// The value on one line; `None` if it has comments.
    fn line(&self) -> Option<String> {
        let line = |row: &Row| {
            let value = row.value.line().filter(|_| row.comments.is_empty())?;
            Some(row.prefix() + &value)
        };
        let joined = |rows: &[Row]| Some(rows.iter().map(line).collect::<Option<Vec<_>>>()?.join(", "));
        Some(match self {
            Self::Atom(text) => text.clone(),
            Self::List(items) => format!("[{}]", joined(items)?),
            Self::Object(members) => format!("{{ {} }}", joined(members)?),
            Self::Broken(inner) => inner.line()?,
        })
    }
}

/// A key, quoted if it must be.
#[must_use]
pub fn key(key: &str) -> String {
    let word = |c: char| c.is_ascii_alphabetic() || c == '_';
    let plain = key.starts_with(word) && key.chars().all(|c| word(c) || c.is_ascii_digit());
    if plain { key.to_owned() } else { quoted(key) }
}

/// A string in quotes.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A string without its quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Two of them, also with what follows this text, would begin a template action.
            '{' if !matches!(chars.peek(), Some(next) if *next != '{') => out.push_str("\\u007b"),
            '\u{2028}' | '\u{2029}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c if c.is_control() => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// A text for a comment, in which the template would still find actions.
#[must_use]
pub fn comment(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '{' | '}' if out.ends_with(c) => drop(write!(out, " {c}")),
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
