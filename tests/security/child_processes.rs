//! What child processes inherit from the supervisor, and what they cannot do to it (P2, P7, P9, L5).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, is_root, modes, wait_until};

/// The kinds of processes that the supervisor starts.
const KINDS: [&str; 7] = ["job", "raw", "late", "check", "sensor", "coprocess", "hook"];

/// A configuration in which a process of each kind runs `script`, with its kind as `$0`.
fn every_kind(script: &str, consul: &str) -> String {
    let run = |kind: &str| format!("['sh', '-c', \"{script}\", '{kind}']");
    format!(
        "{{ consul: {consul}, control: {{ socket: '@/control' }}, logging: {{ output: '@/log' }},
            telemetry: {{ port: 0, interfaces: 'lo', metrics: [
                {{ name: 'load', help: 'h', type: 'gauge', exec: {}, interval: '100ms' }} ] }},
            watches: [{{ name: 'db', interval: 60 }}],
            coprocesses: [{{ name: 'co', command: {} }}],
            jobs: [
                {{ name: 'main', exec: 'sleep 1000', port: 80, interfaces: 'lo',
                   health: {{ exec: {}, interval: '100ms', ttl: 10 }} }},
                {{ name: 'job', exec: {} }},
                {{ name: 'raw', exec: {}, logging: {{ raw: true }} }},
                {{ name: 'late', exec: {}, when: {{ source: 'SIGHUP' }} }},
                {{ name: 'hook', exec: {}, when: {{ source: 'main', once: 'stopping' }} }} ] }}",
        run("sensor"),
        run("coprocess"),
        run("check"),
        run("job"),
        run("raw"),
        run("late"),
        run("hook")
    )
}

/// A Consul address that accepts connections and never responds.
fn silent_agent() -> (String, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (listener.local_addr().unwrap().to_string(), listener)
}

#[test]
fn p2_no_process_of_any_kind_inherits_a_descriptor_of_the_supervisor() {
    // A subshell, because the shell itself would keep redirected descriptors open; and a rename, so that the file is
    // complete when it exists.
    let script = "(ls -l /proc/$$/fd > @/new-$0); mv @/new-$0 @/fd-$0; echo 1";
    let (address, agent) = silent_agent();
    let run = Supervisor::start(Mode::Plain, &every_kind(script, &format!("'{address}'")));
    wait_until("telemetry is served", || run.read("log").contains("telemetry: serving at"));
    // Open at this time: a request to Consul, two streaming clients, the log file.
    agent.set_nonblocking(true).unwrap();
    let mut consul = None;
    wait_until("Consul is asked", || {
        consul = agent.accept().ok();
        consul.is_some()
    });
    let mut clients = Vec::new();
    for path in ["/v3/events", "/v3/jobs/main/logs?follow"] {
        let mut client = UnixStream::connect(run.file("control")).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        client.read_exact(&mut [0; 12]).unwrap();
        clients.push(client);
    }
    for kind in ["check", "sensor"] {
        let _ = fs::remove_file(run.file(&format!("fd-{kind}")));
    }
    run.signal("-HUP");
    let has = |kind: &str| run.file(&format!("fd-{kind}")).exists();
    wait_until("all processes are started", || {
        KINDS.iter().filter(|kind| **kind != "hook").all(|kind| has(kind))
    });
    run.signal("-TERM");
    // The directory is removed with the supervisor, so the files are read before its exit.
    wait_until("the hook is started", || has("hook"));
    for kind in KINDS {
        let listing = fs::read_to_string(run.file(&format!("fd-{kind}"))).unwrap();
        let found: Vec<&str> = listing.lines().filter(|line| line.contains(" -> ")).collect();
        assert_eq!(found.len(), 3, "{kind}:\n{listing}");
        for (number, line) in found.iter().enumerate() {
            assert!(line.contains(&format!(" {number} -> ")), "{kind}:\n{listing}");
            assert!(
                !line.contains("socket:") && !line.contains("anon_inode") && !line.contains("/log"),
                "{listing}"
            );
        }
        assert!(found[0].ends_with(" 0 -> /dev/null"), "{kind}:\n{listing}");
    }
    drop(clients);
    assert_eq!(run.wait().0, 0);
}

#[test]
fn l5_tokens_of_the_configuration_are_passed_to_no_process() {
    let script = "(env; tr '\\\\\\\\0' ' ' < /proc/$$/cmdline) > @/new-$0; mv @/new-$0 @/env-$0; echo 1";
    let (address, _agent) = silent_agent();
    let consul = format!("{{ address: '{address}', token: 'hunter2' }}");
    let run = Supervisor::start(Mode::Plain, &every_kind(script, &consul));
    wait_until("the job has run", || run.file("env-job").exists());
    run.signal("-HUP");
    let has = |kind: &str| run.file(&format!("env-{kind}")).exists();
    wait_until("all processes are started", || {
        KINDS.iter().filter(|kind| **kind != "hook").all(|kind| has(kind))
    });
    run.signal("-TERM");
    wait_until("the hook is started", || has("hook"));
    for kind in KINDS {
        let environment = fs::read_to_string(run.file(&format!("env-{kind}"))).unwrap();
        assert!(
            environment.contains("CONTAINERPILOT_PID=") && !environment.contains("hunter2"),
            "{kind}:\n{environment}"
        );
    }
    assert!(!run.read("log").contains("hunter2"));
    assert_eq!(run.wait().0, 0);
}

#[test]
fn p7_environment_is_inherited_unless_a_job_overrides_it() {
    let config = "{ jobs: [
        { name: 'told', exec: ['sh', '-c', 'echo told $CONSUL_HTTP_TOKEN.'] },
        { name: 'kept', exec: ['sh', '-c', 'echo kept $CONSUL_HTTP_TOKEN.'], env: { CONSUL_HTTP_TOKEN: '' } } ] }";
    let run = Supervisor::with_setup(Mode::Plain, "export CONSUL_HTTP_TOKEN=hunter2", config);
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(log.contains("told hunter2.") && log.contains("kept ."));
    // Only the job itself has printed it.
    assert_eq!(log.matches("hunter2").count(), 1);
}

#[test]
fn p9_job_of_another_user_can_neither_signal_nor_control_the_supervisor() {
    if !is_root() {
        skip("only root can start a job as another user");
        return;
    }
    for mode in modes() {
        let script = "kill -TERM $CONTAINERPILOT_PID && echo it could; \
            cat /proc/$CONTAINERPILOT_PID/environ >/dev/null && echo it could; \
            curl -s --unix-socket @/socket http://x/v3/status && echo it could; echo tried";
        let config = format!(
            "{{ jobs: [{{ name: 'guest', exec: ['sh', '-c', '{script}'], user: 'nobody' }},
                       {{ name: 'main', exec: 'sleep 1000' }}] }}"
        );
        let mut run = Supervisor::with_setup(mode, "chmod 755 @/", &config);
        run.wait_for_line("tried");
        run.wait_for_line("guest complete");
        assert!(
            !run.log_so_far().contains("it could") && !run.log_so_far().contains("SIGTERM"),
            "{}",
            run.log_so_far()
        );
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}
