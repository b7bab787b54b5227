//! What ARCHITECTURE.md says about the crates and modules.

use std::path::{Path, PathBuf};

use crate::support::program::repository;

/// The modules of the supervisor, each above all that it imports. Modules of one row do not import each other.
const LAYERS: [&[&str]; 6] = [
    &["files"],
    &["logs", "messages"],
    &["net"],
    &["discovery", "telemetry", "watches"],
    &["control"],
    &["runtime"],
];

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

/// The code of a file without comments.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_crate_but_process_forbids_unsafe_code() {
    let crates = std::fs::read_dir(repository().join("crates")).unwrap();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.unwrap().path()).collect();
    folders.push(repository().to_owned());
    let mut checked = 0;
    for folder in folders.iter().filter(|folder| !folder.ends_with("process")) {
        for root in ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root)) {
            if root.exists() {
                assert!(code(&root).contains("#![forbid(unsafe_code)]"), "{}", root.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn unsafe_code_is_in_the_system_call_modules_only() {
    let folder = repository().join("crates/process/src");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    files.retain(|file| code(file).split(|letter| !is_part(letter)).any(|found| found == "unsafe"));
    let allowed = folder.join("sys");
    let is_outside = |file: &&PathBuf| !file.starts_with(&allowed) && **file != allowed.with_extension("rs");
    let outside: Vec<_> = files.iter().filter(is_outside).collect();
    assert!(outside.is_empty() && !files.is_empty(), "{outside:?}");
}

#[test]
fn modules_of_the_supervisor_import_only_those_of_lower_layers() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let folder = repository().join("crates/supervisor/src");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let mut imports = 0;
    for file in files {
        let path = file.strip_prefix(&folder).unwrap().with_extension("");
        let mut names = path.iter().map(|name| name.to_str().unwrap());
        let own = names.next().unwrap();
        let Some(own_layer) = layer(own).filter(|_| !names.any(|name| name.starts_with("test"))) else {
            continue;
        };
        let text = code(&file);
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for rest in text.split("crate::").skip(1) {
            let imported = rest.split(|letter: char| letter != '_' && !letter.is_alphanumeric()).next();
            let imported = imported.unwrap();
            if let Some(below) = layer(imported).filter(|_| imported != own) {
                assert!(below < own_layer, "{} imports {imported}", file.display());
                imports += 1;
            }
        }
    }
    assert!(imports > 50, "{imports}");
}
