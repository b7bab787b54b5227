//! The Debian package contains every file that its documents link to.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_containerpilot");

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The targets of the links in a page, without addresses and parts of pages.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:"))
}

#[test]
fn package_contains_what_its_documents_link_to() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        eprintln!("skipped: dpkg-deb is missing");
        return;
    }
    let folder = std::env::temp_dir().join(format!("containerpilot-deb-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A script in place of the binary, which takes long to compress with its debug information.
    let binary = folder.join("containerpilot");
    std::fs::write(&binary, format!("#!/bin/sh\nexec '{BINARY}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let packages = folder.join("packages");
    std::fs::create_dir(&packages).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new(root.join("scripts/deb"))
        .args([binary.as_os_str(), packages.as_os_str(), "0".as_ref()])
        .output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut package = Vec::new();
    files(&packages, &mut package);
    let unpacked = folder.join("unpacked");
    let extract = Command::new("dpkg-deb").arg("--extract").args(&package).arg(&unpacked).status().unwrap();
    assert!(extract.success());

    let mut installed = Vec::new();
    files(&unpacked, &mut installed);
    let pages: Vec<&PathBuf> =
        installed.iter().filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    assert!(pages.len() > 20, "{pages:?}");
    let mut missing = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(page).unwrap();
        for link in links(&text) {
            if !page.parent().unwrap().join(link).exists() {
                missing.push(format!("{}: {link}", page.display()));
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(missing, [] as [&str; 0]);
}
