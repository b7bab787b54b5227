//! `docs/compat.md` lists the same deviations from 3.8 as the golden cases.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::BTreeSet;
use std::path::Path;

/// The deviations in the sources of the conformance tests.
fn named() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for before in ["Deviates(\"", "Some(\"", "then_some(\""] {
            let found = source.split(before).skip(1).filter_map(|after| after.split_once('"'));
            // Only a string that is the whole argument is the name of a deviation.
            names.extend(found.filter(|(_, after)| after.starts_with(')')).map(|(name, _)| name.to_owned()));
        }
    }
    names
}

/// The names in the first column of a section's table.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let section = page.split(heading).nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.map(str::to_owned).collect()
}

#[test]
fn c3_every_deviation_has_a_row_and_every_row_a_deviation() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compat.md");
    let page = std::fs::read_to_string(page).unwrap();
    let golden = rows(&page, "## What the golden cases show");
    let beyond = rows(&page, "## What they cannot show");
    let listed: BTreeSet<String> = golden.iter().cloned().collect();
    assert_eq!(named(), listed, "left: the conformance tests; right: docs/compat.md");
    let all: BTreeSet<&String> = golden.iter().chain(&beyond).collect();
    assert_eq!(all.len(), golden.len() + beyond.len(), "a name is listed twice");
    assert!(!beyond.is_empty());
}
