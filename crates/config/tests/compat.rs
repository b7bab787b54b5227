//! `docs/compat.md` lists the same deviations from 3.8 as the golden cases, and every other row has a test.
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

/// The text of all sources below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// `tests/compat_tests.txt` has the name of each row and of the tests that prove it.
#[test]
fn c3_every_row_beyond_the_golden_cases_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/compat.md")).unwrap();
    let headings = [
        "## What they cannot show",
        "## The control socket",
        "## Reload",
        "## Discovery",
        "## Telemetry",
        "## How jobs are run",
        "## ContainerPilot 2 files",
    ];
    // The table of texts has its own test: `l1_texts_that_scripts_look_for_are_in_the_log`.
    let is_name =
        |name: &String| name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-0123456789".contains(&byte));
    let rows: Vec<String> =
        headings.iter().flat_map(|heading| rows(&page, heading)).filter(is_name).collect();
    let listed = std::fs::read_to_string(root.join("tests/compat_tests.txt")).unwrap();
    let (mut all, mut names) = (String::new(), Vec::new());
    sources(&root.join("tests"), &mut all);
    sources(&root.join("crates"), &mut all);
    for line in listed.lines() {
        let mut words = line.split(' ');
        names.push(words.next().unwrap().to_owned());
        let tests: Vec<&str> = words.collect();
        assert!(!tests.is_empty(), "{line}");
        for test in tests {
            assert!(
                all.contains(&format!("fn {test}()")),
                "there is no test `{test}` for the row `{}`",
                names[names.len() - 1]
            );
        }
    }
    assert_eq!(names, rows, "left: tests/compat_tests.txt; right: docs/compat.md");
}
