#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// Every source file below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns true if a line of code contains the word outside of a comment.
fn uses(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|found| found == word)
}

#[test]
fn unsafe_code_is_in_the_system_call_modules_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root.join(folder), &mut files);
    }
    // In two parts, so that this file does not match itself.
    let word = concat!("un", "safe");
    files.retain(|file| std::fs::read_to_string(file).unwrap().lines().any(|line| uses(line, word)));
    let allowed = root.join("src/process/sys");
    let outside: Vec<_> = files
        .iter()
        .filter(|file| !file.starts_with(&allowed) && **file != allowed.with_extension("rs"))
        .collect();
    assert!(outside.is_empty() && !files.is_empty(), "{outside:?}");
}

#[test]
fn released_code_still_runs() {
    super::release_unused_memory();
    assert_eq!(format!("{:.3}", 1.0 / 3.0), "0.333");
}
