//! Health checks (H2–H5, H7, H8, H10) and their events and output (E5, E7, L2, L4).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::config::Config;
use crate::support::supervisor::{Supervisor, modes, wait_until};

/// An HTTP server that responds with `status`, which tests may change; with 0 it does not respond at all.
struct Server {
    port: u16,
    status: Arc<AtomicU16>,
    requests: Arc<AtomicUsize>,
}

fn server(status: u16) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (status, requests) = (Arc::new(AtomicU16::new(status)), Arc::new(AtomicUsize::new(0)));
    let server = Server { port, status: Arc::clone(&status), requests: Arc::clone(&requests) };
    std::thread::spawn(move || {
        let mut hung = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            requests.fetch_add(1, Ordering::SeqCst);
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
fn h3_checks_repeat_quickly_until_the_first_success_and_early_failures_are_not_reported() {
    let config = "{ jobs: [
        { name: 'server', exec: ['sh', '-c', 'sleep 0.3; touch @/up; exec sleep 1000'],
          health: { exec: ['sh', '-c', 'echo x >> @/checks; test -e @/up'], interval: 30, ttl: 60 } },
        { name: 'bad', exec: 'echo too early', when: { source: 'server', each: 'unhealthy' } },
        { name: 'good', exec: 'echo it is well', when: { source: 'server', each: 'healthy' } } ] }";
    for mode in modes() {
        let began = Instant::now();
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("it is well");
        assert!(began.elapsed() < Duration::from_secs(25), "healthy was reported only after an interval");
        // Checks run at 0, 100, 300 and 700 ms
        // (`h3_the_first_check_runs_at_once_and_retries_back_off_until_one_passes`). A busy machine needs longer to
        // start the programs: within the interval of 30 s there are at most 9.
        assert!((2..=9).contains(&(run.size("checks") / 2)), "{}", run.size("checks"));
        assert!(!run.log_so_far().contains("too early"), "{}", run.log_so_far());
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn h5_http_check_passes_with_2xx_and_3xx_only() {
    let server = server(500);
    let config = format!(
        "{{ jobs: [
        {{ name: 'web', exec: 'sleep 1000', health: {{ http: 'http://127.0.0.1:{}/health', interval: '200ms', ttl: 5 }} }},
        {{ name: 'good', exec: 'echo well', when: {{ source: 'web', each: 'healthy' }} }},
        {{ name: 'bad', exec: 'echo ill', when: {{ source: 'web', each: 'unhealthy' }} }} ] }}",
        server.port
    );
    let mut run = Supervisor::start(modes()[0], &config);
    run.wait_for_line("web unhealthy: check.web: ");
    for status in [200, 404, 302, 503, 204, 0, 200] {
        server.status.store(status, Ordering::SeqCst);
        let healthy = (200..400).contains(&status);
        run.wait_for_line(if healthy { "web healthy" } else { "web unhealthy" });
    }
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn h10_a_failed_check_says_what_it_did_and_a_body_and_https_can_be_checked() {
    let server = server(200);
    let (port, closed) =
        (server.port, TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
    let check = |name: &str, http: &str| {
        format!(
            "{{ name: '{name}', exec: 'sleep 1000', health: {{ http: {{ {http} }}, interval: '200ms', ttl: 5 }} }}"
        )
    };
    let url =
        format!("url: 'http://127.0.0.1:{port}/x', method: 'POST', headers: {{ Accept: 'text/plain' }}");
    let jobs = [
        check("status", &format!("{url}, status: [204, '5xx']")),
        check("body", &format!("{url}, body: '^o.$'")),
        check("text", &format!("{url}, body: 'ready'")),
        check("refused", &format!("url: 'http://127.0.0.1:{closed}/x'")),
        check("tls", &format!("url: 'https://127.0.0.1:{port}/x', cafile: '@/ca.pem'")),
    ];
    let certificate = "openssl req -x509 -nodes -days 2 -subj /CN=x -newkey rsa:2048 -keyout /dev/null -out @/ca.pem 2> /dev/null";
    let config = format!("{{ jobs: [{}] }}", jobs.join(", "));
    let mut run = Supervisor::with_setup(modes()[0], certificate, &config);
    for (job, why) in [
        ("status", format!("POST http://127.0.0.1:{port}/x: status 200, expected 204 or 5xx")),
        ("text", format!("POST http://127.0.0.1:{port}/x: the body does not match \"ready\"")),
        ("refused", format!("GET http://127.0.0.1:{closed}/x: connection refused")),
        (
            "tls",
            format!("GET https://127.0.0.1:{port}/x: TLS handshake failed: that port does not speak TLS"),
        ),
    ] {
        let start = format!("{job} unhealthy: check.{job}: {why}");
        // They come in any order.
        if !run.log_so_far().contains(&start) {
            run.wait_for_line(&start);
        }
    }
    if !run.log_so_far().contains("body healthy") {
        run.wait_for_line("body healthy");
    }
    assert!(!run.log_so_far().contains("body unhealthy"), "{}", run.log_so_far());
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn h5_tcp_check_passes_while_the_port_accepts_connections() {
    let server = server(0);
    let config = |port: u16| {
        format!(
            "{{ jobs: [{{ name: 'db', exec: 'sleep 1000', health: {{ tcp: '127.0.0.1:{port}', interval: '100ms', ttl: 5 }} }}] }}"
        )
    };
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config(server.port));
        run.wait_for_line("db healthy");
        wait_until("it is checked again", || server.requests.load(Ordering::SeqCst) > 3);
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut run = Supervisor::start(mode, &config(closed));
        assert!(run.wait_for_line("db unhealthy").contains("connection refused"), "{}", run.log_so_far());
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn e5_healthy_and_unhealthy_are_sent_at_every_check_and_changes_once() {
    let config = "{ jobs: [
        { name: 'server', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'echo x >> @/checks; test ! -e @/ill'], interval: '100ms', ttl: 5, timeout: '10s' } },
        { name: 'good', exec: ['sh', '-c', 'echo x >> @/good'], when: { source: 'server', each: 'healthy' } },
        { name: 'bad', exec: ['sh', '-c', 'echo x >> @/bad'], when: { source: 'server', each: 'unhealthy' } },
        { name: 'up', exec: ['sh', '-c', 'echo x >> @/up'], when: { source: 'server', each: 'becameHealthy' } },
        { name: 'down', exec: ['sh', '-c', 'echo x >> @/down'], when: { source: 'server', each: 'becameUnhealthy' } } ] }";
    let run = Supervisor::start(modes()[0], config);
    wait_until("every pass is reported", || run.size("good") / 2 >= 4);
    assert_eq!((run.size("bad"), run.size("up") / 2, run.size("down")), (0, 1, 0));
    std::fs::write(run.file("ill"), "").unwrap();
    wait_until("every failure is reported", || run.size("bad") / 2 >= 4);
    assert_eq!((run.size("up") / 2, run.size("down") / 2), (1, 1));
    std::fs::remove_file(run.file("ill")).unwrap();
    wait_until("healthy is reported again", || run.size("up") / 2 == 2);
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!((code, count(&log, "Z server healthy"), count(&log, "Z server unhealthy")), (0, 2, 1));
}

