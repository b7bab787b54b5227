//! What this room promises to the rest of the house.
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

/// Whether a line of code has the word in it, alone and not in a comment.
fn uses(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|found| found == word)
}

#[test]
fn s1_code_that_was_given_back_is_there_when_it_is_needed() {
    for urgent in [super::Urgent::PassOn, super::Urgent::Stop] {
        urgent.release_others();
        urgent.fetch();
        let words = format!("{:?} {:.3}", urgent, 1.0 / 3.0);
        assert!(words.ends_with(" 0.333"), "{words}");
    }
}

#[test]
fn unsafe_stands_in_one_file() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        sources(&house.join(folder), &mut files);
    }
    // In two parts, so that this file does not speak of itself.
    let word = concat!("un", "safe");
    files.retain(|file| std::fs::read_to_string(file).unwrap().lines().any(|line| uses(line, word)));
    assert_eq!(files, [house.join("src/sys.rs")]);
}
