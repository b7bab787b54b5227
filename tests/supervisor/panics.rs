//! PID 1 survives its own panics: it logs where each one happened, retries or refuses the work, and still shuts down
//! gracefully. `crates/process/src/failpoints.rs` panics on purpose, in debug builds and with the feature `failpoints`
//! (`make panics`).
#![cfg(any(debug_assertions, feature = "failpoints"))]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

/// Starts a supervisor with a failpoint `NAME:N`, which panics when it is reached for the N-th time, or `NAME:N+`, which panics from
/// then on.
fn with_failpoint(mode: Mode, failpoint: &str, config: &str) -> Supervisor {
    let config = config.replacen('{', "{ stopTimeout: '5s', control: { socket: '@/socket' }, ", 1);
    Supervisor::with_setup(mode, &format!("export CONTAINERPILOT_FAILPOINT={failpoint}"), &config)
}

const WEB: &str = "{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'], restarts: 'unlimited',
    health: { exec: 'true', interval: '100ms', timeout: '20s', ttl: 60 } }";

fn request(supervisor: &Supervisor, request_line: &str) -> String {
    let socket = supervisor.file("socket");
    wait_until("the control socket accepts connections", || UnixStream::connect(&socket).is_ok());
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    write!(stream, "{request_line} HTTP/1.0\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Requires that it logs the panic with its location, keeps running, and shuts down gracefully; returns the log.
fn assert_survives(mut supervisor: Supervisor) -> String {
    supervisor.wait_for_lines("failpoints.rs:", 1);
    supervisor.wait_for_lines("web healthy", 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("web exited on SIGTERM"));
    assert_eq!(log.matches("on purpose").count(), 1);
    log
}

#[test]
fn p1_panic_in_a_core_step_is_survived_and_loses_no_event() {
    for mode in modes() {
        for nth in 1..=6 {
            assert_survives(with_failpoint(mode, &format!("step:{nth}"), &format!("{{ jobs: [{WEB}] }}")));
        }
    }
}

#[test]
fn p1_panic_in_the_shutdown_step_does_not_prevent_the_shutdown() {
    // An idle supervisor makes no step until SIGTERM arrives.
    let mut supervisor = with_failpoint(
        Mode::Plain,
        "step:3",
        "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'] }] }",
    );
    supervisor.wait_for_line("web started");
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("on purpose") && log.contains("web exited on SIGTERM"));
}

#[test]
fn p1_panic_in_an_effect_is_a_failed_start() {
    for nth in 1..=6 {
        let mut supervisor =
            with_failpoint(Mode::Plain, &format!("effect:{nth}"), &format!("{{ jobs: [{WEB}] }}"));
        supervisor.wait_for_lines("failpoints.rs:", 1);
        // The job runs in any case: a failed start is followed by a restart.
        supervisor.wait_for_lines(" up", 1);
        supervisor.signal("-TERM");
        assert_eq!(supervisor.wait().0, 0);
    }
}

#[test]
fn p1_panic_in_the_start_of_a_drain_program_ends_the_drain() {
    let config = "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'],
                            drain: { exec: 'sleep 1000', timeout: '300s' } }] }";
    let mut supervisor = with_failpoint(Mode::Plain, "effect.runDrain:1", config);
    supervisor.wait_for_line("web started");
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("drain program failed: internal error"));
    assert!(log.contains("web exited on SIGTERM"));
}

#[test]
fn p1_panic_in_any_kind_of_effect_is_survived() {
    let config = "{ files: [{ name: 'out', template: 'hello', to: '@/out', test: 'true' }],
        jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'], requires: ['file.out'], port: 80,
                 interfaces: 'static:127.0.0.1', restarts: 'unlimited', drain: { exec: 'true', timeout: '5s' },
                 health: { exec: 'true', interval: '100ms', timeout: '20s', ttl: 60 } },
               { name: 'other', exec: 'sleep 1000', restarts: 'unlimited' }] }";
    for kind in [
        "spawn",
        "kill",
        "runCheck",
        "runDrain",
        "renderFile",
        "testFile",
        "installFile",
        "advertise",
        "heartbeat",
        "reply",
        "log",
    ] {
        let mut supervisor = with_failpoint(Mode::Plain, &format!("effect.{kind}:1"), config);
        supervisor.wait_for_line("other started");
        // A file whose rendering was interrupted is tried again by a reload.
        let answer = request(&supervisor, "POST /v3/reload");
        assert_eq!(answer.contains("internal error"), kind == "reply", "{kind}: {answer}");
        supervisor.wait_for_lines(" up", 1);
        supervisor.wait_for_lines("web healthy", 1);
        if !matches!(kind, "kill" | "runDrain") {
            supervisor.wait_for_lines("on purpose", 1);
        }
        supervisor.signal("-TERM");
        let (code, log) = supervisor.wait();
        assert_eq!((code, log.matches("on purpose").count()), (0, 1), "{kind}");
    }
}

