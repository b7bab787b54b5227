//! The commands that control a running supervisor, run by the real binary against the real binary (X3–X6).

mod actions;
mod analyze;
mod exec;
mod groups;
mod queries;
mod replicas;
mod streams;
mod top;

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::deadline::InTime;
use crate::support::supervisor::{Mode, Supervisor};

/// Starts a supervisor with a control socket in the directory of the test.
fn supervisor(config: &str) -> Supervisor {
    let config = config.replacen('{', "{ control: { socket: '@/socket' }, ", 1);
    Supervisor::start(Mode::Plain, &config)
}

/// A command that uses the control socket of that supervisor.
fn command(supervisor: &Supervisor, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.args(args).env_remove("CONTAINERPILOT").stdin(Stdio::null());
    command.arg("-socket").arg(supervisor.file("socket"));
    command
}

/// Runs a command; returns exit code, standard output and standard error.
fn run_command(supervisor: &Supervisor, args: &[&str]) -> (i32, String, String) {
    decode(&command(supervisor, args).output_in_time().unwrap())
}

fn decode(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Runs a command that must succeed; returns its standard output.
fn run_ok(supervisor: &Supervisor, args: &[&str]) -> String {
    let (code, out, err) = run_command(supervisor, args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

/// Runs a command that must fail with code 1 and one line of error; returns that line.
fn run_err(supervisor: &Supervisor, args: &[&str]) -> String {
    let (code, out, err) = run_command(supervisor, args);
    assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
    let line = err.strip_prefix("containerpilot: ").unwrap_or_else(|| panic!("{args:?}: {err}"));
    assert_eq!(line.lines().count(), 1, "{args:?}: {err}");
    line.trim_end().to_owned()
}

/// Waits until a job is in a state. The supervisor need not listen yet.
fn wait(supervisor: &Supervisor, job: &str, state: &str) {
    run_ok(supervisor, &["wait", job, state, "--timeout", "60s"]);
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A command that takes longer counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(60);
