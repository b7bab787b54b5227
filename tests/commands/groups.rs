//! Groups of jobs on the command line and on the control socket (W22).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use super::{decode, json, run_command, run_err, run_ok, supervisor, wait};
use crate::support::deadline::InTime;

const GROUPS: &str = "{ defaults: { groups: ['all'], restarts: 1 }, jobs: [
    { name: 'a', exec: ['sh', '-c', 'echo from a; exec sleep 1000'], groups: ['web', 'all'] },
    { name: 'b', exec: ['sh', '-c', 'echo from b; exec sleep 1000'], groups: ['web'] },
    { name: 'c', exec: 'sleep 1000' }] }";

#[test]
fn w22_commands_take_a_group_in_place_of_a_job() {
    let it = supervisor(GROUPS);
    wait(&it, "@web", "running");
    assert_eq!(run_ok(&it, &["stop", "@web"]), "a: stopping\nb: stopping\n");
    wait(&it, "@web", "stopped");
    let status = run_ok(&it, &["status", "@web"]);
    assert!(status.contains("\na ") && status.contains("\nb ") && !status.contains("\nc "), "{status}");
    assert_eq!(run_ok(&it, &["start", "@web", "c"]).lines().count(), 3);
    wait(&it, "@web", "running");
    assert_eq!(run_ok(&it, &["restart", "@all"]).lines().count(), 2);
    wait(&it, "@all", "running");
    wait(&it, "@web", "running");
    let logs = run_ok(&it, &["logs", "@web"]);
    assert!(logs.contains("a | from a") && logs.contains("b | from b"), "{logs}");
    assert_eq!(run_ok(&it, &["signal", "@web", "CONT"]).lines().count(), 2);
    assert!(run_ok(&it, &["explain", "@web"]).contains("b: running"));
    let shown = json(&run_ok(&it, &["status", "@web", "--format", "json"]));
    assert_eq!(shown[1]["groups"][0], "web");
    assert!(run_ok(&it, &["status", "a"]).contains("groups     @web, @all"));
    let mut completions = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    completions.args(["completions", "jobs"]).env("CONTAINERPILOT", it.file("config.json5"));
    let (_, names, _) = decode(&completions.output_in_time().unwrap());
    assert!(names.contains("\n@all\n@web\n"), "{names}");
    // A job that refuses is an error, and the others are done.
    run_ok(&it, &["stop", "a"]);
    wait(&it, "a", "stopped");
    let (code, out, err) = run_command(&it, &["signal", "@web", "CONT"]);
    assert!(out.starts_with("b: sent SIGCONT"), "{out}");
    assert_eq!((code, err.as_str()), (1, "containerpilot: a: not running\n"));
    let error = run_err(&it, &["stop", "@wob"]);
    assert_eq!(error, "there is no group `@wob`; did you mean `@web`?");
}

#[test]
fn w22_paths_of_the_control_socket_take_a_group() {
    let it = supervisor(GROUPS);
    wait(&it, "@web", "running");
    let post_body = |path: &str, body: &str| {
        let mut socket = UnixStream::connect(it.file("socket")).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            socket,
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    };
    let post = |path: &str| post_body(path, "");
    post("/v3/jobs/a/stop");
    wait(&it, "a", "stopped");
    let response = post_body("/v3/jobs/@web/signal", r#"{"signal":"CONT"}"#);
    assert!(response.contains("a: not running; b: sent SIGCONT"), "{response}");
    post("/v3/jobs/a/start");
    wait(&it, "@web", "running");
    let response = post("/v3/jobs/@web/stop");
    let expected = r#"{"job":"@web","message":"a: stopping; b: stopping","jobs":[{"job":"a","message":"stopping","done":true},"#;
    assert!(response.contains(expected), "{response}");
    wait(&it, "@web", "stopped");
    let response = post("/v3/jobs/@nothing/stop");
    assert!(
        response.starts_with("HTTP/1.1 404") && response.contains("the groups are: @all, @web"),
        "{response}"
    );
}
