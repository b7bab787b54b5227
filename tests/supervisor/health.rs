//! Health (H2–H5, H7, H8) and what comes of it (E5, E7).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Supervisor, until, ways};

/// A server that answers every request with a status that can be changed; 0 does not answer at all.
struct Server {
    port: u16,
    status: Arc<AtomicU16>,
    asked: Arc<AtomicUsize>,
}

fn server(status: u16) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (status, asked) = (Arc::new(AtomicU16::new(status)), Arc::new(AtomicUsize::new(0)));
    let server = Server { port, status: Arc::clone(&status), asked: Arc::clone(&asked) };
    std::thread::spawn(move || {
        let mut hung = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            asked.fetch_add(1, Ordering::SeqCst);
            let status = status.load(Ordering::SeqCst);
            if status == 0 {
                hung.push(stream);
                continue;
            }
            let _ = stream.read(&mut [0; 1024]);
            let _ = write!(stream, "HTTP/1.1 {status} Word\r\nContent-Length: 2\r\nLocation: /x\r\n\r\nok");
        }
    });
    server
}

fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn h3_checks_come_soon_until_the_first_success_and_early_failures_are_not_told() {
    let config = "{ jobs: [
        { name: 'server', exec: ['sh', '-c', 'sleep 0.3; touch @/up; exec sleep 1000'],
          health: { exec: ['sh', '-c', 'echo x >> @/checks; test -e @/up'], interval: 30, ttl: 60 } },
        { name: 'bad', exec: 'echo too early', when: { source: 'server', each: 'unhealthy' } },
        { name: 'good', exec: 'echo it is well', when: { source: 'server', each: 'healthy' } } ] }";
    for how in ways() {
        let began = Instant::now();
        let mut run = Supervisor::start(how, config);
        run.line("it is well");
        assert!(began.elapsed() < Duration::from_secs(5), "not one interval later");
        // At 0, 100, 300 ms, and perhaps at 700.
        assert!((3..=5).contains(&(run.size("checks") / 2)), "{}", run.size("checks"));
        assert!(!run.seen().contains("too early"), "{}", run.seen());
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn h5_http_is_well_with_2xx_and_3xx_only() {
    let server = server(500);
    let config = format!(
        "{{ jobs: [
        {{ name: 'web', exec: 'sleep 1000', health: {{ http: 'http://127.0.0.1:{}/health', interval: '200ms', ttl: 5 }} }},
        {{ name: 'good', exec: 'echo well', when: {{ source: 'web', each: 'healthy' }} }},
        {{ name: 'bad', exec: 'echo ill', when: {{ source: 'web', each: 'unhealthy' }} }} ] }}",
        server.port
    );
    let mut run = Supervisor::start(ways()[0], &config);
    run.line("web is unhealthy: check.web: ");
    for status in [200, 404, 302, 503, 204, 0, 200] {
        server.status.store(status, Ordering::SeqCst);
        let well = (200..400).contains(&status);
        run.line(if well { "web is healthy" } else { "web is unhealthy" });
    }
    run.signal("-TERM");
    assert_eq!(run.end().0, 0);
}

#[test]
fn h5_tcp_is_well_while_somebody_listens() {
    let server = server(0);
    let config = |port: u16| {
        format!(
            "{{ jobs: [{{ name: 'db', exec: 'sleep 1000', health: {{ tcp: '127.0.0.1:{port}', interval: '100ms', ttl: 5 }} }}] }}"
        )
    };
    for how in ways() {
        let mut run = Supervisor::start(how, &config(server.port));
        run.line("db is healthy");
        until("it is asked again", || server.asked.load(Ordering::SeqCst) > 3);
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut run = Supervisor::start(how, &config(closed));
        assert!(run.line("db is unhealthy").contains("Connection refused"), "{}", run.seen());
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn e5_healthy_is_told_once_and_unhealthy_at_every_failed_check() {
    let config = "{ jobs: [
        { name: 'server', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'echo x >> @/checks; test ! -e @/ill'], interval: '100ms', ttl: 5, timeout: '10s' } },
        { name: 'good', exec: ['sh', '-c', 'echo x >> @/good'], when: { source: 'server', each: 'healthy' } },
        { name: 'bad', exec: ['sh', '-c', 'echo x >> @/bad'], when: { source: 'server', each: 'unhealthy' } } ] }";
    let run = Supervisor::start(ways()[0], config);
    until("it is checked", || run.size("checks") / 2 >= 6);
    assert_eq!((run.size("good") / 2, run.size("bad")), (1, 0));
    std::fs::write(run.file("ill"), "").unwrap();
    until("every failure is told", || run.size("bad") / 2 >= 4);
    std::fs::remove_file(run.file("ill")).unwrap();
    until("it is told that it is well again", || run.size("good") / 2 == 2);
    run.signal("-TERM");
    let (code, log) = run.end();
    assert_eq!(
        (code, count(&log, "server is healthy"), count(&log, "server is unhealthy")),
        (0, 2, 1),
        "{log}"
    );
}

