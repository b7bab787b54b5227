//! The files of a directory of layers.

use std::collections::BTreeSet;

use crate::ImportError;
use crate::files::Files;

/// The layers of a directory in the order of their numbers, or the path itself.
///
/// # Errors
/// If a file has a name that Pebble refuses.
pub(super) fn layers(path: &str, files: &dyn Files) -> Result<Vec<String>, ImportError> {
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
