//! Fuzz target: any bytes as the files of another supervisor, for every importer. No panic, no hang; what is printed is
//! JSON5 after its template is rendered.
//!
//! A line `=== PATH` begins another file, which is found in the directory `tree`. What is before the first such line is
//! every file that is not found there.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_config::json5;
use containerpilot_config::template::{Environment, render};
use containerpilot_import::files::Files;
use containerpilot_import::{ImportFormat, import};

pub(crate) fn run(text: &[u8]) {
    let tree = Tree::new(text);
    for source in ImportFormat::ALL {
        for path in ["file", "tree"] {
            let Ok(imported) = import(*source, &[path.to_owned()], &tree) else { continue };
            let shown = || format!("{}:\n{}", source.name(), imported.text);
            let Ok(rendered) = render(imported.text.as_bytes(), &Environment::default()) else {
                panic!("not a template: {}", shown());
            };
            let parsed = json5::parse(&rendered.text);
            assert!(parsed.errors.is_empty(), "{:?} {}", parsed.errors, shown());
            let lines = imported.inexact.iter().all(|line| line.lines().count() == 1);
            assert!(lines, "a part that is left out has one line: {:?}", imported.inexact);
        }
    }
}

/// Files in memory.
struct Tree {
    main: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    fn new(text: &[u8]) -> Self {
        let mut tree = Self { main: Vec::new(), files: BTreeMap::new() };
        let mut path = None;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(name) = line.strip_prefix(b"=== ") {
                path = Some(format!("tree/{}", String::from_utf8_lossy(name).trim()));
                continue;
            }
            let file = match &path {
                Some(path) => tree.files.entry(path.clone()).or_default(),
                None => &mut tree.main,
            };
            file.extend_from_slice(line);
        }
        tree
    }
}

impl Files for Tree {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.list(path) {
            Some(_) => Err("it is a directory".to_owned()),
            None => Ok(self.files.get(path).unwrap_or(&self.main).clone()),
        }
    }

    fn list(&self, directory: &str) -> Option<Vec<String>> {
        let start = format!("{}/", directory.trim_end_matches('/'));
        let inside = self.files.keys().filter_map(|path| path.strip_prefix(&start));
        let names: BTreeSet<&str> = inside.filter_map(|path| path.split('/').next()).collect();
        (!names.is_empty()).then(|| names.into_iter().map(str::to_owned).collect())
    }
}
