//! Reads layers: files, and directories of files.

use std::collections::BTreeSet;

use super::strict;
use crate::document::Document;
use crate::error::ImportError;
use crate::files::Files;
use crate::merge::Loader;
use crate::yaml::{self, Map, YamlEntry, YamlNode};

/// The layers of a directory in the order of their numbers, or the path itself.
///
/// # Errors
/// If a file has a name that Pebble refuses.
fn layers_at(path: &str, files: &dyn Files) -> Result<Vec<String>, ImportError> {
    let Some(names) = files.list(path) else { return Ok(vec![path.to_owned()]) };
    let inside = |directory: &str, name: &str| format!("{}/{name}", directory.trim_end_matches('/'));
    let directory = match names.iter().any(|name| name == "layers") {
        true => inside(path, "layers"),
        false => path.to_owned(),
    };
    let mut found = Vec::new();
    for name in in_order(&directory, files)? {
        let path = inside(&directory, &name);
        match files.list(&path) {
            None => found.push(path),
            Some(_) => {
                for name in in_order(&path, files)? {
                    found.push(inside(&path, &name));
                }
            }
        }
    }
    Ok(found)
}

/// The names of the layers in a directory, and of the directories of further layers.
fn in_order(directory: &str, files: &dyn Files) -> Result<Vec<String>, ImportError> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let refused = |name: &str, why: &str| {
        let path = format!("{}/{name}", directory.trim_end_matches('/'));
        Err(ImportError::Invalid { file: path, line: 1, message: why.to_owned() })
    };
    for name in files.list(directory).unwrap_or_default() {
        let Some(stem) = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".d")) else { continue };
        let Some((number, label)) = stem.split_once('-').filter(|(number, label)| is_layer(number, label))
        else {
            return refused(&name, "Pebble refuses this name: a layer has a name such as `001-base.yaml`");
        };
        if !seen.insert(number.to_owned()) || !seen.insert(label.to_owned()) {
            return refused(&name, "Pebble refuses a second layer with this number or label: rename it");
        }
        found.push(name);
    }
    Ok(found)
}

/// Whether a name is valid: three digits, and a label of at least three letters, digits and single dashes.
fn is_layer(number: &str, label: &str) -> bool {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    number.len() == 3
        && number.chars().all(|c| c.is_ascii_digit())
        && label.starts_with(|c: char| c.is_ascii_lowercase())
        && label.chars().all(valid)
        && !label.contains("--")
        && !label.ends_with('-')
        && label.chars().filter(|c| *c != '-').count() >= 3
}

/// The services and checks of all layers.
pub(super) fn read(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(Map, Map), ImportError> {
    let mut loader = Loader::new(files);
    let (mut services, mut checks) = (Map::default(), Map::default());
    let mut layers = Vec::new();
    for path in paths {
        layers.extend(layers_at(path, files)?);
    }
    for path in layers {
        for layer in yaml::read(files, &path)? {
            let Some(layer) = layer.map() else {
                if layer.is_null() {
                    continue;
                }
                return Err(layer.error(format!("a layer is a mapping, not {}", layer.what())));
            };
            for section in layer {
                match section.key.as_str() {
                    "summary" | "description" => {
                        document.not_needed(&section.place(), "only a description");
                    }
                    "services" => {
                        strict::section(section, strict::SERVICE)?;
                        combine(&mut services, section, &mut loader)?;
                    }
                    "checks" => {
                        strict::section(section, strict::CHECK)?;
                        combine(&mut checks, section, &mut loader)?;
                    }
                    "log-targets" => {
                        strict::section(section, strict::LOG_TARGET)?;
                        let why = "the log of the container goes to stdout; for OpenTelemetry use `otlp: { endpoint: … }`";
                        document.inexact(&section.place(), why);
                    }
                    "workloads" => {
                        document.inexact(&section.place(), "write its environment and user in the jobs");
                    }
                    "pairing" => {
                        document.inexact(&section.place(), "only the owner of the control socket has access");
                    }
                    key => {
                        return Err(
                            section.error(format!("Pebble does not know the section `{key}`: remove it"))
                        );
                    }
                }
            }
        }
    }
    Ok((services, checks))
}

/// Adds the services or checks of a layer: `override` says how.
fn combine(all: &mut Map, section: &YamlEntry, loader: &mut Loader<'_>) -> Result<(), ImportError> {
    for entry in section.value.map().into_iter().flatten() {
        let value = match (entry.value.get("override").and_then(YamlNode::text), all.get(&entry.key)) {
            (Some("merge"), Some(old)) => loader.merge_values(old, &entry.value)?,
            (Some("merge" | "replace"), _) => entry.value.clone(),
            _ => {
                return Err(
                    entry.error(format!("`{}` needs `override: replace` or `override: merge`", entry.key))
                );
            }
        };
        all.set(entry.with(value));
    }
    Ok(())
}
