//! Replays every file of `fuzz/corpus` with its fuzz target, so that a fixed bug stays fixed without a fuzzer.
//!
//! `cargo test --test outside -- lines` replays one target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use containerpilot_fuzzing as fuzzing;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut failures = disagreements(&root);
    for (name, _) in fuzzing::TARGETS {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let files = files(&root.join("corpus").join(name));
        if files.is_empty() {
            failures.push(format!("{name}: fuzz/corpus/{name} is empty"));
        }
        for file in &files {
            let bytes = std::fs::read(file).unwrap_or_default();
            if std::panic::catch_unwind(|| fuzzing::run(name, &bytes)).is_err() {
                failures.push(format!("{name}: failed on {}", file.display()));
            }
        }
        println!("{name}: {} files", files.len());
    }
    for failure in &failures {
        eprintln!("{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The three lists of targets must agree: `fuzzing::TARGETS`, `fuzz/fuzz_targets` and `fuzz/corpus`.
fn disagreements(root: &Path) -> Vec<String> {
    let targets: BTreeSet<String> = fuzzing::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stem = |file: &PathBuf| file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let programs: BTreeSet<String> = files(&root.join("fuzz_targets")).iter().filter_map(stem).collect();
    let corpora: BTreeSet<String> = files(&root.join("corpus")).iter().filter_map(stem).collect();
    let differ = |what: &str, found: &BTreeSet<String>| {
        let names: Vec<&String> = targets.symmetric_difference(found).collect();
        (!names.is_empty())
            .then(|| format!("fuzz/{what} and crates/fuzzing do not list the same targets: {names:?}"))
    };
    [differ("fuzz_targets", &programs), differ("corpus", &corpora)].into_iter().flatten().collect()
}

/// The entries of a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}
