//! `[include] files`: the files that match patterns.

use crate::files::Files;

/// The maximum number of included files.
pub(super) const MAX_FILES: usize = 1000;

/// The files that match a pattern, sorted: `*`, `?` and `[…]` in every part of the path.
pub(super) fn matching(pattern: &str, files: &dyn Files) -> Vec<String> {
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
