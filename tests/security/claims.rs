//! SECURITY.md names tests that exist, and every test of this folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Collects every test of the repository: name and file.
fn tests(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !["target", ".git", "corpus"].iter().any(|other| name == *other) {
                tests(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // The macro `isolated!` turns functions into tests that run in their own process.
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

/// Whether a word between backticks is the name of a test: lower case with at least three underscores.
fn is_test(word: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    word.bytes().all(allowed) && word.matches('_').count() >= 3
}

#[test]
fn every_claim_of_security_md_names_an_existing_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeMap::new();
    for folder in ["src", "crates", "tests"] {
        tests(&root.join(folder), &mut known);
    }
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(|word| is_test(word)).collect();
    let missing: Vec<_> = named.iter().filter(|name| !known.contains_key(**name)).collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that do not exist: {missing:#?}");
    let mut in_claims = false;
    for line in text.lines() {
        in_claims = line.starts_with('|') && (in_claims || line == "| claim | shown by |");
        let header = line == "| claim | shown by |" || line.starts_with("| ---");
        let proof = line.split('`').skip(1).step_by(2).any(is_test);
        assert!(!in_claims || header || proof, "this claim names no test: {line}");
    }
    assert!(named.len() > 50, "too few claims were found: {named:?}");
    // Every test of this folder must be named there, too.
    let here = |file: &String| file.contains("/tests/security/");
    let unnamed: Vec<_> =
        known.iter().filter(|(name, file)| here(file) && !named.contains(name.as_str())).collect();
    assert!(unnamed.is_empty(), "SECURITY.md does not name {unnamed:#?}");
}
