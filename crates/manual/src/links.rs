//! Paths of links, and the anchors of headings.

use std::collections::BTreeMap;

use crate::markdown::{self, plain};

/// Returns true for an address outside of the repository.
#[must_use]
pub fn is_address(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:") || target.starts_with("data:")
}

/// The path, from the root of the repository, of the file that a link on the page `page` refers to. `None` if it is outside.
#[must_use]
pub fn join(page: &str, target: &str) -> Option<String> {
    let (file, _) = split(target);
    if file.is_empty() {
        return Some(page.to_owned());
    }
    if is_address(target) || file.starts_with('/') {
        return None;
    }
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for part in file.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => path.pop().map(drop)?,
            name => path.push(name),
        }
    }
    Some(path.join("/"))
}

/// The file and the anchor of a link; either may be empty.
#[must_use]
pub fn split(target: &str) -> (&str, &str) {
    target.split_once('#').unwrap_or((target, ""))
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
#[must_use]
pub fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = markdown::headings(text).into_iter().map(|heading| anchor(&heading.text));
    let numbered = headings.map(|anchor| {
        let times = seen.entry(anchor.clone()).and_modify(|times| *times += 1).or_default();
        if *times == 0 { anchor } else { format!("{anchor}-{times}") }
    });
    numbered.collect()
}

/// The anchor of a heading that has another text than those before it.
pub(crate) fn anchor(heading: &str) -> String {
    let text = plain(heading).to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

/// The part of a page below the heading with this anchor, up to the next heading of its level.
#[must_use]
pub fn section<'a>(text: &'a str, anchor: &str) -> Option<&'a str> {
    let headings = markdown::headings(text);
    let nth = anchors(text).iter().position(|known| known == anchor)?;
    let first = headings.get(nth)?;
    let mut rest = headings.iter().skip(nth + 1);
    let end = rest.find(|heading| heading.level <= first.level).map_or(text.len(), |heading| heading.start);
    text.get(first.start..end)
}
