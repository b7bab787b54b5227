//! Writing JSON without a tree in between: for answers to programs, which may be long.

use std::fmt::{self, Write};

/// An object or a list that is being written. Its end is written when it is dropped.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut String,
    close: char,
    first: bool,
}

/// The text of one object.
pub(crate) fn object(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = String::new();
    write(&mut Writer::open(&mut out, '{', '}'));
    out
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.out.push(self.close);
    }
}

impl<'a> Writer<'a> {
    fn open(out: &'a mut String, open: char, close: char) -> Self {
        out.push(open);
        Self { out, close, first: true }
    }

    fn next(&mut self) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        self.out
    }

    fn key(&mut self, key: &str) -> &mut String {
        let out = self.next();
        quote(out, key);
        out.push(':');
        out
    }

    /// A member that is text.
    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        quote(self.key(key), value);
        self
    }

    /// A member that is a number, or `true` or `false`: something that looks in JSON as it does here.
    pub(crate) fn plain(&mut self, key: &str, value: impl fmt::Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.key(key), "{value}");
        self
    }

    /// A member that may be missing.
    pub(crate) fn plain_or_null(&mut self, key: &str, value: Option<impl fmt::Display>) -> &mut Self {
        match value {
            Some(value) => self.plain(key, value),
            None => self.plain(key, "null"),
        }
    }

    /// A member that is text and may be missing.
    pub(crate) fn text_or_null(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(key, value),
            None => self.plain(key, "null"),
        }
    }

    /// A member that is an object.
    pub(crate) fn object(&mut self, key: &str, write: impl FnOnce(&mut Writer<'_>)) -> &mut Self {
        write(&mut Writer::open(self.key(key), '{', '}'));
        self
    }

    /// A member that is an object and may be missing.
    pub(crate) fn object_or_null<T>(
        &mut self,
        key: &str,
        value: Option<T>,
        write: impl FnOnce(T, &mut Writer<'_>),
    ) -> &mut Self {
        match value {
            Some(value) => self.object(key, |out| write(value, out)),
            None => self.plain(key, "null"),
        }
    }

    /// A member that is a list of objects.
    pub(crate) fn objects<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Writer<'_>),
    ) -> &mut Self {
        let mut list = Writer::open(self.key(key), '[', ']');
        for item in items {
            write(item, &mut Writer::open(list.next(), '{', '}'));
        }
        drop(list);
        self
    }

    /// A member that is a list of texts.
    pub(crate) fn texts<T: AsRef<str>>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        let mut list = Writer::open(self.key(key), '[', ']');
        for item in items {
            quote(list.next(), item.as_ref());
        }
        drop(list);
        self
    }
}

/// Text in quotes.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (place, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(from..place).unwrap_or_default());
        from = place + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "\\u{byte:04x}")),
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_what_is_written_is_read_back() {
        let odd = "a\"b\\c\nd\te\u{1}f\u{7f}ä😀/";
        let text = object(|out| {
            out.text("text", odd).plain("number", 1.5).plain("flag", true).plain_or_null("gone", None::<u8>);
            out.text_or_null(odd, None).text_or_null("there", Some("x"));
            out.objects("list", [1, 2], |item, out| {
                out.plain("item", item).object("in", |_| {});
            });
            out.texts("texts", [odd, ""]).object_or_null("none", None::<u8>, |_, _| {});
        });
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "text": odd, "number": 1.5, "flag": true, "gone": null, odd: null, "there": "x",
            "list": [{ "item": 1, "in": {} }, { "item": 2, "in": {} }], "texts": [odd, ""], "none": null,
        });
        assert_eq!(read, expected);
    }
}
