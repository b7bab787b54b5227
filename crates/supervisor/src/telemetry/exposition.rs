//! Prometheus' text format, version 0.0.4, with numbers as Go prints them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpositionKind {
    Counter,
    Gauge,
    Histogram,
    Summary,
    /// A counter of 3.8 whose name does not end in `_total`. Linters of metric names would complain about the type
    /// `counter`.
    Untyped,
}

impl ExpositionKind {
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

/// A page of metrics, sorted by name. The first metric of a name wins.
#[derive(Debug, Default)]
pub(super) struct MetricsPage {
    families: BTreeMap<String, Family>,
}

/// A metric and its samples.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) help: String,
    pub(super) kind: ExpositionKind,
    pub(super) samples: Vec<Sample>,
}

/// A value of a metric.
#[derive(Debug)]
pub(super) struct Sample {
    /// Appended to the metric's name.
    pub(super) suffix: &'static str,
    pub(super) labels: Vec<(Box<str>, Box<str>)>,
    pub(super) value: f64,
    /// When counting began, since the start of the supervisor. Prometheus does not need it, a collector does (T6).
    pub(super) since: Duration,
}

impl MetricsPage {
    /// Adds a metric whose samples `write` adds. A metric without samples is left out.
    pub(super) fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: ExpositionKind,
        write: impl FnOnce(&mut Samples<'_>),
    ) {
        let mut samples = Vec::new();
        write(&mut Samples(&mut samples));
        self.add(name, help, kind, samples);
    }

    fn add(&mut self, name: &str, help: &str, kind: ExpositionKind, samples: Vec<Sample>) {
        if self.families.contains_key(name) {
            return;
        }
        if !samples.is_empty() {
            let family = Family { help: help.to_owned(), kind, samples };
            self.families.insert(name.to_owned(), family);
        }
    }

    /// Adds a metric with one sample, unless its value is unknown.
    pub(super) fn single(&mut self, name: &str, help: &str, kind: ExpositionKind, value: Option<f64>) {
        self.family(name, help, kind, |samples| {
            value.into_iter().for_each(|value| samples.add("", &[], value))
        });
    }

    /// The metrics by name.
    pub(super) fn families(&self) -> impl Iterator<Item = (&str, &Family)> {
        self.families.iter().map(|(name, family)| (name.as_str(), family))
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (name, family) in &self.families {
            family.write(name, &mut text);
        }
        text
    }
}

impl Family {
    fn write(&self, name: &str, text: &mut String) {
        if !self.help.is_empty() {
            text.push_str("# HELP ");
            text.push_str(name);
            text.push(' ');
            escape(text, &self.help, false);
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {name} {}", self.kind.name());
        for Sample { suffix, labels, value, since: _ } in &self.samples {
            text.push_str(name);
            text.push_str(suffix);
            for (nth, (label, content)) in labels.iter().enumerate() {
                text.push(if nth == 0 { '{' } else { ',' });
                text.push_str(label);
                text.push_str("=\"");
                escape(text, content, true);
                text.push('"');
            }
            if !labels.is_empty() {
                text.push('}');
            }
            text.push(' ');
            text.push_str(&number(*value));
            text.push('\n');
        }
    }
}

/// The samples of one metric.
pub(super) struct Samples<'a>(&'a mut Vec<Sample>);

impl Samples<'_> {
    /// Adds a sample. `suffix` is appended to the metric's name.
    pub(super) fn add(&mut self, suffix: &'static str, labels: &[(&str, &str)], value: f64) {
        self.add_since(Duration::ZERO, suffix, labels, value);
    }

    /// Adds a sample that counts from a time after the start of the supervisor.
    pub(super) fn add_since(
        &mut self,
        since: Duration,
        suffix: &'static str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let labels = labels.iter().map(|(name, content)| ((*name).into(), (*content).into())).collect();
        self.0.push(Sample { suffix, labels, value, since });
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

#[expect(clippy::cast_precision_loss, reason = "no count reaches 2^53")]
pub(super) fn count_to_f64(count: u64) -> f64 {
    count as f64
}

/// A number as Prometheus' Go client prints it: the shortest exact form, with an exponent of at least two digits for
/// values below 1e-4 and from 1e6 on.
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
    fn t1_numbers_are_printed_as_go_prints_them() {
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
        let mut page = MetricsPage::default();
        page.family("a", "back\\slash\nand \"quotes\"", ExpositionKind::Gauge, |samples| {
            samples.add("", &[("name", "a\\b\n\"c\""), ("other", "ä")], 1.5);
        });
        let expected = concat!(
            "# HELP a back\\\\slash\\nand \"quotes\"\n",
            "# TYPE a gauge\n",
            "a{name=\"a\\\\b\\n\\\"c\\\"\",other=\"ä\"} 1.5\n"
        );
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn t1_names_are_sorted_and_unique_and_have_samples() {
        let mut page = MetricsPage::default();
        page.single("b", "", ExpositionKind::Counter, Some(1.0));
        page.single("a", "", ExpositionKind::Gauge, Some(2.0));
        page.single("b", "", ExpositionKind::Gauge, Some(3.0));
        page.single("c", "", ExpositionKind::Gauge, None);
        assert_eq!(page.text(), "# TYPE a gauge\na 2\n# TYPE b counter\nb 1\n");
    }
}
