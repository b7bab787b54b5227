//! What ARCHITECTURE.md says about the source.

use std::path::{Path, PathBuf};

/// The modules, each above all that it imports. Modules of one row do not import each other.
const LAYERS: [&[&str]; 9] = [
    &["boot_clock", "error_text", "failpoints", "regular_file"],
    &["process"],
    &["files"],
    &["load", "logs", "messages"],
    &["net"],
    &["discovery", "telemetry", "watches"],
    &["control"],
    &["runtime"],
    &["cli"],
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

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
fn unsafe_code_is_in_the_system_call_modules_only() {
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root().join(folder), &mut files);
    }
    // In two parts, so that this file does not match itself.
    let word = concat!("un", "safe");
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    files.retain(|file| code(file).split(|letter| !is_part(letter)).any(|found| found == word));
    let allowed = root().join("src/process/sys");
    let outside: Vec<_> = files
        .iter()
        .filter(|file| !file.starts_with(&allowed) && **file != allowed.with_extension("rs"))
        .collect();
    assert!(outside.is_empty() && !files.is_empty(), "{outside:?}");
}

#[test]
fn modules_import_only_those_of_lower_layers() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut imports = 0;
    for file in files {
        let path = file.strip_prefix(root().join("src")).unwrap().with_extension("");
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
    assert!(imports > 100, "{imports}");
}