#[test]
fn x1_panic_in_a_request_is_a_500_and_the_next_request_is_answered() {
    let supervisor = with_failpoint(Mode::Plain, "request:2", &format!("{{ jobs: [{WEB}] }}"));
    assert!(request(&supervisor, "GET /v3/ping").contains(" 200 "));
    let answer = request(&supervisor, "GET /v3/status");
    assert!(
        answer.contains(" 500 ") && answer.contains("internal error of containerpilot; see its log"),
        "{answer}"
    );
    assert!(request(&supervisor, "GET /v3/status").contains("\"web\""));
    let log = assert_survives(supervisor);
    assert!(log.contains("on the network thread"));
}

#[test]
fn x1_command_that_hits_a_panic_is_refused() {
    // The third step is the first after the start. A query causes a step of its own, before that of the command.
    for nth in 3..=8 {
        let job = "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exec sleep 1000'] }] }";
        let mut supervisor = with_failpoint(Mode::Plain, &format!("step:{nth}"), job);
        supervisor.wait_for_line("web started");
        let answer = request(&supervisor, "POST /v3/maintenance/enable");
        assert!(answer.contains(" 200 ") || answer.contains("internal error"), "{answer}");
        supervisor.signal("-TERM");
        assert_eq!(supervisor.wait().0, 0);
    }
}

#[test]
fn r2_panic_while_loading_is_reported_to_the_client() {
    let supervisor = with_failpoint(Mode::Plain, "load:1", &format!("{{ jobs: [{WEB}] }}"));
    let answer = request(&supervisor, "POST /v3/reload");
    assert!(answer.contains(" 422 ") && answer.contains("internal error while loading"), "{answer}");
    let answer = request(&supervisor, "POST /v3/reload");
    assert!(answer.contains(" 200 "), "{answer}");
    let mut supervisor = supervisor;
    supervisor.wait_for_lines("web healthy", 1);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert!(code == 0 && log.contains("failpoints.rs:"), "exit code {code}");
}

#[test]
fn l4_panic_in_the_log_thread_is_survived_and_loses_no_line() {
    for nth in 1..=6 {
        let lines = "{ name: 'web', exec: ['sh', '-c', 'for i in $(seq 200); do echo line-$i-; done; exec sleep 1000'] }";
        let mut supervisor =
            with_failpoint(Mode::Plain, &format!("log:{nth}"), &format!("{{ jobs: [{lines}] }}"));
        supervisor.wait_for_line("line-200-");
        supervisor.signal("-TERM");
        let (code, log) = supervisor.wait();
        assert_eq!(code, 0);
        for nth in 1..=200 {
            assert_eq!(log.matches(&format!("line-{nth}-")).count(), 1, "line {nth}");
        }
    }
}

#[test]
fn p1_panic_in_any_source_of_the_loop_is_survived_and_loses_no_exit() {
    let often = ["wait", "message", "query", "reap", "exit", "probe", "check-output", "state", "record"];
    let points =
        often.iter().flat_map(|point| [(point, 1), (point, 2)]).chain([(&"signal", 1), (&"network", 1)]);
    for (point, nth) in points {
        let crash = "{ name: 'crash', exec: 'false' },
            { name: 'after', exec: 'sleep 1000', when: { source: 'crash', once: 'exitFailed' } }";
        let config = format!("{{ jobs: [{WEB}, {crash}] }}");
        let supervisor = with_failpoint(Mode::Plain, &format!("{point}:{nth}"), &config);
        // A status needs the network, a message and a query; a signal must not be lost.
        for _ in 0..2 {
            let answer = request(&supervisor, "GET /v3/status");
            assert!(answer.contains(" 200 ") || answer.contains("internal error"), "{point}: {answer}");
            supervisor.signal("-USR1");
        }
        let mut supervisor = supervisor;
        supervisor.wait_for_line("after started");
        let log = assert_survives(supervisor);
        assert!(log.contains("crash exited with code 1"), "{point}:{nth}");
    }
}

#[test]
fn p1_panic_in_every_wait_delays_the_loop_and_loses_nothing() {
    let started = Instant::now();
    let crash = "{ name: 'crash', exec: 'false', restarts: 3, restartBackoff: { initial: '10ms' } }";
    let config = format!("{{ jobs: [{WEB}, {crash}] }}");
    let mut supervisor = with_failpoint(Mode::Plain, "wait:1+", &config);
    assert!(request(&supervisor, "GET /v3/status").contains(" 200 "));
    supervisor.wait_for_lines("web healthy", 1);
    supervisor.wait_for_lines("crash exited with code 1", 4);
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("web exited on SIGTERM"));
    // It does not spin: it sleeps for 20 ms after each of them.
    let panics = log.matches("internal error while waiting: on purpose").count();
    assert!(panics > 0 && panics as u128 * 20 <= started.elapsed().as_millis(), "{panics}");
}

#[test]
fn p1_panic_during_the_exit_keeps_the_log_and_the_exit_code() {
    for mode in modes() {
        let mut supervisor = with_failpoint(
            mode,
            "shutdown:1",
            "{ jobs: [{ name: 'web', exec: ['sh', '-c', 'echo up; exit 7'] }] }",
        );
        supervisor.wait_for_line("up");
        let (code, log) = supervisor.wait();
        assert_eq!(code, 7);
        assert!(log.contains("internal error while deregistering services: on purpose"));
    }
}
