//! Unknown keys (C4): which are ignored, and the error for the others with the nearest known key.

use crate::decode::describe::alternatives;
use crate::decode::field_table::{SectionInfo, Shape};
use crate::suggest;

/// The tables of whole files. An unknown key may belong to another section, or to another version.
#[derive(Debug)]
pub struct Roots {
    /// The table of a configuration.
    pub current: &'static SectionInfo,
    /// The table of a ContainerPilot 2 file.
    pub legacy: &'static SectionInfo,
    /// The key at the top of a ContainerPilot 2 file that is closest to a word.
    pub nearest_legacy_key: fn(&str) -> Option<&'static str>,
}

/// The names of keys in other programs and in older versions: name, and key here.
const OTHER_NAMES: [(&str, &str); 29] = [
    ("command", "exec"),
    ("cmd", "exec"),
    ("run", "exec"),
    ("program", "exec"),
    ("entrypoint", "exec"),
    ("healthcheck", "health"),
    ("check", "health"),
    ("depends_on", "when"),
    ("dependsOn", "when"),
    ("after", "when"),
    ("once", "event"),
    ("each", "event"),
    ("src", "source"),
    ("from", "source"),
    ("poll", "interval"),
    ("period", "interval"),
    ("every", "interval"),
    ("workdir", "cwd"),
    ("working_dir", "cwd"),
    ("host", "address"),
    ("url", "address"),
    ("labels", "tags"),
    ("datacenter", "dc"),
    ("sensors", "metrics"),
    ("metrics", "sensors"),
    ("interval", "poll"),
    ("frequency", "poll"),
    ("exec", "command"),
    ("exec", "health"),
];

/// Returns true for keys that are ignored in every section: `x-` notes, and the schema for editors (C4).
pub(super) fn is_ignored_key(key: &str) -> bool {
    key == "$schema" || key.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
}

/// The message and the help for a key that is unknown in a section.
pub(super) fn unknown_key(info: &SectionInfo, key: &str, roots: Option<&Roots>) -> (String, String) {
    (format!("unknown key `{key}` in {}", info.name), suggestion(info, key, roots))
}

/// What to do about a key that is unknown in a section.
fn suggestion(info: &SectionInfo, key: &str, roots: Option<&Roots>) -> String {
    let known: Vec<&str> = info.fields.iter().map(|field| field.key).collect();
    if let Some(same) = known.iter().find(|known| known.eq_ignore_ascii_case(key)) {
        return format!("did you mean `{same}`?");
    }
    let has = |inner: &SectionInfo| inner.fields.iter().any(|field| field.key.eq_ignore_ascii_case(key));
    // A key of an action, such as `restart`, is more often a misspelled key of the job.
    let own = info.fields.iter().filter(|field| field.key != "do");
    let inner = || own.clone().filter(|field| field.shape.section().is_some_and(has));
    if let Some(first) = inner().next() {
        let names: Vec<String> = inner().map(|field| format!("`{}`", field.key)).collect();
        let example = match first.shape {
            Shape::List(_) => format!("{}: [ {{ {key}: … }} ]", first.key),
            _ => format!("{}: {{ {key}: … }}", first.key),
        };
        return format!("move it into {}: {example}", alternatives(&names));
    }
    if let Some(meant) = suggest::best_match(key, &known, &OTHER_NAMES) {
        return format!("did you mean `{meant}`?");
    }
    let similar = known.iter().filter(|known| is_prefix(key, known) || is_prefix(known, key));
    let similar: Vec<String> = similar.map(|known| format!("`{known}`")).collect();
    if !similar.is_empty() {
        return format!("did you mean {}?", alternatives(&similar));
    }
    let mut elsewhere = Vec::new();
    if let Some(roots) = roots {
        if info.title == roots.current.title
            && let Some(near) = (roots.nearest_legacy_key)(key)
        {
            return format!("did you mean `{near}`, of ContainerPilot 2?");
        }
        let is_legacy = info.title.starts_with("ContainerPilot 2");
        owners(if is_legacy { roots.legacy } else { roots.current }, key, true, &mut elsewhere);
    }
    let keys = format!("{} has these keys: {}", info.name, known.join(", "));
    if elsewhere.is_empty() { keys } else { format!("it is a key of {}; {keys}", alternatives(&elsewhere)) }
}

/// Returns true if a word of at least two letters is the start of another one.
fn is_prefix(short: &str, long: &str) -> bool {
    short.len() >= 2 && long.get(..short.len()).is_some_and(|start| start.eq_ignore_ascii_case(short))
}

/// Collects the sections that have a key.
fn owners(info: &SectionInfo, key: &str, top: bool, found: &mut Vec<String>) {
    for (field, inner) in info.fields.iter().filter_map(|field| Some((field, field.shape.section()?))) {
        let alone = top && matches!(field.shape, Shape::Object(_) | Shape::ObjectOrText(_));
        let name = format!("{}{}", inner.name, if alone { " at the top of the file" } else { "" });
        let has = inner.fields.iter().any(|field| field.key.eq_ignore_ascii_case(key));
        if has && !found.contains(&name) {
            found.push(name);
        }
        owners(inner, key, false, found);
    }
}
