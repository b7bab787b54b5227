//! The part of HCL that job files of Nomad use: blocks with labels, attributes, strings, heredocs, numbers, flags, lists, objects and
//! comments. The value of any other expression, such as `var.image`, is unknown.

use crate::tree::{Node, Value};

/// Nesting of blocks, lists and objects.
const MAX_DEPTH: usize = 64;

/// Why a text is not HCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HclError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Returns true if a text begins as a job file of Nomad: with a block.
pub(crate) fn is_hcl(text: &str) -> bool {
    let mut reader = Reader::new(text);
    reader.skip_blanks(true);
    let Some(name) = reader.identifier() else { return false };
    reader.skip_blanks(false);
    matches!(name.as_str(), "job" | "variable" | "locals") && matches!(reader.peek(), Some('"' | '{'))
}

/// Reads a file.
pub(crate) fn parse(text: &str) -> Result<Node, HclError> {
    let mut reader = Reader::new(text);
    let entries = reader.body(0, false)?;
    Ok(Node { line: 1, labels: Vec::new(), value: Value::Map(entries) })
}

fn begins_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '"')
}

fn ends_word(c: char) -> bool {
    begins_word(c) || matches!(c, ')' | ']' | '}')
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest.starts_with(text);
        if found {
            for _ in text.chars() {
                self.next();
            }
        }
        found
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, HclError> {
        Err(HclError { line: self.line, message: message.into() })
    }

    /// Skips spaces and comments, and line breaks too if told so.
    fn skip_blanks(&mut self, lines: bool) {
        loop {
            match self.peek() {
                Some('\n') if !lines => return,
                Some(c) if c.is_whitespace() => drop(self.next()),
                Some('#') => self.skip_line(),
                Some('/') if self.rest.starts_with("//") => self.skip_line(),
                Some('/') if self.rest.starts_with("/*") => {
                    while !self.rest.is_empty() && !self.eat("*/") {
                        self.next();
                    }
                }
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.next();
        }
    }

    fn identifier(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// The attributes and blocks of a block, or of the file.
    fn body(&mut self, depth: usize, inside: bool) -> Result<Vec<(String, Node)>, HclError> {
        let mut entries = Vec::new();
        loop {
            self.skip_blanks(true);
            match self.peek() {
                None if inside => return self.error("a block is not closed: add `}`"),
                None => return Ok(entries),
                Some('}') if inside => {
                    self.next();
                    return Ok(entries);
                }
                Some(_) => entries.push(self.entry(depth)?),
            }
            self.skip_blanks(false);
            match self.peek() {
                None | Some('\n') => {}
                Some('}') if inside => {}
                Some(_) => {
                    return self
                        .error("a new line must begin here: an attribute or block ends with its line");
                }
            }
        }
    }

    /// `key = value` or `name "label" { … }`.
    fn entry(&mut self, depth: usize) -> Result<(String, Node), HclError> {
        let line = self.line;
        let key = match self.peek() {
            Some('"') => Some(self.string()?),
            _ => self.identifier(),
        };
        let Some(key) = key else {
            return self.error("the name of an attribute or of a block is expected here");
        };
        let mut labels = Vec::new();
        loop {
            self.skip_blanks(false);
            match self.peek() {
                Some('=') => {
                    self.next();
                    let value = self.expression(depth, true)?;
                    return Ok((key, Node { line, labels, value }));
                }
                Some('{') => {
                    self.next();
                    self.check_depth(depth)?;
                    let value = Value::Map(self.body(depth + 1, true)?);
                    return Ok((key, Node { line, labels, value }));
                }
                Some('"') => labels.push(self.string()?),
                _ => match self.identifier() {
                    Some(label) => labels.push(label),
                    None => return self.error(format!("`=` or `{{` is expected after `{key}`")),
                },
            }
        }
    }

    fn check_depth(&self, depth: usize) -> Result<(), HclError> {
        match depth >= MAX_DEPTH {
            true => self.error(format!("blocks and lists are nested more than {MAX_DEPTH} deep")),
            false => Ok(()),
        }
    }

    /// A value; unknown if it is more than a literal. That of an attribute ends before a word that cannot continue it.
    fn expression(&mut self, depth: usize, attribute: bool) -> Result<Value, HclError> {
        self.skip_blanks(false);
        let value = self.literal(depth)?;
        self.skip_blanks(false);
        match self.peek() {
            None | Some('\n' | ',' | ']' | '}') => Ok(value),
            Some(c) if attribute && begins_word(c) => Ok(value),
            Some(_) => {
                self.skip_expression(depth, attribute)?;
                Ok(Value::Unknown)
            }
        }
    }

    fn literal(&mut self, depth: usize) -> Result<Value, HclError> {
        match self.peek() {
            Some('"') => Ok(Value::Text(self.string()?)),
            Some('<') if self.rest.starts_with("<<") => self.heredoc(),
            Some('[') => self.list(depth),
            Some('{') => self.object(depth),
            Some(c) if c.is_ascii_digit() || c == '-' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
                let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
                let (number, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
                self.rest = rest;
                Ok(Value::Number(number.to_owned()))
            }
            Some(c) if c.is_alphabetic() || c == '_' => Ok(match self.identifier().as_deref() {
                Some(flag @ ("true" | "false")) => Value::Text(flag.to_owned()),
                Some("null") => Value::Null,
                _ => Value::Unknown,
            }),
            Some('(' | '!') => Ok(Value::Unknown),
            _ => self.error("a value is expected here"),
        }
    }

    /// The rest of an expression that is not a literal: up to the end of the line, or to what ends the list or object around it.
    fn skip_expression(&mut self, depth: usize, attribute: bool) -> Result<(), HclError> {
        let mut open = 0_usize;
        let mut last = None;
        loop {
            let before = self.rest;
            self.skip_blanks(open > 0);
            let is_next_word = before.len() > self.rest.len() && last.is_some_and(ends_word);
            last = self.peek();
            match last {
                None => return Ok(()),
                Some('\n' | ',' | ']' | '}') if open == 0 => return Ok(()),
                Some(c) if attribute && open == 0 && is_next_word && begins_word(c) => return Ok(()),
                Some('"') => drop(self.string()?),
                Some('(' | '[' | '{') => {
                    open += 1;
                    self.check_depth(depth + open)?;
                    self.next();
                }
                Some(')' | ']' | '}') => {
                    open = open.saturating_sub(1);
                    self.next();
                }
                Some(_) => drop(self.next()),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, HclError> {
        self.check_depth(depth)?;
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip_blanks(true);
            match self.peek() {
                None => return self.error("a list is not closed: add `]`"),
                Some(']') => {
                    self.next();
                    return Ok(Value::List(items));
                }
                Some(',') => drop(self.next()),
                Some('}') => return self.error("`]` is expected here"),
                Some(_) => {
                    let line = self.line;
                    let value = self.expression(depth + 1, false)?;
                    items.push(Node { line, labels: Vec::new(), value });
                }
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, HclError> {
        self.check_depth(depth)?;
        self.next();
        let mut entries = Vec::new();
        loop {
            self.skip_blanks(true);
            let line = self.line;
            match self.peek() {
                None => return self.error("an object is not closed: add `}`"),
                Some('}') => {
                    self.next();
                    return Ok(Value::Map(entries));
                }
                Some(',') => {
                    self.next();
                    continue;
                }
                // `for` and keys that are computed.
                Some('(') => {
                    self.skip_expression(depth, false)?;
                    continue;
                }
                Some(']') => return self.error("`}` is expected here"),
                Some(_) => {}
            }
            let key = match self.peek() {
                Some('"') => Some(self.string()?),
                _ => self.identifier(),
            };
            let Some(key) = key else { return self.error("the key of an object is expected here") };
            self.skip_blanks(false);
            match self.peek() {
                Some('=' | ':') => drop(self.next()),
                _ => {
                    self.skip_expression(depth, false)?;
                    continue;
                }
            }
            let value = self.expression(depth + 1, false)?;
            entries.push((key, Node { line, labels: Vec::new(), value }));
        }
    }

    /// A text in quotes. What is between `${` and `}` is kept as it is.
    fn string(&mut self) -> Result<String, HclError> {
        let start = self.line;
        self.next();
        let mut text = String::new();
        let mut open = 0_usize;
        let mut quoted = false;
        while let Some(c) = self.next() {
            match c {
                '"' if open == 0 => return Ok(text),
                '"' => quoted = !quoted,
                '\n' if open == 0 => break,
                '\\' if open == 0 => match self.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(other) => text.push(other),
                    None => break,
                },
                '{' if text.ends_with(['$', '%']) && !text.ends_with("$$")
                    || open > 0 && !quoted && c == '{' =>
                {
                    open += 1;
                }
                '}' if open > 0 && !quoted => open -= 1,
                _ => {}
            }
            if !(c == '\\' && open == 0) {
                text.push(c);
            }
        }
        Err(HclError { line: start, message: "a text is not closed: add `\"`".to_owned() })
    }

    /// `<<EOT` or `<<-EOT`, and the lines up to `EOT`.
    fn heredoc(&mut self) -> Result<Value, HclError> {
        let start = self.line;
        let _ = self.eat("<<-") || self.eat("<<");
        let Some(end) = self.identifier() else { return self.error("a name is expected after `<<`") };
        self.skip_line();
        self.next();
        let mut text = String::new();
        while !self.rest.is_empty() {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            if line.trim() == end {
                // The line break stays: it ends the attribute.
                self.rest = self.rest.get(line.len()..).unwrap_or_default();
                return Ok(Value::Text(text));
            }
            text.push_str(line);
            text.push('\n');
            self.rest = rest;
            self.line += 1;
        }
        Err(HclError { line: start, message: format!("the text is not closed: add a line with `{end}`") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x14_blocks_attributes_and_expressions_of_hcl() {
        let text = "# comment\nvariable \"image\" { default = \"x\" }\njob \"web\" {\n  count = 2 // two\n  on = true\n  none = null\n\
                    /* several\n lines */ list = [\"a\", 1,\n    var.x, { k = \"v\", \"q\" : 3 },]\n  image = var.image\n\
                    cond = var.a ? \"b\" : \"c\" # a comment\n  sum = 1 + var.b * 2\n  call = file(\"x}\")\n  size = -1.5e3\n  text = \"a ${env[\"x\"]} \\\"b\\\"\"\n\
                    data = <<-EOT\n    one }\n    two\n    EOT\n  group \"a\" {}\n  group b {\n    task \"t\" \"u\" { driver = \"docker\" }\n  }\n}\n";
        let root = parse(text).unwrap();
        assert!(is_hcl(text) && !is_hcl("services:\n  job: x\n") && !is_hcl(""));
        let job = root.get("job").unwrap();
        assert_eq!((job.line, &*job.labels[0]), (3, "web"));
        assert_eq!(job.get("count").unwrap().number(), Some(2));
        assert!(job.get("on").unwrap().is_on());
        assert_eq!(job.get("none").unwrap().value, Value::Null);
        let list = job.get("list").unwrap();
        assert_eq!(list.items().len(), 4);
        assert_eq!(list.items()[2].value, Value::Unknown);
        assert_eq!(list.items()[3].get("q").unwrap().number(), Some(3));
        for unknown in ["image", "cond", "call", "sum"] {
            assert_eq!(job.get(unknown).unwrap().value, Value::Unknown, "{unknown}");
        }
        assert_eq!(job.get("size").unwrap().text(), Some("-1.5e3"));
        assert_eq!(job.get("text").unwrap().text(), Some("a ${env[\"x\"]} \"b\""));
        assert_eq!(job.get("text").unwrap().known(), None);
        assert_eq!(job.get("data").unwrap().text(), Some("    one }\n    two\n"));
        let groups: Vec<&Node> = job.all("group").collect();
        assert_eq!(groups[1].labels, ["b"]);
        assert_eq!(groups[1].get("task").unwrap().labels, ["t", "u"]);
        assert_eq!(groups[1].get("task").unwrap().line, 22);
    }

    #[test]
    fn x14_errors_of_hcl_have_lines() {
        let deep = format!("x = {}", "[".repeat(200_000));
        let calls = format!("x = f{}", "(".repeat(200_000));
        let blocks = "a {\n".repeat(200_000);
        let cases = [
            ("job \"a\" {\n  x = 1\n", 3, "a block is not closed"),
            ("x = \"a\n", 1, "a text is not closed"),
            ("a = 1\nx = <<EOT\nfoo\n", 2, "add a line with `EOT`"),
            ("x = [1, 2", 1, "a list is not closed"),
            ("x = {", 1, "an object is not closed"),
            ("x = [}", 1, "`]` is expected"),
            ("x ! 1", 1, "`=` or `{` is expected after `x`"),
            ("\n=", 2, "the name of an attribute"),
            ("x =\n", 1, "a value is expected"),
            (
                "task \"t\" {\n  driver = \"docker\" kill_timeout = \"30s\"\n}",
                2,
                "a new line must begin here",
            ),
            ("a = 1 b = 2", 1, "a new line must begin here"),
            ("a = var.x b = 2", 1, "a new line must begin here"),
            ("a = f(1) b = 2", 1, "a new line must begin here"),
            ("a = 1, b = 2", 1, "a new line must begin here"),
            ("a {} b {}", 1, "a new line must begin here"),
            (&deep, 1, "nested more than 64"),
            (&calls, 1, "nested more than 64"),
            (&blocks, 65, "nested more than 64"),
        ];
        for (text, line, message) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{error:?}");
            assert!(error.message.contains(message), "{error:?}");
        }
    }
}