#[test]
fn e7_a_check_that_outlives_its_interval_wedges_nothing() {
    let server = server(0);
    let config = format!(
        "{{ stopTimeout: 10, jobs: [
        {{ name: 'exec', exec: 'sleep 1000', health: {{ exec: ['sh', '-c', 'trap \"\" TERM; echo x >> @/checks; sleep 1000'],
           interval: '50ms', ttl: 5, timeout: '1h' }} }},
        {{ name: 'short', exec: 'sleep 1000', health: {{ exec: 'sleep 1000', interval: '50ms', ttl: 5 }} }},
        {{ name: 'web', exec: 'sleep 1000', health: {{ http: 'http://127.0.0.1:{}/', interval: '50ms', ttl: 5, timeout: '1h' }} }},
        {{ name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: {{ interval: '20ms' }} }} ] }}",
        server.port
    );
    for how in ways() {
        let mut run = Supervisor::start(how, &config);
        run.line("short is unhealthy");
        until("the rest does not go on", || run.size("ticks") / 2 > 25);
        // H4: never two of the same check at a time.
        assert_eq!(run.size("checks") / 2, 1);
        let began = Instant::now();
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}\n{log}", began.elapsed());
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), ways().len());
}

#[test]
fn h2_all_checks_must_pass() {
    let config = "{ jobs: [{ name: 'server', exec: 'sleep 1000', health: [
        { name: 'first', exec: 'test -e @/first', interval: '100ms', ttl: 5, timeout: '10s' },
        { name: 'second', exec: 'test -e @/second', interval: '100ms', ttl: 5, timeout: '10s' } ] }] }";
    let mut run = Supervisor::start(ways()[0], config);
    std::fs::write(run.file("first"), "").unwrap();
    run.line("server is unhealthy: second: exited with code 1");
    assert!(!run.seen().contains("is healthy"));
    std::fs::write(run.file("second"), "").unwrap();
    run.line("server is healthy");
    std::fs::remove_file(run.file("first")).unwrap();
    run.line("server is unhealthy: first: exited with code 1");
    run.signal("-TERM");
    assert_eq!(run.end().0, 0);
}

#[test]
fn h7_after_the_exit_the_health_is_unknown_and_that_is_told() {
    let config = "{ jobs: [
        { name: 'server', exec: ['sh', '-c', 'touch @/up; while [ -e @/up ]; do sleep 0.02; done'], restarts: 1, restartBackoff: false,
          health: { exec: 'test -e @/up', interval: 30, ttl: 60 } },
        { name: 'good', exec: 'echo well', when: { source: 'server', each: 'healthy' } },
        { name: 'bad', exec: 'echo ill', when: { source: 'server', each: 'unhealthy' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        for times in 1..=2 {
            // The next run may be healthy before this one's end has been told.
            run.lines(" well", times);
            std::fs::remove_file(run.file("up")).unwrap();
            run.lines(" ill", times);
        }
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn h8_failures_in_a_row_make_it_unhealthy_and_a_restart_mends_it() {
    let config = "{ jobs: [
        { name: 'server', exec: ['sh', '-c', 'rm -f @/ill; touch @/up; exec sleep 1000'], restarts: 'unlimited',
          health: { exec: ['sh', '-c', 'if test -e @/ill; then echo fails; exit 1; fi; test -e @/up'],
                    interval: '100ms', ttl: 5, timeout: '10s', failures: 3, onUnhealthy: 'restart' } } ] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.line("server is healthy");
        std::fs::write(run.file("ill"), "").unwrap();
        run.line("server is unhealthy, and is restarted");
        run.line("server was ended by signal 15");
        run.line("server started");
        run.line("server is healthy");
        run.signal("-TERM");
        let (code, log) = run.end();
        // A fourth may begin before the process has ended, but what a check wrote comes before what is said of its end.
        let before = log.split("server is unhealthy, and is restarted").next().unwrap_or_default();
        assert_eq!((code, before.matches(" fails\n").count()), (0, 3), "{log}");
    }
}

/// The lines of the check of `web`, each with the number of the process that wrote it.
fn check_lines(log: &str) -> Vec<(u32, String)> {
    let words = |line: &str| {
        let (pid, text) = line.split_once(" web/check.web ")?.1.split_once(' ')?;
        Some((pid.parse().ok()?, text.to_owned()))
    };
    log.lines().filter_map(words).collect()
}

#[test]
fn l2_each_run_of_a_check_has_its_own_number_and_its_last_line_needs_no_newline() {
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'echo I am $$; printf \"of $$, no end\"; printf \"trouble of $$\" >&2'], interval: '50ms', ttl: 5, timeout: '30s' } }] }";
    for how in ways() {
        let mut run = Supervisor::start(how, config);
        run.lines("trouble of", 5);
        run.signal("-TERM");
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        let lines = check_lines(&log);
        let whole = |(pid, text): &(u32, String)| {
            [format!("I am {pid}"), format!("of {pid}, no end"), format!("trouble of {pid}")].contains(text)
        };
        assert!(lines.len() >= 15 && lines.iter().all(whole), "{log}");
    }
}