#[test]
fn e7_h4_check_that_outlives_its_interval_blocks_nothing() {
    let server = server(0);
    let config = format!(
        "{{ stopTimeout: 50, jobs: [
        {{ name: 'exec', exec: 'sleep 1000', health: {{ exec: ['sh', '-c', 'trap \"\" TERM; echo x >> @/checks; sleep 1000'],
           interval: '50ms', ttl: 5, timeout: '1h' }} }},
        {{ name: 'short', exec: 'sleep 1000', health: {{ exec: 'sleep 1000', interval: '50ms', ttl: 5 }} }},
        {{ name: 'web', exec: 'sleep 1000', health: {{ http: 'http://127.0.0.1:{}/', interval: '50ms', ttl: 5, timeout: '1h' }} }},
        {{ name: 'tick', exec: ['sh', '-c', 'echo x >> @/ticks'], when: {{ interval: '20ms' }} }} ] }}",
        server.port
    );
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config);
        run.wait_for_line("short unhealthy");
        wait_until("the periodic job keeps running", || run.size("ticks") / 2 > 25);
        // H4: the same check never runs twice at a time.
        assert_eq!(run.size("checks") / 2, 1);
        let began = Instant::now();
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), modes().len());
}

#[test]
fn h2_job_is_healthy_when_all_its_checks_pass() {
    let config = "{ jobs: [{ name: 'server', exec: 'sleep 1000', health: [
        { name: 'first', exec: 'test -e @/first', interval: '100ms', ttl: 5, timeout: '10s' },
        { name: 'second', exec: 'test -e @/second', interval: '100ms', ttl: 5, timeout: '10s' } ] }] }";
    let mut run = Supervisor::start(modes()[0], config);
    std::fs::write(run.file("first"), "").unwrap();
    run.wait_for_line("server unhealthy: second: exited with code 1");
    assert!(!run.log_so_far().contains("server healthy"));
    std::fs::write(run.file("second"), "").unwrap();
    run.wait_for_line("server healthy");
    std::fs::remove_file(run.file("first")).unwrap();
    run.wait_for_line("server unhealthy: first: exited with code 1");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn h7_exit_of_a_healthy_job_sends_unhealthy() {
    let config = "{ jobs: [
        { name: 'server', exec: ['sh', '-c', 'touch @/up; while [ -e @/up ]; do sleep 0.02; done'], restarts: 1, restartBackoff: false,
          health: { exec: 'test -e @/up', interval: 30, ttl: 60 } },
        { name: 'good', exec: 'echo well', when: { source: 'server', each: 'healthy' } },
        { name: 'bad', exec: 'echo ill', when: { source: 'server', each: 'unhealthy' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        for times in 1..=2 {
            // The next run may be healthy before the exit of this one is logged.
            run.wait_for_lines(" well", times);
            std::fs::remove_file(run.file("up")).unwrap();
            run.wait_for_lines(" ill", times);
        }
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn h8_consecutive_failures_make_a_job_unhealthy_and_restart_it() {
    let config = "{ jobs: [
        { name: 'server', exec: ['sh', '-c', 'rm -f @/ill; touch @/up; exec sleep 1000'], restarts: 'unlimited',
          health: { exec: ['sh', '-c', 'if test -e @/ill; then echo fails; exit 1; fi; test -e @/up'],
                    interval: '100ms', ttl: 5, timeout: '10s', failures: 3, onUnhealthy: 'restart' } } ] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_line("server healthy");
        std::fs::write(run.file("ill"), "").unwrap();
        run.wait_for_line("server unhealthy, restarting");
        run.wait_for_line("server exited on SIGTERM");
        run.wait_for_line("server started");
        run.wait_for_line("server healthy");
        run.signal("-TERM");
        let (code, log) = run.wait();
        // A fourth check may start before the process exits, but the output of a check is logged before its result.
        let before = log.split("server unhealthy, restarting").next().unwrap_or_default();
        assert_eq!((code, before.matches(" fails\n").count()), (0, 3));
    }
}

/// The log lines of the check of `web`, each with the pid that wrote it.
fn check_lines(log: &str) -> Vec<(u32, String)> {
    let words = |line: &str| {
        let (pid, text) = line.split_once(" web/check.web ")?.1.split_once(' ')?;
        Some((pid.parse().ok()?, text.to_owned()))
    };
    log.lines().filter_map(words).collect()
}

#[test]
fn l2_check_output_carries_the_pid_of_its_run_and_needs_no_last_newline() {
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'echo I am $$; printf \"of $$, no end\"; printf \"trouble of $$\" >&2'], interval: '50ms', ttl: 5, timeout: '30s' } }] }";
    for mode in modes() {
        let mut run = Supervisor::start(mode, config);
        run.wait_for_lines("trouble of", 5);
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let lines = check_lines(&log);
        let whole = |(pid, text): &(u32, String)| {
            [format!("I am {pid}"), format!("of {pid}, no end"), format!("trouble of {pid}")].contains(text)
        };
        assert!(lines.len() >= 15 && lines.iter().all(whole));
    }
}

