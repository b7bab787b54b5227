//! The commands that speak to a running supervisor, from outside: the real binary asks the real binary (X3–X6).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

#[path = "../support/supervisor.rs"]
#[expect(dead_code, reason = "the supervisor's own tests need more of it")]
mod supervisor;

mod following;
mod looking;
mod ordering;

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use supervisor::{As, Supervisor};

/// A supervisor with a socket in its own folder.
fn supervisor(config: &str) -> Supervisor {
    let config = config.replacen('{', "{ control: { socket: '@/socket' }, ", 1);
    Supervisor::start(As::Plain, &config)
}

/// A command that asks it.
fn command(supervisor: &Supervisor, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.args(args).env_remove("CONTAINERPILOT").stdin(Stdio::null());
    command.arg("-socket").arg(supervisor.file("socket"));
    command
}

/// Exit code, standard output and standard error of a command.
fn ask(supervisor: &Supervisor, args: &[&str]) -> (i32, String, String) {
    told(&command(supervisor, args).output().unwrap())
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// What a command prints that must succeed.
fn good(supervisor: &Supervisor, args: &[&str]) -> String {
    let (code, out, err) = ask(supervisor, args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

/// What a command says that must fail, in one line.
fn bad(supervisor: &Supervisor, args: &[&str]) -> String {
    let (code, out, err) = ask(supervisor, args);
    assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
    let line = err.strip_prefix("containerpilot: ").unwrap_or_else(|| panic!("{args:?}: {err}"));
    assert_eq!(line.lines().count(), 1, "{args:?}: {err}");
    line.trim_end().to_owned()
}

/// Waits until a job is in a state; the supervisor need not listen yet.
fn wait(supervisor: &Supervisor, job: &str, state: &str) {
    good(supervisor, &["wait", job, state, "--timeout", "60s"]);
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Long enough for anything but a command that hangs.
const PATIENCE: Duration = Duration::from_secs(60);
