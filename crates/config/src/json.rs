//! A JSON writer for the machine-readable output of commands.

use std::fmt::Write;

/// A JSON value; objects keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// An integer.
    #[must_use]
    pub fn whole(number: impl std::fmt::Display) -> Self {
        Self::Number(number.to_string())
    }

    /// A list of strings.
    #[must_use]
    pub fn texts(texts: &[&str]) -> Self {
        Self::List(texts.iter().map(|text| Self::text(text)).collect())
    }

    /// An object.
    #[must_use]
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        // A loop, because `collect` compiles to four times as much code for each type of list.
        let mut object = Vec::new();
        for (key, value) in members {
            object.push((key.into(), value));
        }
        Self::Object(object)
    }

    /// The value on several lines, with a final newline.
    #[must_use]
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out.push('\n');
        out
    }

    /// The value on one line, with a final newline.
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = String::new();
        self.pack(&mut out);
        out.push('\n');
        out
    }

    fn pack(&self, out: &mut String) {
        match self {
            Self::List(items) => {
                out.push('[');
                for (nth, item) in items.iter().enumerate() {
                    out.push_str(if nth == 0 { "" } else { "," });
                    item.pack(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (nth, (key, value)) in members.iter().enumerate() {
                    out.push_str(if nth == 0 { "" } else { "," });
                    quote(out, key);
                    out.push(':');
                    value.pack(out);
                }
                out.push('}');
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => self.write(out, 0),
        }
    }

    fn write(&self, out: &mut String, depth: usize) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => out.push_str(number),
            Self::Text(text) => quote(out, text),
            Self::List(items) => {
                let items = items.iter().map(|item| (None, item));
                block(out, depth, ('[', ']'), items);
            }
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (Some(key.as_str()), value));
                block(out, depth, ('{', '}'), members);
            }
        }
    }
}

fn block<'a>(
    out: &mut String,
    depth: usize,
    (open, close): (char, char),
    items: impl ExactSizeIterator<Item = (Option<&'a str>, &'a Json)>,
) {
    out.push(open);
    let empty = items.len() == 0;
    for (nth, (key, value)) in items.enumerate() {
        out.push_str(if nth == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        if let Some(key) = key {
            quote(out, key);
            out.push_str(": ");
        }
        value.write(out, depth + 1);
    }
    if !empty {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
    out.push(close);
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_strings_are_escaped() {
        let text = "a\"b\\c\n\u{1}\u{7f}é";
        let json = Json::object([("k", Json::text(text)), ("empty", Json::List(vec![]))]).pretty();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["k"], text);
    }

    #[test]
    fn x1_a_value_can_be_written_on_one_line() {
        let list = Json::List(vec![Json::Null, Json::whole(1), Json::text("a\nb"), Json::Bool(true)]);
        let json = Json::object([("list", list), ("none", Json::Object(vec![]))]).line();
        assert_eq!(json, "{\"list\":[null,1,\"a\\nb\",true],\"none\":{}}\n");
    }
}
