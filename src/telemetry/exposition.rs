//! Prometheus' text format, version 0.0.4, with numbers written as Go writes them.

use std::fmt::Write;

use std::collections::BTreeMap;

/// What the answer calls itself.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What sort of metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
    /// A counter whose name, which is older than that habit, does not end in `_total`: tools that look at names
    /// complain about it unless its type is left open.
    Untyped,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
            Self::Untyped => "untyped",
        }
    }
}

/// A page of metrics, in the order of their names. Each name is there once, whoever comes first.
#[derive(Debug, Default)]
pub(super) struct Page {
    families: BTreeMap<String, String>,
}

impl Page {
    /// Adds a metric whose lines are written by `lines`. One without lines is left out.
    pub(super) fn family(&mut self, name: &str, help: &str, kind: Kind, lines: impl FnOnce(&mut Lines<'_>)) {
        if self.families.contains_key(name) {
            return;
        }
        let mut text = String::new();
        if !help.is_empty() {
            text.push_str("# HELP ");
            text.push_str(name);
            text.push(' ');
            escape(&mut text, help, false);
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {name} {}", kind.name());
        let head = text.len();
        lines(&mut Lines { text: &mut text, name });
        if text.len() > head {
            self.families.insert(name.to_owned(), text);
        }
    }

    /// Adds a metric of one value, unless it is not known.
    pub(super) fn single(&mut self, name: &str, help: &str, kind: Kind, value: Option<f64>) {
        self.family(name, help, kind, |lines| value.into_iter().for_each(|value| lines.add("", &[], value)));
    }

    /// The names on the page.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    pub(super) fn text(self) -> String {
        self.families.into_values().collect()
    }
}

/// The lines of one metric.
pub(super) struct Lines<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Lines<'_> {
    /// Adds a value, of the metric's name with something behind it, with labels.
    pub(super) fn add(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (nth, (label, content)) in labels.iter().enumerate() {
            self.text.push(if nth == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            escape(self.text, content, true);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        self.text.push(' ');
        self.text.push_str(&number(value));
        self.text.push('\n');
    }
}

fn escape(text: &mut String, content: &str, quotes: bool) {
    for letter in content.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quotes => text.push_str("\\\""),
            letter => text.push(letter),
        }
    }
}

/// A count as a value.
#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 is never reached")]
pub(super) fn counted(count: u64) -> f64 {
    count as f64
}

/// A number as Go's `%v` writes it: the fewest digits that say it exactly, with an exponent of at least two digits
/// where it is below -4 or above 20 less than a million's.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = format!("{value:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_numbers_are_written_as_go_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.0, "-1"),
            (0.005, "0.005"),
            (2.5, "2.5"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-0.000_012_5, "-1.25e-05"),
            (100_000.0, "100000"),
            (123_456.0, "123456"),
            (999_999.5, "999999.5"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (1.418_159_632e9, "1.418159632e+09"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e21, "1e+21"),
            (1e100, "1e+100"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn t1_help_and_labels_are_escaped() {
        let mut page = Page::default();
        page.family("a", "back\\slash\nand \"quotes\"", Kind::Gauge, |lines| {
            lines.add("", &[("name", "a\\b\n\"c\""), ("other", "ä")], 1.5);
        });
        let expected = concat!(
            "# HELP a back\\\\slash\\nand \"quotes\"\n",
            "# TYPE a gauge\n",
            "a{name=\"a\\\\b\\n\\\"c\\\"\",other=\"ä\"} 1.5\n"
        );
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn t1_each_name_is_there_once_in_order_and_none_without_a_line() {
        let mut page = Page::default();
        page.single("b", "", Kind::Counter, Some(1.0));
        page.single("a", "", Kind::Gauge, Some(2.0));
        page.single("b", "", Kind::Gauge, Some(3.0));
        page.single("c", "", Kind::Gauge, None);
        assert_eq!(page.text(), "# TYPE a gauge\na 2\n# TYPE b counter\nb 1\n");
    }
}
