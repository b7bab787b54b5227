use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;
use crate::messages::{LoopMessage, LoopReceiver};

const RUN: CheckRunId = CheckRunId(1);

/// Starts a server that sends one response; returns its port.
fn server(response: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).unwrap();
        assert!(request[..read].starts_with(b"GET /health?x HTTP/1.1\r\nHost: "));
        for piece in response.chunks(7) {
            stream.write_all(piece).unwrap();
            stream.flush().unwrap();
        }
    });
    port
}

fn result(target: Target) -> CheckResult {
    let receiver = LoopReceiver::new().unwrap();
    let (mut probes, mut net) = (Probes::new(receiver.sender()), LazyNet::default());
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut result = probes.start(RUN, target, &mut net);
    while result.is_none() {
        assert!(Instant::now() < deadline, "no result");
        let mut fds = vec![sys::poll_fd(receiver.waker().as_fd().as_raw_fd(), sys::POLLIN)];
        probes.add_poll_fds(&mut fds);
        sys::poll(&mut fds, Some(Duration::from_secs(1))).unwrap();
        for message in receiver.take() {
            let LoopMessage::Resolved(host, found) = message else { continue };
            result = probes.resolved(&host, &found).pop().map(|(_, result)| result);
        }
        result = result.or_else(|| probes.ready(&fds).pop().map(|(_, result)| result));
    }
    assert!(probes.running.is_empty());
    result.unwrap()
}

fn http(host: &str, port: u16) -> CheckResult {
    result(Target::Http(HttpTarget { host: host.to_owned(), port, path: "/health?x".to_owned() }))
}

#[test]
fn h5_status_2xx_or_3xx_passes() {
    assert_eq!(http("127.0.0.1", server(b"HTTP/1.1 204 No Content\r\n\r\n")), Ok(()));
    assert_eq!(http("127.0.0.1", server(b"HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n")), Ok(()));
    let failed = |port: u16, why: &str| Err(format!("GET http://127.0.0.1:{port}/health?x: {why}"));
    let port = server(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
    assert_eq!(http("127.0.0.1", port), failed(port, "the response status is 503"));
    let port = server(b"SSH-2.0\r\n");
    assert_eq!(http("127.0.0.1", port), failed(port, "the response is not HTTP"));
}

#[test]
fn h5_response_that_is_not_http_or_endless_fails() {
    for piece in [&b"x"[..], b"HTTP/1.1 ", b"HTTP/1.1 200 and no end of it", b"\0", b"\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Until the client closes the connection.
            while stream.write_all(&piece.repeat(100)).is_ok() {}
        });
        assert!(http("127.0.0.1", port).unwrap_err().ends_with(": the response is not HTTP"));
        server.join().unwrap();
    }
}

#[test]
fn h5_localhost_is_known_and_other_names_are_resolved() {
    assert_eq!(http("localhost", server(b"HTTP/1.1 200 OK\r\n\r\nhello")), Ok(()));
    assert_eq!(http("LOCALHOST", server(b"HTTP/1.1 200 OK\r\n\r\nhello")), Ok(()));
    let failed = http("no.such.host.invalid", 1).unwrap_err();
    assert!(
        failed.starts_with("GET http://no.such.host.invalid:1/health?x: no.such.host.invalid: "),
        "{failed}"
    );
}

#[test]
fn h5_tcp_check_passes_if_the_port_accepts_and_fails_if_it_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tcp = |port| result(Target::Tcp { host: "127.0.0.1".to_owned(), port });
    assert_eq!(tcp(port), Ok(()));
    drop(listener);
    assert_eq!(tcp(port), Err(format!("127.0.0.1:{port}: connection refused")));
}

#[test]
fn h5_check_of_a_silent_server_runs_until_it_is_cancelled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = LoopReceiver::new().unwrap();
    let (mut probes, mut net) = (Probes::new(receiver.sender()), LazyNet::default());
    let target = HttpTarget { host: "127.0.0.1".to_owned(), port, path: "/".to_owned() };
    assert_eq!(probes.start(RUN, Target::Http(target), &mut net), None);
    let mut fds = Vec::new();
    probes.add_poll_fds(&mut fds);
    assert_eq!(fds.len(), 1);
    assert!(probes.cancel(RUN));
    assert!(!probes.cancel(RUN));
}

#[test]
fn h5_checks_of_one_name_share_a_look_up_until_the_last_one_is_cancelled() {
    let receiver = LoopReceiver::new().unwrap();
    let (mut probes, mut net) = (Probes::new(receiver.sender()), LazyNet::default());
    // Nothing is looked up while this task runs.
    let (end, wait) = std::sync::mpsc::channel::<()>();
    net.get().unwrap().spawn(async move {
        let _ = wait.recv();
    });
    let tcp = |host: &str| Target::Tcp { host: host.to_owned(), port: 1 };
    for run in 1..=3 {
        assert_eq!(probes.start(CheckRunId(run), tcp("localhost.invalid"), &mut net), None);
    }
    assert_eq!(probes.start(CheckRunId(4), tcp("other.invalid"), &mut net), None);
    assert_eq!(probes.look_ups.count(), 2);
    assert!(probes.cancel(CheckRunId(2)) && probes.cancel(CheckRunId(4)));
    assert_eq!(probes.look_ups.count(), 1, "no check waits for the other name");
    let mut done = probes.resolved("localhost.invalid", &Err("no answer".to_owned()));
    done.sort_by_key(|(run, _)| run.0);
    let failed = |run| (CheckRunId(run), Err("localhost.invalid:1: no answer".to_owned()));
    assert_eq!(done, [failed(1), failed(3)]);
    assert!(probes.running.is_empty() && probes.look_ups.count() == 0);
    // A result that comes too late concerns no check.
    assert_eq!(probes.resolved("localhost.invalid", &Ok(Vec::new())), []);
    drop(end);
}

#[test]
fn h5_url_cannot_inject_a_second_request() {
    let target = |path: &str| HttpTarget { host: "h".to_owned(), port: 1, path: path.to_owned() };
    assert!(request(&target("/a\r\nX: y")).is_err());
    let text = String::from_utf8(request(&target("/a")).unwrap()).unwrap();
    assert!(text.starts_with("GET /a HTTP/1.1\r\nHost: h:1\r\n"));
}
