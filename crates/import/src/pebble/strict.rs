//! The keys of a layer and their types. Pebble refuses a layer with any other key or type.

use std::time::Duration;

use crate::durations;
use crate::error::ImportError;
use crate::yaml::{YamlEntry, YamlNode};

/// What a key takes.
pub(super) enum Is {
    Text,
    Texts,
    Variables,
    Integer,
    Number,
    Duration,
    OneOf(&'static [&'static str]),
    Object(&'static [(&'static str, Is)]),
}

const OVERRIDE: Is = Is::OneOf(&["merge", "replace"]);
const ON_CHECK_FAILURE: Is = Is::OneOf(&["restart", "shutdown", "ignore", "success-shutdown"]);

pub(super) const SERVICE: &[(&str, Is)] = &[
    ("summary", Is::Text),
    ("description", Is::Text),
    ("startup", Is::Text),
    ("override", OVERRIDE),
    ("command", Is::Text),
    ("after", Is::Texts),
    ("before", Is::Texts),
    ("requires", Is::Texts),
    ("workload", Is::Text),
    ("environment", Is::Variables),
    ("user-id", Is::Integer),
    ("user", Is::Text),
    ("group-id", Is::Integer),
    ("group", Is::Text),
    ("working-dir", Is::Text),
    ("on-success", Is::OneOf(&["restart", "shutdown", "ignore", "failure-shutdown"])),
    ("on-failure", Is::OneOf(&["restart", "shutdown", "ignore", "success-shutdown"])),
    ("on-check-failure", Is::Variables),
    ("backoff-delay", Is::Duration),
    ("backoff-factor", Is::Number),
    ("backoff-limit", Is::Duration),
    ("kill-delay", Is::Duration),
];

pub(super) const CHECK: &[(&str, Is)] = &[
    ("override", OVERRIDE),
    ("level", Is::OneOf(&["alive", "ready"])),
    ("startup", Is::OneOf(&["enabled", "disabled"])),
    ("period", Is::Duration),
    ("timeout", Is::Duration),
    ("threshold", Is::Integer),
    ("http", Is::Object(&[("url", Is::Text), ("headers", Is::Variables)])),
    ("tcp", Is::Object(&[("port", Is::Integer), ("host", Is::Text)])),
    (
        "exec",
        Is::Object(&[
            ("command", Is::Text),
            ("service-context", Is::Text),
            ("environment", Is::Variables),
            ("user-id", Is::Integer),
            ("user", Is::Text),
            ("group-id", Is::Integer),
            ("group", Is::Text),
            ("working-dir", Is::Text),
        ]),
    ),
];

pub(super) const LOG_TARGET: &[(&str, Is)] = &[
    ("type", Is::OneOf(&["loki", "opentelemetry", "syslog"])),
    ("location", Is::Text),
    ("services", Is::Texts),
    ("override", OVERRIDE),
    ("labels", Is::Variables),
];

/// Refuses a section whose items have other keys or types than these.
///
/// # Errors
/// If there is one.
pub(super) fn section(section: &YamlEntry, keys: &[(&str, Is)]) -> Result<(), ImportError> {
    if section.value.is_null() {
        return Ok(());
    }
    let items = section.value.map().ok_or_else(|| expected(section, "a mapping"))?;
    for item in items {
        object(item, keys)?;
        for action in item.value.get("on-check-failure").and_then(YamlNode::map).into_iter().flatten() {
            value(action, &ON_CHECK_FAILURE)?;
        }
    }
    Ok(())
}

pub(super) fn duration(node: &YamlNode) -> Option<Duration> {
    durations::go(node.text()?)
}

fn object(entry: &YamlEntry, keys: &[(&str, Is)]) -> Result<(), ImportError> {
    let map = entry.value.map().ok_or_else(|| expected(entry, "a mapping"))?;
    for key in map {
        let Some((_, is)) = keys.iter().find(|(known, _)| *known == key.key) else {
            return Err(key.error(format!("Pebble does not know the key `{}`: remove it", key.key)));
        };
        if !key.value.is_null() {
            value(key, is)?;
        }
    }
    Ok(())
}

fn value(entry: &YamlEntry, is: &Is) -> Result<(), ImportError> {
    let node = &entry.value;
    let text = node.text();
    let scalar = |node: &YamlNode| node.kind().is_some();
    let (valid, wanted) = match is {
        Is::Text => (scalar(node), "a text"),
        Is::Texts => (node.list().is_some_and(|items| items.iter().all(scalar)), "a list of texts"),
        Is::Variables => {
            let valid = node.map().is_some_and(|map| map.into_iter().all(|member| scalar(&member.value)));
            (valid, "a mapping of texts")
        }
        Is::Integer => (node.integer().is_some(), "a whole number"),
        Is::Number => (text.is_some_and(|text| text.parse::<f64>().is_ok()), "a number"),
        Is::Duration => (duration(node).is_some(), "a duration such as `10s`"),
        Is::OneOf(words) => {
            return match text.is_some_and(|text| text.is_empty() || words.contains(&text)) {
                true => Ok(()),
                false => Err(expected(entry, &format!("one of {}", words.join(", ")))),
            };
        }
        Is::Object(keys) => return object(entry, keys),
    };
    if valid { Ok(()) } else { Err(expected(entry, wanted)) }
}

fn expected(entry: &YamlEntry, wanted: &str) -> ImportError {
    let given = match entry.value.text() {
        Some(text) => format!("`{text}`"),
        None => entry.value.what().to_owned(),
    };
    entry.error(format!("`{}` takes {wanted}, not {given}", entry.key))
}
