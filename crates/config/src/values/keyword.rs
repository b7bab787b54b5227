//! Keywords: values that are one of a few strings, such as log levels and metric types.

use std::marker::PhantomData;

use containerpilot_core::plan::{
    Format, Level, OnCompletion, OnStartLimit, OnUnhealthy, RestartOn, Status, StopScope,
};

use crate::decode::{DecodeContext, Shape, ValueType, alternatives, found};
use crate::json5::Node;

/// A value that is written as one of a few strings.
pub trait Keyword: Sized + Copy + 'static {
    /// The strings. Of two with the same value, the first is preferred.
    const NAMES: &'static [&'static str];
    /// Their values, in the same order.
    const VALUES: &'static [Self];
    /// True if case is ignored, as in the logging of 3.8.
    const ANY_CASE: bool = false;
    /// The strings of other programs, for suggestions.
    const OTHERS: &'static [(&'static str, &'static str)] = &[];
}

/// One of a few strings. The empty string counts as absent.
pub struct OneOf<K>(PhantomData<K>);

impl<K: Keyword> ValueType for OneOf<K> {
    type Value = K;
    const SHAPE: Shape = Shape::OneOf(K::NAMES);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<K> {
        let chosen = chosen(cx, key, node, K::NAMES, K::OTHERS, K::ANY_CASE)?;
        K::VALUES.get(chosen).copied()
    }
}

/// One of a few strings that is not checked when it is read, because it may not matter. The empty string counts as absent.
pub struct UncheckedOneOf<K>(PhantomData<K>);

impl<K: Keyword> ValueType for UncheckedOneOf<K> {
    type Value = String;
    const SHAPE: Shape = Shape::OneOf(K::NAMES);
    fn read(cx: &mut DecodeContext<'_>, key: &'static str, node: &Node) -> Option<String> {
        cx.text(key, node).filter(|text| !text.is_empty())
    }
}

/// The value of a keyword that was not checked before, or what is wrong with it and a suggestion.
pub(crate) fn keyword<K: Keyword>(key: &str, text: &str) -> Result<K, (String, String)> {
    let place = K::NAMES.iter().position(|name| *name == text);
    place.and_then(|place| K::VALUES.get(place).copied()).ok_or_else(|| {
        let message = format!("`{key}` must be {}, not the string \"{text}\"", listed(K::NAMES));
        let near = crate::suggest::best_match(text, K::NAMES, K::OTHERS);
        (message, near.map(|near| format!("did you mean \"{near}\"?")).unwrap_or_default())
    })
}

/// The index of the name that is written.
fn chosen(
    cx: &mut DecodeContext<'_>,
    key: &str,
    node: &Node,
    names: &[&'static str],
    others: &[(&'static str, &'static str)],
    any_case: bool,
) -> Option<usize> {
    let text = cx.text(key, node)?;
    if text.is_empty() {
        return None;
    }
    let same = |name: &str| if any_case { name.eq_ignore_ascii_case(&text) } else { name == text };
    let chosen = names.iter().position(|name| same(name));
    if chosen.is_none() {
        let message = format!("`{key}` must be {}, not {}", listed(names), found(node));
        let near = crate::suggest::best_match(&text, names, others);
        let help = near.map(|near| format!("did you mean \"{near}\"?")).unwrap_or_default();
        cx.error(node.span, message, help);
    }
    chosen
}

/// Joins names as alternatives: `"a", "b" or "c"`.
#[must_use]
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    alternatives(&quoted)
}

impl Keyword for Level {
    const NAMES: &'static [&'static str] = &["debug", "info", "warn", "warning", "error", "fatal", "panic"];
    const VALUES: &'static [Self] =
        &[Self::Debug, Self::Info, Self::Warn, Self::Warn, Self::Error, Self::Fatal, Self::Panic];
    const ANY_CASE: bool = true;
    const OTHERS: &'static [(&'static str, &'static str)] = &[
        ("trace", "debug"),
        ("verbose", "debug"),
        ("all", "debug"),
        ("notice", "info"),
        ("critical", "fatal"),
        ("quiet", "error"),
    ];
}

impl Keyword for Format {
    const NAMES: &'static [&'static str] = &["default", "text", "json"];
    const VALUES: &'static [Self] = &[Self::Default, Self::Text, Self::Json];
    const ANY_CASE: bool = true;
}

impl Keyword for Status {
    const NAMES: &'static [&'static str] = &["passing", "warning", "critical"];
    const VALUES: &'static [Self] = &[Self::Passing, Self::Warning, Self::Critical];
}

impl Keyword for OnCompletion {
    const NAMES: &'static [&'static str] = &["continue", "shutdown"];
    const VALUES: &'static [Self] = &[Self::Continue, Self::Shutdown];
}

impl Keyword for RestartOn {
    const NAMES: &'static [&'static str] = &["exit", "failure", "success"];
    const VALUES: &'static [Self] = &[Self::Exit, Self::Failure, Self::Success];
    const OTHERS: &'static [(&'static str, &'static str)] = &[
        ("always", "exit"),
        ("on-exit", "exit"),
        ("on-failure", "failure"),
        ("failed", "failure"),
        ("exitFailed", "failure"),
        ("on-success", "success"),
        ("exitSuccess", "success"),
    ];
}

impl Keyword for OnStartLimit {
    const NAMES: &'static [&'static str] = &["fail", "shutdown"];
    const VALUES: &'static [Self] = &[Self::Fail, Self::Shutdown];
}

impl Keyword for StopScope {
    const NAMES: &'static [&'static str] = &["group", "process"];
    const VALUES: &'static [Self] = &[Self::Group, Self::Process];
    const OTHERS: &'static [(&'static str, &'static str)] =
        &[("control-group", "group"), ("all", "group"), ("mixed", "process"), ("main", "process")];
}

impl Keyword for OnUnhealthy {
    const NAMES: &'static [&'static str] = &["report", "restart"];
    const VALUES: &'static [Self] = &[Self::Report, Self::Restart];
}

/// The scheme of the address of Consul.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Not encrypted.
    Http,
    /// Encrypted.
    Https,
}

impl Keyword for Scheme {
    const NAMES: &'static [&'static str] = &["http", "https"];
    const VALUES: &'static [Self] = &[Self::Http, Self::Https];
}

/// What `do: { maintenance: … }` does (W19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the configuration")]
pub enum Maintenance {
    Enter,
    Exit,
}

impl Keyword for Maintenance {
    const NAMES: &'static [&'static str] = &["enter", "exit"];
    const VALUES: &'static [Self] = &[Self::Enter, Self::Exit];
    const OTHERS: &'static [(&'static str, &'static str)] =
        &[("enable", "enter"), ("on", "enter"), ("disable", "exit"), ("off", "exit"), ("leave", "exit")];
}

/// Which events during a run count (W21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The last one.
    Latest,
    /// Every one.
    All,
}

impl Keyword for Queue {
    const NAMES: &'static [&'static str] = &["latest", "all"];
    const VALUES: &'static [Self] = &[Self::Latest, Self::All];
}

/// The type of a metric (T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the types of Prometheus")]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

impl Keyword for MetricType {
    const NAMES: &'static [&'static str] = &["counter", "gauge", "histogram", "summary"];
    const VALUES: &'static [Self] = &[Self::Counter, Self::Gauge, Self::Histogram, Self::Summary];
}
