//! The reference page of the manual, generated from the table of fields.

use std::fmt::Write;

use crate::decode::{DefaultValue, Section, SectionInfo, Shape};
use crate::fields::ConfigFields;
use crate::legacy::fields::LegacyFields;
use crate::schema::collect;
use crate::values::{EVENT_NAMES, listed};

/// The page, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut sections: Vec<&SectionInfo> = Vec::new();
    collect(&ConfigFields::INFO, &mut sections);
    let mut out = String::from(
        "# Reference: every key of a configuration\n\n\
         This page is generated from the table of fields of the program. Rules such as W6 are explained in \
         [rules](rules.md).\n\n\
         Every object may also have the key `$schema` and keys that start with `x-`, which are ignored. For the syntax of \
         values, such as durations and commands, see [configuration](configuration.md#generous-values).\n",
    );
    let current = sections.len();
    collect(&LegacyFields::INFO, &mut sections);
    let (sections, legacy) = sections.split_at(current);
    tables(&mut out, sections);
    events(&mut out);
    out.push_str(
        "\n## Files of ContainerPilot 2\n\n\
         A file with keys of version 2 is decoded with these tables; see \
         [Come from ContainerPilot 2](how-to/from-2.md). Sections that are not listed here are the same as above.\n",
    );
    tables(&mut out, legacy);
    out
}

/// The tables of a section and of all sections that it refers to.
#[must_use]
pub fn tables_of(top: &'static SectionInfo) -> String {
    let mut sections: Vec<&SectionInfo> = Vec::new();
    collect(top, &mut sections);
    let mut out = String::new();
    tables(&mut out, &sections);
    out
}

fn tables(out: &mut String, sections: &[&SectionInfo]) {
    for info in sections {
        let _ = write!(out, "\n## {}\n\n{}\n\n", info.title, info.help);
        out.push_str("| key | type | default | meaning | rules |\n| --- | --- | --- | --- | --- |\n");
        for field in info.fields {
            let default = match field.default {
                DefaultValue::None => String::new(),
                DefaultValue::Is(text) => format!("`{text}`"),
                DefaultValue::Says(text) => text.to_owned(),
                DefaultValue::Required => "required".to_owned(),
            };
            let _ = writeln!(
                out,
                "| `{}` | {} | {default} | {} | {} |",
                field.key,
                words(field.shape).replace('|', "\\|"),
                field.help.replace('|', "\\|"),
                field.rules
            );
        }
    }
}

fn events(out: &mut String) {
    out.push_str(
        "\n## Events\n\nThe events that `when` can wait for.\n\n| event | source | sent |\n| --- | --- | --- |\n",
    );
    for (event, source, meaning) in EVENTS {
        let _ = writeln!(out, "| `{event}` | {source} | {meaning} |");
    }
    out.push_str(
        "\nSignals to the supervisor are also sources. They need no event: `when: { source: \"SIGHUP\" }`. Every signal that can be caught \
         may be one, except SIGCHLD and those in `stopOn`.\n",
    );
}

const EVENT: &str = "[event](#events)";

/// The events: name, source, and when they are sent (E1).
pub const EVENTS: [(&str, &str, &str); 19] = [
    ("startup", "none", "when the supervisor is ready"),
    ("shutdown", "none", "when the supervisor shuts down"),
    ("enterMaintenance", "none", "when maintenance mode starts"),
    ("exitMaintenance", "none", "when maintenance mode ends"),
    ("exitSuccess", "a job", "when its process exits with code 0, or as `successCodes` says"),
    ("exitFailed", "a job", "when its process exits in another way, or cannot be started"),
    ("crashLoop", "a job with `startLimit`", "when it would be started more often than that, and fails"),
    ("stopping", "a job", "when the job starts to stop"),
    ("stopped", "a job", "when the job has ended and will not run again"),
    (
        "healthy",
        "a job with `health`, or a watch",
        "when a check passes and the job is healthy; when the instances of the watch change and there are some, or what it watches is there again",
    ),
    (
        "unhealthy",
        "a job with `health`, or a watch",
        "when a check fails and the job is unhealthy; when the watch has no instances any more, or what it watches is gone or does not respond",
    ),
    ("becameHealthy", "a job with `health`", "when it is healthy and was not"),
    ("becameUnhealthy", "a job with `health`", "when it is unhealthy and was not"),
    (
        "ready",
        "a job with `ready`",
        "when its process tells that it is ready, also after a reload of its own configuration",
    ),
    (
        "changed",
        "a watch, a file",
        "when the instances or the contents of what it watches change, or when a new text was written to the file",
    ),
    ("failed", "a file", "when the file could not be rendered or its test failed; it keeps its old text"),
    ("acquired", "a lock", "when this supervisor has got the lock"),
    ("lost", "a lock", "when this supervisor does not have the lock any longer, or gives it up in time"),
    ("timerExpired", "a job with `when.timeout`", "when the timeout passes before the job has started"),
];

/// The description of a type.
fn words(shape: Shape) -> String {
    let link = |info: &SectionInfo| {
        let kept = info.title.to_ascii_lowercase().replace(' ', "-");
        let anchor: String = kept.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        format!("[{}](#{anchor})", info.title)
    };
    let section = shape.section().map(link).unwrap_or_default();
    match shape {
        Shape::Text => "string".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::Whole { min, max } => format!("integer, {min} to {max}"),
        Shape::Ports => "integer, 0 to 65535, or a range in quotes".to_owned(),
        Shape::Size => "bytes or size with a unit".to_owned(),
        Shape::Duration => "seconds or duration".to_owned(),
        Shape::DurationWithUnit => "duration with a unit".to_owned(),
        Shape::DurationOrNever => "seconds, duration or \"never\"".to_owned(),
        Shape::Command => "command: string or list".to_owned(),
        Shape::Words => "list of strings".to_owned(),
        Shape::Numbers => "list of numbers".to_owned(),
        Shape::WordOrWords => "string or list of strings".to_owned(),
        Shape::OneOf(names) if names == EVENT_NAMES => EVENT.to_owned(),
        Shape::OneOf(names) => listed(names),
        Shape::EventOrFlag(_) => format!("{EVENT} or boolean"),
        Shape::Map => "object of strings".to_owned(),
        Shape::Variables => "object of strings or null".to_owned(),
        Shape::Restarts => "integer, \"never\" or \"unlimited\"".to_owned(),
        Shape::Principal => "name or numeric id".to_owned(),
        Shape::Mode => "octal digits in quotes".to_owned(),
        Shape::Limits => "object of limits by resource".to_owned(),
        Shape::Capabilities => "list of capabilities".to_owned(),
        Shape::PathsOrObjects(_) => format!("path, object or list: {section}"),
        Shape::MapOf(_) => format!("object of objects by name: {section}"),
        Shape::Object(_) => format!("object: {section}"),
        Shape::List(_) => format!("list of objects: {section}"),
        Shape::OneOrMany(_) => format!("object or list of objects: {section}"),
        Shape::DurationOrObject(_) => format!("duration or object: {section}"),
        Shape::ObjectOrBool(_) => format!("object, true or false: {section}"),
        Shape::ObjectOrText(_) => format!("string or object: {section}"),
        Shape::TextsOrObjects(_) => format!("list of strings or objects: {section}"),
        Shape::ObjectOrWord(_, word) => format!("object or \"{word}\": {section}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_every_event_is_documented() {
        assert_eq!(EVENTS.map(|(event, _, _)| event), EVENT_NAMES);
    }
}
