//! Reloads of the real binary with real processes (R1–R4, C6–C8, S7).

mod jobs;
mod requests;
mod settings;

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::deadline::InTime;
use crate::support::http_client::Pilot;

/// Replaces the configuration file that the supervisor was started with.
fn rewrite(pilot: &Pilot, config: &str) {
    pilot.supervisor.rewrite(config);
}

/// Reloads, which must succeed; returns the response.
fn reload(pilot: &Pilot) -> Value {
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Replaces the configuration file and reloads.
fn reload_to(pilot: &Pilot, config: &str) -> Value {
    rewrite(pilot, config);
    reload(pilot)
}

/// The jobs of a response as `kept|restarted|started|stopped`.
fn summary(answer: &Value) -> String {
    let names = |key: &str| -> String {
        let names: Vec<&str> =
            answer[key].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        names.join(",")
    };
    format!("{}|{}|{}|{}", names("kept"), names("restarted"), names("started"), names("stopped"))
}

/// Runs a command against the supervisor; returns exit code, standard output and standard error.
fn run(pilot: &Pilot, args: &[&str]) -> (i32, String, String) {
    finish(spawn(pilot, args))
}

/// Starts a command against the supervisor.
fn spawn(pilot: &Pilot, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.args(args).env_remove("CONTAINERPILOT").env("CONTAINERPILOT_SOCKET", &pilot.socket);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a command; returns exit code, standard output and standard error.
fn finish(command: Child) -> (i32, String, String) {
    let output = command.output_in_time().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}
