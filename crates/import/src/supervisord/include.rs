//! Reads the files, and those that `[include] files` names by patterns.

use std::collections::BTreeSet;

use super::expand::{Names, plain};
use crate::document::Document;
use crate::error::ImportError;
use crate::files::{Files, Text, directory, join};
use crate::ini::Ini;

/// The maximum number of included files.
const MAX_FILES: usize = 1000;

/// The files that match a pattern, sorted: `*`, `?` and `[…]` in every part of the path.
fn matching(pattern: &str, files: &dyn Files) -> Vec<String> {
    let mut found = vec![if pattern.starts_with('/') { "/" } else { "" }.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for base in &found {
            if matches!(part, "." | "..") {
                next.push(format!("{base}{part}/"));
                continue;
            }
            let directory = if base.is_empty() { "." } else { base };
            let names = files.list(directory).unwrap_or_default();
            let names = names.iter().filter(|name| matches(part, name));
            next.extend(names.map(|name| format!("{base}{name}/")));
        }
        next.truncate(MAX_FILES + 1);
        found = next;
    }
    let mut found: Vec<String> = found.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
    found.retain(|path| !path.is_empty() && files.list(path).is_none());
    found.sort();
    found
}

/// Whether a name matches a pattern, as Python's `glob` decides it.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on if the rest does not match: after the last `*`, and one character further.
    let mut retry = None;
    loop {
        let (next, matched) = match (pattern.get(p), name.get(n)) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            (Some('?'), Some(_)) => (p + 1, true),
            (Some('['), Some(c)) => match class(&pattern, p) {
                Some((end, inside)) => (end, contains(inside, *c)),
                None => (p + 1, *c == '['),
            },
            (Some(wanted), Some(c)) => (p + 1, wanted == c),
            _ => (p, false),
        };
        if matched {
            (p, n) = (next, n + 1);
            continue;
        }
        match retry {
            Some((after, at)) if at < name.len() => {
                retry = Some((after, at + 1));
                (p, n) = (after, at + 1);
            }
            _ => return false,
        }
    }
}

/// What is between the brackets at `start`, and where the pattern goes on.
fn class(pattern: &[char], start: usize) -> Option<(usize, &[char])> {
    let first = start + 1 + usize::from(pattern.get(start + 1) == Some(&'!'));
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|c| *c == ']')?;
    Some((end + 1, pattern.get(start + 1..end)?))
}

fn contains(class: &[char], c: char) -> bool {
    let (negated, class) = match class {
        ['!', rest @ ..] => (true, rest),
        class => (false, class),
    };
    let range = class.windows(3).any(|range| matches!(range, [from, '-', to] if (*from..=*to).contains(&c)));
    (range || class.contains(&c)) != negated
}

/// Reads all files.
///
/// Also returns the patterns that no file matches.
pub(super) fn read(
    paths: &[String],
    files: &dyn Files,
    document: &mut Document,
) -> Result<(Ini, Vec<String>), ImportError> {
    let (mut ini, mut unmatched) = (Ini::default(), Vec::new());
    let mut done = BTreeSet::new();
    for path in paths {
        for path in in_directory(path, files)? {
            if !done.insert(path.clone()) {
                continue;
            }
            ini.read(&Text::read(files, &path)?, document)?;
            let Some(include) = ini.remove("include") else { continue };
            let Some(entry) = include.options.get("files") else {
                return Err(include.place.error("the section needs `files=`"));
            };
            let mut names = Names::default();
            names.set_text("here", directory(&path));
            // The patterns are relative to this directory anyway.
            let patterns =
                entry.value.replace("%(here)s/", if path.starts_with('/') { "%(here)s/" } else { "" });
            let patterns = names.expand(&patterns).map_err(|why| entry.place.error(why))?;
            let Some(patterns) = plain(&patterns) else {
                document
                    .inexact(&entry.place, "it depends on a variable: name the files as further arguments");
                continue;
            };
            for pattern in patterns.split_whitespace() {
                let pattern = join(directory(&path), pattern);
                let found = matching(&pattern, files);
                if found.is_empty() {
                    document.inexact(
                        &entry.place,
                        format!("no file matches {pattern}: name its files as further arguments"),
                    );
                    unmatched.push(pattern);
                }
                for path in found {
                    if done.len() > MAX_FILES {
                        let why = format!("it includes more than {} files", MAX_FILES);
                        return Err(entry.place.error(why));
                    }
                    if done.insert(path.clone()) {
                        ini.read(&Text::read(files, &path)?, document)?;
                    }
                    if let Some(include) = ini.remove("include") {
                        document
                            .inexact(&include.place, "supervisord does not read this in an included file");
                    }
                }
            }
        }
    }
    Ok((ini, unmatched))
}

/// The files of a path: itself, or what a directory has.
fn in_directory(path: &str, files: &dyn Files) -> Result<Vec<String>, ImportError> {
    let Some(names) = files.list(path) else { return Ok(vec![path.to_owned()]) };
    let names: Vec<String> = match names.iter().any(|name| name == "supervisord.conf") {
        true => vec!["supervisord.conf".to_owned()],
        false => names.into_iter().filter(|name| name.ends_with(".conf") || name.ends_with(".ini")).collect(),
    };
    if names.is_empty() {
        let message = "the directory has no supervisord.conf, and no other file *.conf or *.ini";
        return Err(ImportError::Empty { path: path.to_owned(), message: message.into() });
    }
    Ok(names.iter().map(|name| join(path, name)).collect())
}
