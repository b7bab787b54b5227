//! Many, slow and broken clients: their cost in time and memory is bounded, and the supervisor keeps working (X1, E7).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::support::http_client::{Pilot, connect, request, send_raw};
use crate::support::supervisor::wait_until;

const SLEEPER: &str = "{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }";

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn x1_two_hundred_concurrent_requests_are_all_answered() {
    let pilot = Pilot::start(SLEEPER);
    let socket = &pilot.socket;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..200)
            .map(|nth| {
                scope.spawn(move || match nth % 4 {
                    0 => request(socket, "GET", "/v3/status", "").status,
                    1 => request(socket, "POST", "/v3/environ", &format!("{{\"V{nth}\": \"x\"}}")).status,
                    2 => request(socket, "POST", "/v3/maintenance/enable", "").status,
                    _ => request(socket, "GET", "/v3/ping", "").status,
                })
            })
            .collect();
        for client in clients {
            assert_eq!(client.join().unwrap(), 200);
        }
    });
    let events = pilot.get("/v3/events?follow=false").body;
    assert_eq!(events.matches("enterMaintenance").count(), 1);
}

#[test]
fn x1_malformed_requests_get_400_and_the_server_keeps_working() {
    let pilot = Pilot::start(SLEEPER);
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"HELO example.org\r\n\r\n",
        b"GET / HTTP/1.1 and more\r\n\r\n",
        b"GET /v3/ping HTTP/1.1\r\nHost: x\r\nbroken header\r\n\r\n",
        b"POST /v3/env HTTP/1.1\r\nHost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v3/env HTTP/1.1\r\nHost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /v3/env HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /v3/ping HTTP/1.1\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut request = garbage.to_vec();
        request.extend(b"\r\n\r\n");
        let answer = send_raw(&pilot.socket, &request);
        assert!(answer.starts_with("HTTP/1.1 400"), "{garbage:?}: {answer}");
    }
    assert_eq!(pilot.get("/v3/ping").status, 200);
}

#[test]
#[ignore = "slow: waits for a timeout of 10 s"]
fn x1_slow_incomplete_and_large_requests_cost_little_memory_and_time_out() {
    let pilot = Pilot::start(SLEEPER);
    let before = resident_kib(pilot.supervisor.pid());
    let mut slow: Vec<UnixStream> = Vec::new();
    for nth in 0..200 {
        let mut stream = connect(&pilot.socket);
        let request: &[u8] = match nth % 4 {
            0 => b"",
            1 => b"GET /v3/sta",
            2 => b"POST /v3/environ HTTP/1.1\r\nHost: x\r\ncontent-length: 1000000\r\n\r\n{\"A\": ",
            _ => b"GET /v3/status HTTP/1.1\r\nHost: x\r\nx-slow: ",
        };
        stream.write_all(request).unwrap();
        slow.push(stream);
    }
    let large = format!("{{\"A\": \"{}\"}}", "x".repeat(2 << 20));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(request(&pilot.socket, "POST", "/v3/environ", &large).status, 413));
        }
    });
    let grown = resident_kib(pilot.supervisor.pid()).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more");
    // Each connection is closed after a timeout, with or without a 408.
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"));
    }
    assert_eq!(pilot.get("/v3/ping").status, 200);
}

#[test]
fn e7_exit_is_handled_at_once_while_200_bad_clients_are_connected() {
    let mut pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'first', exec: 'true', when: { source: 'SIGHUP' } },
            { name: 'second', exec: 'echo it was handled', when: { source: 'first', each: 'exitSuccess' } },
        ] }",
    );
    let mut bad: Vec<UnixStream> = Vec::new();
    for nth in 0..200 {
        let mut stream = connect(&pilot.socket);
        let request: &[u8] = match nth % 3 {
            0 => b"GET /v3/status HTTP/1.1\r\nHost: x\r\nconnection: keep-alive\r\n\r\n",
            1 => b"GET /v3/",
            _ => b"POST /v3/environ HTTP/1.1\r\nHost: x\r\ncontent-length: 1000\r\n\r\n{",
        };
        stream.write_all(request).unwrap();
        bad.push(stream);
    }
    // A busy machine may delay some attempts, so the best of many counts: a blocked supervisor would have no fast one.
    let mut best = Duration::MAX;
    for nth in 1..=20 {
        let began = Instant::now();
        pilot.supervisor.signal("-HUP");
        pilot.supervisor.wait_for_lines("it was handled", nth);
        best = best.min(began.elapsed());
    }
    assert!(best < Duration::from_secs(1), "{best:?}");
    pilot.supervisor.signal("-TERM");
    assert_eq!(pilot.supervisor.wait().0, 0);
}

#[test]
fn s6_request_in_progress_at_exit_gets_its_response() {
    // This request stops the last job, and with it the supervisor.
    for _ in 0..10 {
        let pilot = Pilot::start(SLEEPER);
        pilot.wait_for_state("main", "running");
        let answer = pilot.post("/v3/jobs/main/stop", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        drop(pilot);
    }
}

#[test]
fn x1_network_thread_starts_with_the_first_request() {
    let mut pilot = Pilot::start_without_waiting(
        "{ jobs: [{ name: 'main', exec: ['sh', '-c', 'echo up; sleep 1000'] }] }",
    );
    pilot.supervisor.wait_for_line("up");
    let threads = || {
        let folder = std::fs::read_dir(format!("/proc/{}/task", pilot.supervisor.pid())).unwrap();
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
        };
        folder.map(name).filter(|name| name.trim() == "network").count()
    };
    assert_eq!(threads(), 0);
    assert_eq!(pilot.get("/v3/ping").status, 200);
    wait_until("the network thread runs", || threads() == 1);
}