#[test]
fn p4_output_of_a_daemon_started_by_a_check_is_logged_under_that_check() {
    // The daemon leaves the process group, so it is not killed, and writes after later checks have run.
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'mkdir @/once 2>&- && { setsid @/daemon $$ & until test -e @/ready; do sleep 0.01; done; }; echo x >> @/checks'],
          interval: '50ms', ttl: 5, timeout: '30s' } }] }";
    let daemon = "touch @/ready; until test -e @/speak; do sleep 0.05; done; echo daemon of $1";
    for mode in modes() {
        let script = format!("printf '#!/bin/sh\n{daemon}\n' > @/daemon; chmod +x @/daemon");
        let mut run = Supervisor::with_setup(mode, &script, config);
        wait_until("five checks have run", || run.size("checks") / 2 > 4);
        std::fs::write(run.file("speak"), "").unwrap();
        let lines = check_lines(&run.wait_for_line("daemon of"));
        assert_eq!(lines, [(lines[0].0, format!("daemon of {}", lines[0].0))]);
        let checks = run.size("checks");
        wait_until("checks keep running", || run.size("checks") > checks + 4);
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn l4_check_with_a_flood_of_output_is_read_to_the_last_line() {
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000', health: { exec: ['sh', '-c', 'seq 1 50000; echo x >> @/checks; printf done'], interval: '1s', ttl: 5, timeout: '30s' } }] }";
    let mut run = Supervisor::start(modes()[0], config);
    run.wait_for_lines(" done", 2);
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    let lines = check_lines(&log);
    let first = lines[0].0;
    let numbers = lines.iter().filter(|(pid, _)| *pid == first).map(|(_, text)| text.as_str());
    let expected: Vec<String> = (1..=50_000).map(|n| n.to_string()).chain(["done".to_owned()]).collect();
    assert!(numbers.eq(expected.iter().map(String::as_str)), "lines are missing or mixed");
}

#[test]
fn p3_checks_continue_when_file_descriptors_run_short() {
    // Each running check needs two of the supervisor's descriptors; there are not enough for all at once.
    let web = "exec: 'sleep 1000', logging: { raw: true }, health: {
        exec: ['sh', '-c', 'sleep 0.1; echo said by one'], interval: '200ms', ttl: 5, timeout: '30s' }";
    let config = Config::new().jobs((0..10).map(|n| format!("web{n}")), web);
    let mut run = Supervisor::with_setup(modes()[0], "ulimit -n 27", &config);
    run.wait_for_line("cannot create a pipe: Too many open files");
    // The checks that get descriptors keep repeating: each run releases its descriptors when it exits.
    run.wait_for_lines("said by", 30);
    assert!(run.cpu_ticks() < 200, "the supervisor used too much CPU time");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn h9_successes_and_the_start_period_are_respected() {
    let config = "{ jobs: [{ name: 'web', restarts: 'unlimited', exec: ['sh', '-c',
            'rm -f @/ok; sleep 0.7; touch @/ok; sleep 1000'],
        health: { exec: ['sh', '-c', 'echo checked; test -e @/ok'], interval: '200ms', ttl: 9,
            successes: 3, startPeriod: '1m', onUnhealthy: 'restart' } }] }";
    let mut run = Supervisor::start(modes()[0], config);
    run.wait_for_line(" web healthy");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(!log.contains("unhealthy"));
    let checks = log.lines().take_while(|line| !line.contains(" web healthy"));
    assert!(checks.filter(|line| line.ends_with(" checked")).count() >= 3);
}

#[test]
fn h9_exit_soon_after_the_job_became_healthy_is_questioned() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let config = format!(
        "{{ jobs: [{{ name: 'web', exec: ['sh', '-c', 'sleep 0.5; exit 98'],
            health: {{ tcp: '127.0.0.1:{port}', interval: 1, ttl: 9 }} }}] }}"
    );
    let (code, log) = Supervisor::start(modes()[0], &config).wait();
    assert_eq!(code, 98);
    let exit = log.lines().find(|line| line.contains("web exited with code 98")).unwrap();
    assert!(exit.contains("after it became healthy (does another process answer its check?)"));
}
