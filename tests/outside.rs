//! Every file that is kept for the fuzz targets, given to its target: what was once found stays found, without a fuzzer.
//!
//! `cargo test --test outside -- lines` replays one target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[path = "../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is a library for the fuzzer")]
#[expect(clippy::panic, reason = "that is how a target says that something is wrong")]
mod fuzz;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let mut failures = misnamed(&root);
    for (name, _) in fuzz::TARGETS {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let files = files(&root.join("corpus").join(name));
        if files.is_empty() {
            failures.push(format!("{name}: nothing is kept for it in fuzz/corpus/{name}"));
        }
        for file in &files {
            let bytes = std::fs::read(file).unwrap_or_default();
            if std::panic::catch_unwind(|| fuzz::run(name, &bytes)).is_err() {
                failures.push(format!("{name}: {} is not taken well", file.display()));
            }
        }
        println!("{name}: {} files", files.len());
    }
    for failure in &failures {
        eprintln!("{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What stands in one of the places that name the targets, and not in the others.
fn misnamed(root: &Path) -> Vec<String> {
    let targets: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stem = |file: &PathBuf| file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let programs: BTreeSet<String> = files(&root.join("fuzz_targets")).iter().filter_map(stem).collect();
    let kept: BTreeSet<String> = files(&root.join("corpus")).iter().filter_map(stem).collect();
    let differ = |what: &str, found: &BTreeSet<String>| {
        let names: Vec<&String> = targets.symmetric_difference(found).collect();
        (!names.is_empty())
            .then(|| format!("fuzz/{what} and fuzz/src/lib.rs have not the same targets: {names:?}"))
    };
    [differ("fuzz_targets", &programs), differ("corpus", &kept)].into_iter().flatten().collect()
}

/// What is in a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}
