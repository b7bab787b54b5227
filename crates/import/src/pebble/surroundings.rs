//! The variables, user, group and directory of a service or a check.

use crate::document::{Document, Field, Fields, Value};
use crate::yaml::{Map, YamlEntry};

/// The variables of a service, or of a check after those of its service. A later one replaces an earlier one.
pub(super) fn variables(sources: &[&Map]) -> Vec<Field> {
    let mut env = Vec::new();
    for variables in sources.iter().filter_map(|source| source.get("environment")?.map()) {
        for variable in variables {
            env.set(&variable.key, variable.value.text().unwrap_or_default(), Some(&variable.place()));
        }
    }
    env
}

/// Sets the keys of a job from those of a service, or of a check after those of its service.
pub(super) fn set(fields: &mut Vec<Field>, env: Vec<Field>, sources: &[&Map], document: &mut Document) {
    if !env.is_empty() {
        let from = sources.iter().rev().find_map(|source| source.entry("environment")).map(YamlEntry::place);
        fields.set("env", Value::Object(env), from.as_ref());
    }
    for (key, id, target) in [("user", "user-id", "user"), ("group", "group-id", "group")] {
        let (name, number) = (given(sources, key), given(sources, id));
        if let (Some((_, named)), Some((entry, _))) = (name, number) {
            document.not_needed(&entry.place(), format!("`{key}: {named}` names the same {target}"));
        }
        if let Some((entry, value)) = name.or(number) {
            fields.set(target, value, Some(&entry.place()));
        }
    }
    if let Some((entry, directory)) = given(sources, "working-dir") {
        fields.set("cwd", directory, Some(&entry.place()));
    }
}

/// The last value of a key that is not empty.
pub(super) fn given<'a>(sources: &[&'a Map], key: &str) -> Option<(&'a YamlEntry, &'a str)> {
    sources.iter().rev().find_map(|source| {
        let entry = source.entry(key)?;
        Some((entry, entry.value.text().filter(|text| !text.is_empty())?))
    })
}
