//! Programs for tests that are unpacked from packages, and not installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::deadline::InTime;
use super::program::repository;
use super::skip::skip;

/// A program that needs libraries beside it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    /// For `LD_LIBRARY_PATH`.
    pub(crate) libraries: PathBuf,
}

impl Server {
    /// A shell script that makes the program available under a name, in the folder `bin` of the test.
    pub(crate) fn link(&self, name: &str) -> String {
        let Self { program, libraries } = self;
        format!(
            "mkdir -p $CONTAINERPILOT_TEST/bin; ln -s {} $CONTAINERPILOT_TEST/bin/{name};
             export LD_LIBRARY_PATH={} PATH=$CONTAINERPILOT_TEST/bin:$PATH\n",
            program.display(),
            libraries.display()
        )
    }
}

/// Runs a script of this repository that prints a path.
pub(crate) fn path_from(script: &str, folder: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(folder);
    let script = repository().join("scripts").join(script);
    let output = Command::new(script).arg(folder).output_in_time().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// The path of a program: the one in the search path, or else that of a package, which is unpacked.
pub(crate) fn unpacked(package: &str, program: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(package);
    let mut command = Command::new(repository().join("scripts/unpack"));
    let output = command.args([package, program, "-"]).arg(folder).output_in_time().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// The folder of `scripts/servers`.
pub(crate) fn servers() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| path_from("servers", "servers"))
}

/// A server of `scripts/servers`; `None` if it does not run here.
pub(crate) fn server(program: &str) -> Option<Server> {
    let machine = Command::new("uname").arg("-m").output_in_time().unwrap().stdout;
    let machine = String::from_utf8(machine).unwrap();
    let libraries = servers().join(format!("usr/lib/{}-linux-gnu", machine.trim()));
    let program = servers().join(program);
    let found = Command::new(&program).arg("-v").env("LD_LIBRARY_PATH", &libraries).output_in_time();
    if !found.is_ok_and(|output| output.status.success()) {
        skip(&format!("{} does not run here", program.display()));
        return None;
    }
    Some(Server { program, libraries })
}
