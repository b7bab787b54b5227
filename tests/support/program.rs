//! The programs under test, and what most tests of a command line need.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The path of the supervisor's program.
pub(crate) fn containerpilot() -> &'static str {
    static PATH: LazyLock<String> =
        LazyLock::new(|| built("containerpilot", option_env!("CARGO_BIN_EXE_containerpilot")));
    &PATH
}

/// The path of a program of this workspace. Cargo names those of the package that is tested; others are beside them.
fn built(name: &str, known: Option<&str>) -> String {
    let beside = || {
        let test = std::env::current_exe().unwrap();
        // The test itself is in the folder `deps`.
        let path = test.ancestors().nth(2).unwrap().join(name);
        assert!(path.exists(), "{} is missing: run `cargo build --workspace`", path.display());
        path.to_str().unwrap().to_owned()
    };
    known.map_or_else(beside, str::to_owned)
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap()
}

/// The folder of the programs that jobs of tests run. The first lines of each say what it does.
pub(crate) fn programs() -> String {
    repository().join("tests/programs").display().to_string()
}

/// Replaces `@/` by the directory of a test, and `@programs/` by that of the programs that jobs run.
pub(crate) fn with_paths(text: &str, folder: &Path) -> String {
    text.replace("@/", &format!("{}/", folder.display())).replace("@programs/", &format!("{}/", programs()))
}

/// A directory that is removed when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("containerpilot-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command with an almost empty environment and a control socket of its own.
pub(crate) fn command<A: AsRef<OsStr>>(program: &str, args: &[A]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let socket = format!("cp-cli-{}-{}.socket", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    command.env("CONTAINERPILOT_SOCKET", std::env::temp_dir().join(socket));
    command
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}
