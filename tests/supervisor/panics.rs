//! A panic is a fault of ours, and PID 1 lives on: the log tells it with its place, the work is done again or refused, and jobs
//! are stopped in good order at the end. `src/runtime/failpoints.rs` makes one on purpose, in builds for tests.
#![cfg(debug_assertions)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::support::{As, Supervisor, until, ways};

/// A supervisor that panics at a place when it comes there for the n-th time.
fn with(how: As, mishap: &str, config: &str) -> Supervisor {
    let config = config.replacen('{', "{ stopTimeout: '5s', control: { socket: '@/socket' }, ", 1);
    Supervisor::behind(how, &format!("export CONTAINERPILOT_FAILPOINT={mishap}"), &config)
}

const WEB: &str = "{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'], restarts: 'unlimited',
    health: { exec: 'true', interval: '100ms', timeout: '20s', ttl: 60 } }";

fn ask(supervisor: &Supervisor, request: &str) -> String {
    let socket = supervisor.file("socket");
    until("there is no socket", || UnixStream::connect(&socket).is_ok());
    let mut stream = UnixStream::connect(&socket).unwrap();
    write!(stream, "{request} HTTP/1.0\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// It goes on until it is stopped, in good order, and has told of the panic with its place; the log.
fn survives(mut supervisor: Supervisor) -> String {
    supervisor.lines("src/runtime/failpoints.rs:", 1);
    supervisor.lines("web is healthy", 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.end();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("web was ended by signal 15"), "{log}");
    assert_eq!(log.matches("on purpose").count(), 1, "{log}");
    log
}

#[test]
fn p1_a_panic_while_deciding_is_survived_and_nothing_is_lost() {
    for how in ways() {
        for nth in 1..=6 {
            survives(with(how, &format!("step:{nth}"), &format!("{{ jobs: [{WEB}] }}")));
        }
    }
}

#[test]
fn p1_a_panic_while_deciding_about_the_end_does_not_prevent_it() {
    // An idle supervisor decides about nothing until it is told to end.
    let mut supervisor = with(
        As::Plain,
        "step:3",
        "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'] }] }",
    );
    supervisor.line("web started");
    supervisor.signal("-TERM");
    let (code, log) = supervisor.end();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("on purpose") && log.contains("web was ended by signal 15"), "{log}");
}

#[test]
fn p1_a_panic_while_something_is_carried_out_is_a_failed_start() {
    for nth in 1..=6 {
        let mut supervisor = with(As::Plain, &format!("effect:{nth}"), &format!("{{ jobs: [{WEB}] }}"));
        supervisor.lines("src/runtime/failpoints.rs:", 1);
        // Whatever it was, the job comes to be: a run that failed to start is followed by another.
        supervisor.lines(" up", 1);
        supervisor.signal("-TERM");
        let (code, log) = supervisor.end();
        assert_eq!(code, 0, "{log}");
    }
}

#[test]
fn x1_a_panic_in_a_request_is_a_500_and_the_next_one_is_answered() {
    let supervisor = with(As::Plain, "request:2", &format!("{{ jobs: [{WEB}] }}"));
    assert!(ask(&supervisor, "GET /v3/ping").contains(" 200 "));
    let answer = ask(&supervisor, "GET /v3/status");
    assert!(answer.contains(" 500 ") && answer.contains("the log says more"), "{answer}");
    assert!(ask(&supervisor, "GET /v3/status").contains("\"web\""));
    let log = survives(supervisor);
    assert!(log.contains("on the network thread"), "{log}");
}

#[test]
fn x1_a_command_that_meets_a_panic_is_refused() {
    // The third step is the first after all has begun: a question comes with a tick, the command after it.
    for nth in 3..=8 {
        let job = "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'] }] }";
        let mut supervisor = with(As::Plain, &format!("step:{nth}"), job);
        supervisor.line("web started");
        let answer = ask(&supervisor, "POST /v3/maintenance/enable");
        assert!(answer.contains(" 200 ") || answer.contains("internal error"), "{answer}");
        supervisor.signal("-TERM");
        let (code, log) = supervisor.end();
        assert_eq!(code, 0, "{log}");
    }
}

#[test]
fn r2_a_panic_while_loading_is_told_to_whoever_asked() {
    let supervisor = with(As::Plain, "load:1", &format!("{{ jobs: [{WEB}] }}"));
    let answer = ask(&supervisor, "POST /v3/reload");
    assert!(answer.contains(" 422 ") && answer.contains("internal error while loading"), "{answer}");
    let answer = ask(&supervisor, "POST /v3/reload");
    assert!(answer.contains(" 200 "), "{answer}");
    let mut supervisor = supervisor;
    supervisor.lines("web is healthy", 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.end();
    assert!(code == 0 && log.contains("src/runtime/failpoints.rs:"), "{log}");
}

#[test]
fn l4_a_panic_in_the_log_is_survived_and_no_line_is_lost() {
    for nth in 1..=6 {
        let lines = "{ name: 'web', exec: ['sh', '-c', 'for i in $(seq 200); do echo line-$i-; done; exec sleep 1000'] }";
        let mut supervisor = with(As::Plain, &format!("log:{nth}"), &format!("{{ jobs: [{lines}] }}"));
        supervisor.line("line-200-");
        supervisor.signal("-TERM");
        let (stderr, (code, log)) = (supervisor.file("stderr"), supervisor.end());
        assert_eq!(code, 0, "{log}{stderr:?}");
        for nth in 1..=200 {
            assert_eq!(log.matches(&format!("line-{nth}-")).count(), 1, "line {nth}: {log}");
        }
    }
}
