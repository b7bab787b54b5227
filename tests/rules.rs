//! `docs/rules.md` defines every rule code that is used, and every rule is proved by a test that names it.
//!
//! A code is a letter and a number, such as W7. It counts where it is written for a reader: in a comment, in the name of a
//! test (`w7_…`, or `p3_p9_…` for two rules), in a list of rules of the field table (`"W2, W7"`), and in the text of a Markdown
//! page outside of code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LETTERS: &str = "PEWSHDCRBXTL";
const FOLDERS: [&str; 8] = ["benches", "crates", "docs", "examples", "fuzz", "scripts", "src", "tests"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust sources and Markdown pages, without build results.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root().join(folder)).collect();
    let top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    files.extend(top.filter(|path| path.is_file() && is_text(path)));
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if is_text(&path) {
                files.push(path);
            }
        }
    }
    files
}

fn is_text(path: &Path) -> bool {
    is_page(path) || path.extension().is_some_and(|extension| extension == "rs")
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// All Markdown pages.
pub(crate) fn markdown_pages() -> Vec<PathBuf> {
    files().into_iter().filter(|path| is_page(path)).collect()
}

/// The rule that a word names, in upper case.
fn rule(word: &str) -> Option<String> {
    let word = word.to_ascii_uppercase();
    let (letter, number) = word.split_at_checked(1)?;
    let is_number = (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    (LETTERS.contains(letter) && is_number).then_some(word)
}

/// The rules that a text names. A word that belongs to a larger one, such as a path or a version, does not count.
fn codes(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '/' | '+' | '#')));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).filter_map(rule)
}

/// The rules in the name of a function, if a line begins one: `w7` and `w8` of `fn w7_w8_events_are_kept()`.
fn codes_of_test(line: &str) -> Vec<String> {
    let Some((_, name)) = line.split_once("fn ") else { return Vec::new() };
    let parts: Vec<&str> = name.split('(').next().unwrap_or_default().split('_').collect();
    // The last part is never a code: `fn w7()` says nothing.
    let leading = parts[..parts.len() - 1].iter().map_while(|part| {
        let is_lower = part.starts_with(|c: char| c.is_ascii_lowercase());
        is_lower.then(|| rule(part)).flatten()
    });
    leading.collect()
}

/// The rules in literals that hold nothing else, such as `"W2, W7"`.
fn codes_of_literals(line: &str) -> Vec<String> {
    let literals = line.split('"').skip(1).step_by(2);
    let lists = literals.filter_map(|literal| {
        literal.split(", ").map(|word| rule(word).filter(|code| code == word)).collect::<Option<Vec<_>>>()
    });
    lists.flatten().collect()
}

/// The text of a line of Markdown without what is between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn defined() -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let headings: Vec<String> = page.lines().filter_map(|line| rule(line.strip_prefix("### ")?)).collect();
    let rules: BTreeSet<String> = headings.iter().cloned().collect();
    assert_eq!(headings.len(), rules.len(), "docs/rules.md defines a rule twice");
    rules
}

/// Every use of a rule with its place; and the rules that tests name.
fn used() -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (mut uses, mut tested) = (BTreeMap::new(), BTreeSet::new());
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_page = is_page(&path);
        let mut in_block = false;
        for (nth, line) in text.lines().enumerate() {
            let found = if is_page {
                in_block ^= line.trim_start().starts_with("```");
                if in_block { Vec::new() } else { codes(&without_code(line)).collect() }
            } else {
                let named = codes_of_test(line);
                tested.extend(named.iter().cloned());
                let comment = line.split_once("//").map_or("", |(_, comment)| comment);
                named.into_iter().chain(codes(comment)).chain(codes_of_literals(line)).collect()
            };
            for code in found {
                uses.entry(code).or_insert_with(|| format!("{}:{}", path.display(), nth + 1));
            }
        }
    }
    (uses, tested)
}

#[test]
fn every_rule_that_is_used_is_defined() {
    let defined = defined();
    let (uses, _) = used();
    let unknown: Vec<_> = uses.iter().filter(|(code, _)| !defined.contains(*code)).collect();
    assert!(unknown.is_empty(), "not defined in docs/rules.md: {unknown:#?}");
    assert!(uses.len() > 50, "{uses:?}");
}

#[test]
fn every_rule_has_a_test_that_names_it() {
    let (_, tested) = used();
    let untested: Vec<_> = defined().into_iter().filter(|code| !tested.contains(code)).collect();
    assert!(untested.is_empty(), "no test function is named after these rules: {untested:?}");
}

#[test]
fn codes_are_told_from_other_words() {
    let found = |text| codes(text).collect::<Vec<_>>();
    assert_eq!(found("W7 and (S2), but not U1, W123, W7x, T-1000 or x/P2"), ["W7", "S2"]);
    assert_eq!(codes_of_test("    fn p3_p9_a_user() {"), ["P3", "P9"]);
    assert_eq!(codes_of_test("fn l1()"), [""; 0]);
    assert_eq!(codes_of_literals("help: Text = \"help\", \"T2, C8\", \"W1 x\""), ["T2", "C8"]);
    assert_eq!(without_code("a `W7` b"), "a   b");
}
