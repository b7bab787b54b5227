//! The packages of a release, and the workflows that make it. `make test-dist` tests the binaries.

use crate::support::deadline::InTime;
use crate::support::skip::skip;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::program::repository;
use crate::tools;

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

/// A folder of one test, with scripts in place of the programs, which take long to compress with their debug
/// information.
struct Workplace {
    folder: PathBuf,
}

impl Workplace {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    /// Makes a package in a new folder, and returns its path. `settings` come before the script, as in a shell.
    fn package(&self, name: &str, format: &str, architecture: &str, place: &str, settings: &str) -> PathBuf {
        let place = self.folder.join(place);
        std::fs::create_dir(&place).unwrap();
        let programs = ["containerpilot", "containerpilot-tools"].map(|program| {
            let path = place.join(format!("{program}-{architecture}"));
            std::fs::write(&path, format!("#!/bin/sh\nexec '{}' \"$@\"\n", tools())).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        });
        let built = Command::new("sh")
            .args(["-c", &format!("{settings} exec \"$@\""), "sh"])
            .arg(repository().join("scripts/package"))
            .args([name, format, architecture])
            .args([place.as_os_str(), "1700000000".as_ref()])
            .output_in_time()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let mut packages = Vec::new();
        files(&place, &mut packages);
        packages.retain(|path| !programs.contains(path));
        assert_eq!(packages.len(), 1, "{packages:?}");
        packages.remove(0)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn is_missing(program: &str) -> bool {
    let missing = Command::new(program).arg("--version").output_in_time().is_err();
    if missing {
        skip(&format!("{program} is missing"));
    }
    missing
}

#[test]
fn package_contains_what_its_documents_link_to() {
    if is_missing("dpkg-deb") {
        return;
    }
    let workplace = Workplace::new("links");
    let package = workplace.package("containerpilot", "deb", "amd64", "packages", "");
    let unpacked = workplace.folder.join("unpacked");
    let extract =
        Command::new("dpkg-deb").arg("--extract").args([&package, &unpacked]).status_in_time().unwrap();
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
    assert_eq!(missing, [] as [&str; 0]);
}

#[test]
#[ignore = "slow: packs everything several times"]
fn packages_do_not_depend_on_the_machine_that_makes_them() {
    for (format, program) in [("deb", "dpkg-deb"), ("rpm", "rpmbuild"), ("tar.gz", "tar")] {
        if is_missing(program) {
            continue;
        }
        let workplace = Workplace::new(program);
        for package in ["containerpilot", "containerpilot-slim"] {
            let first = workplace.package(package, format, "arm64", &format!("first-{package}"), "");
            let other = workplace.folder.join(format!("other-{package}"));
            std::fs::create_dir(&other).unwrap();
            let settings = format!(
                "umask 077; export TMPDIR='{}' TZ=Pacific/Kiritimati LC_ALL=C.UTF-8;",
                other.display()
            );
            let second = workplace.package(package, format, "arm64", &format!("second-{package}"), &settings);
            assert_eq!(first.file_name(), second.file_name());
            let name = first.file_name().unwrap().to_str().unwrap();
            assert!(name.contains("arm64") || name.contains("aarch64"), "{name}");
            assert!(name.contains("slim") == (package == "containerpilot-slim"), "{name}");
            assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap(), "{name} differs");
        }
    }
}

#[test]
fn x15_only_the_full_package_has_the_tools() {
    let workplace = Workplace::new("slim");
    for (package, has_tools) in [("containerpilot", true), ("containerpilot-slim", false)] {
        let archive = workplace.package(package, "tar.gz", "amd64", package, "");
        let listed = Command::new("tar").arg("-tf").arg(&archive).output_in_time().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let contains = |name: &str| listed.lines().any(|line| line.ends_with(&format!("/{name}")));
        assert!(contains("containerpilot") && contains("LICENSE"), "{listed}");
        assert_eq!(contains("containerpilot-tools"), has_tools, "{listed}");
    }
}

/// Every action is named by a full commit hash and has its version beside it, no job has more rights than it names, and
/// no token stays in a clone. `scripts/test-workflows` checks more, with tools from the network.
#[test]
fn workflows_pin_actions_and_name_their_rights() {
    let folder = repository().join(".github/workflows");
    let mut workflows = Vec::new();
    files(&folder, &mut workflows);
    assert_eq!(workflows.len(), 3);
    for path in workflows {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("\npermissions: {}\n"),
            "{}: no rights unless a job names them",
            path.display()
        );
        for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("- uses: ")) {
            let (action, version) = line.split_once(" # v").unwrap_or_else(|| panic!("{line}: no version"));
            let (_, hash) = action.split_once('@').unwrap_or_else(|| panic!("{line}: no commit"));
            assert!(hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{line}");
        }
        let clones = text.matches("uses: actions/checkout@").count();
        assert_eq!(clones, text.matches("persist-credentials: false").count(), "{}", path.display());
    }
}
