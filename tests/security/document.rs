//! SECURITY.md is about this program, and not about a wish.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Every test of the repository, by its name, with the file it stands in.
fn tests(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !["target", ".git", "corpus"].iter().any(|other| name == *other) {
                tests(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // `isolated!` makes tests of functions that run in a process of their own.
            let isolated = text.contains("isolated! {");
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for (nth, line) in lines.iter().enumerate() {
                let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.strip_suffix("() {")) else {
                    continue;
                };
                let marked = lines[..nth]
                    .iter()
                    .rev()
                    .take_while(|line| !line.is_empty() && **line != "}")
                    .any(|line| *line == "#[test]");
                if marked || isolated {
                    found.insert(name.to_owned(), path.display().to_string());
                }
            }
        }
    }
}

/// The names of tests are sentences; nothing else between backticks is.
fn is_test(word: &str) -> bool {
    let sentence = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    word.bytes().all(sentence) && word.matches('_').count() >= 3
}

#[test]
fn every_claim_of_the_document_has_a_test_and_every_test_that_it_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeMap::new();
    for folder in ["src", "crates", "tests"] {
        tests(&root.join(folder), &mut known);
    }
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(|word| is_test(word)).collect();
    let missing: Vec<_> = named.iter().filter(|name| !known.contains_key(**name)).collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that are not there: {missing:#?}");
    let mut in_claims = false;
    for line in text.lines() {
        in_claims = line.starts_with('|') && (in_claims || line == "| claim | shown by |");
        let heads = line == "| claim | shown by |" || line.starts_with("| ---");
        let proof = line.split('`').skip(1).step_by(2).any(is_test);
        assert!(!in_claims || heads || proof, "this claim names no test: {line}");
    }
    assert!(named.len() > 50, "the claims are not read: {named:?}");
    // The other way round: what is tested here is told there.
    let here = |file: &String| file.contains("/tests/security/");
    let untold: Vec<_> =
        known.iter().filter(|(name, file)| here(file) && !named.contains(name.as_str())).collect();
    assert!(untold.is_empty(), "SECURITY.md does not name {untold:#?}");
}
