//! Converts the fixtures of one program and compares the results with the expected files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::deadline::InTime;
use crate::support::program::containerpilot;
use crate::{fixture, tools};

/// Every program has at least this many fixtures.
const FEWEST: usize = 10;

/// Converts all fixtures of `tests/tools/import/KIND` with `migrate -from KIND NAME`, in that folder. What is printed,
/// the exit code and what `check` says about the result must be as expected. The result must always be valid.
pub(crate) fn convert_all(kind: &str) {
    let folder = folder(kind);
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut failures = Vec::new();
    let names = names(&folder);
    assert!(names.len() >= FEWEST, "{kind} has {} fixtures; it needs {FEWEST}", names.len());
    for name in names {
        let (found, problem) = convert(kind, &folder, &name);
        failures.extend(problem.map(|problem| format!("{kind}/{name}: {problem}\n{found}")));
        let file = folder.join(format!("{name}.expected"));
        if bless {
            std::fs::write(&file, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if found != expected {
            let hint = "BLESS=1 rewrites the expected file";
            failures.push(format!("{kind}/{name}: not as expected ({hint}):\n{found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The folder of the fixtures of a program.
pub(crate) fn folder(kind: &str) -> PathBuf {
    fixture("import").join(kind)
}

/// The result of `migrate -from KIND PATH` in a folder.
pub(crate) fn migrate(kind: &str, folder: &Path, path: &str) -> Output {
    run(tools(), folder, &["migrate", "-from", kind, path], "")
}

/// Everything that is printed for a fixture, and what no fixture may do.
fn convert(kind: &str, folder: &Path, name: &str) -> (String, Option<&'static str>) {
    let done = migrate(kind, folder, name);
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    let code = done.status.code().unwrap();
    let inexact = err.lines().filter(|line| line.starts_with("no exact equivalent: ")).count();
    let mut found = format!("exit code {code}\n");
    let mut part = |title: &str, text: &str| {
        if !text.is_empty() {
            let _ = write!(found, "--- {title}\n{text}");
        }
    };
    part("stderr", &err);
    part("stdout", &out);
    let mut problem = None;
    if code == 0 || code == 3 {
        let checked = run(containerpilot(), folder, &["check", "-"], &out);
        part("check", &(first_lines(&text(&checked.stdout)) + &on_every_machine(&text(&checked.stderr))));
        if !checked.status.success() {
            problem = Some("check refuses the result");
        }
    }
    match code {
        0 if err.is_empty() => {}
        3 if inexact > 0 && err.lines().count() == inexact + 1 => {}
        1 if out.is_empty() && err.lines().count() == 1 => {}
        _ => problem = Some("exit code 0 means that nothing was left out, 3 that each such part has a line"),
    }
    (found, problem)
}

/// The first lines of a long list.
fn first_lines(text: &str) -> String {
    text.split_inclusive('\n').take(12).collect()
}

/// The warnings that do not depend on the programs of this machine.
fn on_every_machine(warnings: &str) -> String {
    let warnings = warnings.split_inclusive("\n\n");
    let of_machine = ["warning: program `", "warning: interpreter `"];
    warnings.filter(|warning| !of_machine.iter().any(|start| warning.starts_with(start))).collect()
}

/// Runs a program in a folder of fixtures, with `input` as standard input.
pub(crate) fn run(program: &str, folder: &Path, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    // The variables that fixtures need.
    command.envs([("WORKERS", "2"), ("RUN_AS", "nobody")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read its input may have ended.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.output_in_time().unwrap()
}

/// The fixtures of a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".expected")).collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that is removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("containerpilot-beside-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
