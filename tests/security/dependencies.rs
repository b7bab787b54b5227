//! Licences, duplicates and sources of the dependencies: the part of `make deny` that needs no extra tool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::deadline::InTime;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The strings in a list of deny.toml.
fn deny_list(key: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let begin = format!("{key} = [");
    let lines = text.lines().skip_while(|line| **line != begin).skip(1).take_while(|line| *line != "]");
    let quoted = |line: &str| line.split('"').nth(1).map(str::to_owned);
    lines.filter(|line| !line.trim_start().starts_with('#')).filter_map(quoted).collect()
}

/// All packages of the build for this platform.
fn packages() -> Vec<Value> {
    let cargo = |args: &[&str]| {
        let output = Command::new(env!("CARGO")).args(args).current_dir(root()).output_in_time().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let text =
        cargo(&["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host]);
    let metadata: Value = serde_json::from_str(&text).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Whether an SPDX expression (names, `AND`, `OR`, parentheses) is satisfied by the allowed licences.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.trim();
    // Splits at `word` outside parentheses.
    let split = |word: &str| {
        let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
        for (at, letter) in expression.char_indices() {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            if depth == 0 && expression[at..].starts_with(word) {
                parts.push(&expression[start..at]);
                start = at + word.len();
            }
        }
        parts.push(&expression[start..]);
        parts
    };
    let (all, any) = (split(" AND "), split(" OR "));
    if any.len() > 1 {
        return any.iter().any(|part| is_allowed(part, allowed));
    }
    if all.len() > 1 {
        return all.iter().all(|part| is_allowed(part, allowed));
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner, allowed),
        None => allowed.contains(expression),
    }
}

#[test]
fn all_licences_are_in_the_allow_list() {
    let allowed = deny_list("allow");
    assert!(allowed.contains("MPL-2.0"), "{allowed:?}");
    assert!(is_allowed("(MIT OR GPL-2.0) AND ISC", &allowed) && !is_allowed("MIT AND GPL-2.0", &allowed));
    assert!(!is_allowed("", &allowed));
    for package in packages() {
        // The old form `MIT/Apache-2.0` means OR.
        let licence =
            package["license"].as_str().unwrap_or_default().replace(" / ", "/").replace('/', " OR ");
        assert!(
            is_allowed(&licence, &allowed),
            "{} {} has the licence {licence:?}",
            package["name"],
            package["version"]
        );
    }
}

#[test]
fn no_crate_has_two_versions() {
    let accepted = deny_list("skip");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap().to_owned();
        versions.entry(name).or_default().insert(package["version"].to_string());
    }
    let duplicates: Vec<_> =
        versions.iter().filter(|(name, all)| all.len() > 1 && !accepted.contains(*name)).collect();
    assert!(duplicates.is_empty(), "{duplicates:?}");
}

#[test]
fn every_crate_comes_from_crates_io_with_a_checksum() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for package in lock.split("[[package]]").skip(1) {
        let field = |key: &str| {
            package
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .map(|value| value.trim_matches(['"', ' ', '=']))
        };
        let name = field("name").unwrap();
        match field("source") {
            None => assert!(name.starts_with("containerpilot"), "{name} has no source"),
            Some(source) => {
                assert!(
                    source.starts_with("registry+") && source.ends_with("/crates.io-index"),
                    "{name}: {source}"
                );
                assert!(field("checksum").is_some_and(|sum| sum.len() == 64), "{name} has no checksum");
            }
        }
    }
    let settings = fs::read_to_string(root().join(".cargo/config.toml")).unwrap_or_default();
    assert!(!settings.contains("[source") && !settings.contains("[patch"), "a dependency has another source");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("git = ") && !manifest.contains("[patch"), "a dependency has another source");
}