#[test]
fn p4_a_daemon_that_a_check_leaves_behind_is_read_under_the_check_that_began_it() {
    // It has left the group, so that nobody ends it; and it speaks when further checks have long had their turn.
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'mkdir @/once 2>&- && { setsid @/daemon $$ & until test -e @/ready; do sleep 0.01; done; }; echo x >> @/checks'],
          interval: '50ms', ttl: 5, timeout: '30s' } }] }";
    let daemon = "touch @/ready; until test -e @/speak; do sleep 0.05; done; echo daemon of $1";
    for how in ways() {
        let script = format!("printf '#!/bin/sh\n{daemon}\n' > @/daemon; chmod +x @/daemon");
        let mut run = Supervisor::behind(how, &script, config);
        until("it is checked", || run.size("checks") / 2 > 4);
        std::fs::write(run.file("speak"), "").unwrap();
        let lines = check_lines(&run.line("daemon of"));
        assert_eq!(lines, [(lines[0].0, format!("daemon of {}", lines[0].0))]);
        let checks = run.size("checks");
        until("it is checked on", || run.size("checks") > checks + 4);
        run.signal("-TERM");
        assert_eq!(run.end().0, 0);
    }
}

#[test]
fn l4_a_check_that_floods_is_read_to_its_end() {
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'seq 1 50000; echo x >> @/checks; printf done'], interval: '1s', ttl: 5, timeout: '30s' } }] }";
    let mut run = Supervisor::start(ways()[0], config);
    run.lines(" done", 2);
    run.signal("-TERM");
    let (code, log) = run.end();
    assert_eq!(code, 0, "{log}");
    let lines = check_lines(&log);
    let first = lines[0].0;
    let numbers = lines.iter().filter(|(pid, _)| *pid == first).map(|(_, text)| text.as_str());
    let expected: Vec<String> = (1..=50_000).map(|n| n.to_string()).chain(["done".to_owned()]).collect();
    assert!(numbers.eq(expected.iter().map(String::as_str)), "some lines are missing or mixed");
}

#[test]
fn p3_checks_go_on_when_descriptors_are_short() {
    // Each check that runs needs two descriptors of ours; there is not enough for all of them at once.
    let jobs: Vec<String> = (0..10)
        .map(|n| {
            format!(
                "{{ name: 'web{n}', exec: 'sleep 1000', logging: {{ raw: true }},
                   health: {{ exec: ['sh', '-c', 'sleep 0.1; echo said by {n}'], interval: '200ms', ttl: 5, timeout: '30s' }} }}"
            )
        })
        .collect();
    let config = format!("{{ jobs: [{}] }}", jobs.join(","));
    let mut run = Supervisor::behind(ways()[0], "ulimit -n 24", &config);
    run.line("cannot create a pipe for its output: Too many open files");
    // Those that have room come again and again: what they used is free when they have ended.
    run.lines("said by", 30);
    assert!(run.ticks() < 200, "it does not spin meanwhile");
    run.signal("-TERM");
    assert_eq!(run.end().0, 0);
}
