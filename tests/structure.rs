//! What ARCHITECTURE.md says about the crates and modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::program::repository;

/// The modules of the supervisor, each above all that it imports. Modules of one row do not import each other.
const LAYERS: [&[&str]; 6] = [
    &["files", "redactor", "rotation"],
    &["logs", "messages"],
    &["net", "recording"],
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

#[test]
fn every_file_of_an_integration_test_is_compiled() {
    let crates = std::fs::read_dir(repository().join("crates")).unwrap();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.unwrap().path()).collect();
    folders.push(repository().to_owned());
    let mut checked = 0;
    for folder in folders {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        // Otherwise Cargo finds the files by itself.
        if !manifest.lines().any(|line| line == "autotests = false") {
            continue;
        }
        let root = code(&folder.join("tests/integration.rs"));
        for entry in std::fs::read_dir(folder.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_test =
                path.extension().is_some_and(|extension| extension == "rs") && name != "integration";
            if is_test {
                let is_named = root.contains(&format!("mod {name};"))
                    || manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
                assert!(is_named, "{} is no module of tests/integration.rs", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The crates whose files and folders do not import each other in circles.
const WITHOUT_CIRCLES: [&str; 18] = [
    "api",
    "audit",
    "client",
    "command-line",
    "core",
    "drawing",
    "fuzzing",
    "import",
    "load",
    "log-format",
    "manual",
    "oracle",
    "otlp",
    "playground",
    "test-support",
    "text",
    "tools",
    "views",
];

/// The files of a crate by their path, without its root and without unit tests: `rules/start.rs`.
fn files_of(name: &str) -> BTreeMap<String, String> {
    let folder = repository().join("crates").join(name).join("src");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let named = files.iter().map(|file| {
        let path = file.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
        (path, code(file).split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned())
    });
    let is_test = |path: &str| path.split('/').any(|part| part.starts_with("test"));
    named.filter(|(path, _)| !is_test(path) && !["lib.rs", "main.rs"].contains(&path.as_str())).collect()
}

/// What leads to what.
type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The largest set of files each of which leads to all the others.
fn largest_circle<'a>(edges: &Edges<'a>) -> Vec<&'a str> {
    let reached = |from: &'a str| {
        let (mut found, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            open.extend(edges.get(file).into_iter().flatten().filter(|next| found.insert(**next)));
        }
        found
    };
    let all: Edges<'a> = edges.keys().map(|from| (*from, reached(from))).collect();
    let circle = |file: &'a str| -> Vec<&'a str> {
        let others = all[file].iter().copied();
        others.filter(|other| all.get(other).is_some_and(|back| back.contains(file))).collect()
    };
    all.keys().map(|file| circle(file)).max_by_key(Vec::len).unwrap_or_default()
}

/// The names in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter != '_' && !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The folder of a file: `rules` of `rules/start.rs`, and of `rules.rs`.
fn folder(file: &str) -> &str {
    words(file).next().unwrap_or_default()
}

/// The paths that code names, `crate::rules::start` or `super::Job`, and whether it only exports them again.
fn paths(text: &str) -> Vec<(String, bool)> {
    let is_use = |line: &&str| line.starts_with("use ") || line.starts_with("pub") && line.contains(" use ");
    let mut paths = Vec::new();
    for statement in text.split(';') {
        let lines: Vec<&str> = statement.lines().map(str::trim_start).collect();
        let (code, import) = lines.split_at(lines.iter().position(is_use).unwrap_or(lines.len()));
        let (code, import) = (code.join(" "), import.join(" "));
        let named = code.split(|letter: char| !matches!(letter, '_' | ':') && !letter.is_alphanumeric());
        paths.extend(named.filter(|path| path.contains("::")).map(|path| (path.to_owned(), false)));
        let (before, import) = import.split_once("use ").unwrap_or_default();
        match import.split_once("::{") {
            Some((path, names)) => {
                paths.extend(words(names).map(|name| (format!("{path}::{name}"), !before.is_empty())));
            }
            None => paths.push((import.to_owned(), !before.is_empty())),
        }
    }
    paths
}

/// The files of a crate that each of its files imports. A parent that exports its own modules again does not import them.
fn imports(files: &BTreeMap<String, String>) -> Edges<'_> {
    let module = |path: &[&str]| files.get_key_value(&format!("{}.rs", path.join("/"))).map(|(name, _)| name);
    let mut edges = Edges::new();
    for (file, text) in files {
        let own: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
        for (path, is_export) in paths(text) {
            let path: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
            let supers = path.iter().take_while(|part| **part == "super").count();
            let (from, rest) = match path.first() {
                Some(&"crate") => ([].as_slice(), &path[1..]),
                Some(&"super") => (&own[..own.len() - supers], &path[supers..]),
                Some(&"self") => (own.as_slice(), &path[1..]),
                Some(first) if module(&[own.as_slice(), &[*first]].concat()).is_some() => {
                    (own.as_slice(), path.as_slice())
                }
                _ => continue,
            };
            if is_export && from.len() == own.len() {
                continue;
            }
            let path = [from, rest].concat();
            let imported = (1..=path.len()).rev().find_map(|length| module(&path[..length]));
            let imported = imported.filter(|imported| *imported != file).map(String::as_str);
            edges.entry(file.as_str()).or_default().extend(imported);
        }
    }
    edges
}

#[test]
fn no_files_or_folders_of_a_crate_import_each_other() {
    let mut count = 0;
    for name in WITHOUT_CIRCLES {
        let files = files_of(name);
        let edges = imports(&files);
        count += edges.values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(largest_circle(&edges), Vec::<&str>::new(), "files of {name}");
        let mut folders = Edges::new();
        for (file, imported) in &edges {
            let imported = imported.iter().map(|other| folder(other));
            let others = imported.filter(|other| *other != folder(file));
            folders.entry(folder(file)).or_default().extend(others);
        }
        assert_eq!(largest_circle(&folders), Vec::<&str>::new(), "folders of {name}");
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn files_of_the_core_call_each_other_in_circles_of_at_most_eight() {
    let files = files_of("core");
    let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in &files {
        for methods in text.split("\nimpl Core {").skip(1) {
            let methods = methods.split("\n}").next().unwrap();
            let names = methods.split("fn ").skip(1).filter_map(|rest| words(rest).next());
            for name in names {
                homes.entry(name).or_default().insert(file);
            }
        }
    }
    let mut edges = Edges::new();
    for (file, text) in &files {
        for call in text.split("self").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('.')) {
            let name = words(call).next().unwrap_or_default();
            // A name with several homes is also a method of something else.
            let home = homes.get(name).filter(|homes| homes.len() == 1).into_iter().flatten();
            let is_call = call.trim_start_matches(name).trim_start().starts_with('(');
            edges.entry(file).or_default().extend(home.filter(|home| is_call && **home != file.as_str()));
        }
    }
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 150, "{edges:?}");
    let circle = largest_circle(&edges);
    assert!(circle.len() <= 8, "{} files: {circle:?}", circle.len());
}
