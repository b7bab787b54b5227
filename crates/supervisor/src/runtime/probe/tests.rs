use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use containerpilot_core::plan::{HttpMethod, HttpTarget, StatusRange};
use containerpilot_test_support::openssl;

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

fn result(target: ProbeTarget) -> Result<(), String> {
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
            match message {
                LoopMessage::Resolved(host, found) => {
                    result = probes.resolved(&host, &found).pop().map(|(_, result)| result);
                }
                LoopMessage::CheckDone(run, done) => result = probes.remote_done(run, done),
                _ => {}
            }
        }
        result = result.or_else(|| probes.ready(&fds).pop().map(|(_, result)| result));
    }
    assert!(probes.running.is_empty() && !probes.cancel(RUN));
    result.unwrap().map_err(|error| error.why().to_owned())
}

fn probe(host: &str, port: u16, path: &str) -> HttpProbe {
    HttpProbe::get(HttpTarget { https: false, host: host.to_owned(), port, path: path.to_owned() })
}

fn http(host: &str, port: u16) -> Result<(), String> {
    result(ProbeTarget::Http(probe(host, port, "/health?x")))
}

#[test]
fn h5_status_2xx_or_3xx_passes() {
    assert_eq!(http("127.0.0.1", server(b"HTTP/1.1 204 No Content\r\n\r\n")), Ok(()));
    assert_eq!(http("127.0.0.1", server(b"HTTP/1.0 302 Found\r\nLocation: /\r\n\r\n")), Ok(()));
    let failed = |port: u16, why: &str| Err(format!("GET http://127.0.0.1:{port}/health?x: {why}"));
    let port = server(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
    assert_eq!(http("127.0.0.1", port), failed(port, "status 503, expected 2xx or 3xx"));
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
    let tcp = |port| result(ProbeTarget::Tcp { host: "127.0.0.1".to_owned(), port });
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
    let target = ProbeTarget::Http(probe("127.0.0.1", port, "/"));
    assert_eq!(probes.start(RUN, target, &mut net), None);
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
    let tcp = |host: &str| ProbeTarget::Tcp { host: host.to_owned(), port: 1 };
    for run in 1..=3 {
        assert_eq!(probes.start(CheckRunId(run), tcp("localhost.invalid"), &mut net), None);
    }
    assert_eq!(probes.start(CheckRunId(4), tcp("other.invalid"), &mut net), None);
    assert_eq!(probes.look_ups.count(), 2);
    assert!(probes.cancel(CheckRunId(2)) && probes.cancel(CheckRunId(4)));
    assert_eq!(probes.look_ups.count(), 1, "no check waits for the other name");
    let mut done = probes.resolved("localhost.invalid", &Err("no answer".into()));
    done.sort_by_key(|(run, _)| run.0);
    let why = "localhost.invalid:1: localhost.invalid: no answer";
    let failed = |run| (CheckRunId(run), Err(why.into()));
    assert_eq!(done, [failed(1), failed(3)]);
    assert!(probes.running.is_empty() && probes.look_ups.count() == 0);
    // A result that comes too late concerns no check.
    assert_eq!(probes.resolved("localhost.invalid", &Ok(Vec::new())), []);
    drop(end);
}

#[test]
fn h5_url_cannot_inject_a_second_request() {
    let text = |probe: &HttpProbe| request(probe).map(|text| String::from_utf8(text).unwrap());
    let injected = text(&probe("h", 1, "/a\r\nX: y \u{e4}")).unwrap();
    assert!(injected.starts_with("GET /a%0D%0AX:%20y%20%C3%A4 HTTP/1.1\r\nHost: h:1\r\n"), "{injected}");
    assert!(text(&probe("h\r\nX: y", 1, "/")).is_err());
    let mut with_header = probe("h", 1, "/");
    with_header.headers = vec![("X".to_owned(), "a\r\nY: b".to_owned())];
    assert!(text(&with_header).is_err());
}

#[test]
fn h10_method_headers_and_status_are_those_of_the_check() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 429 Too Many Requests\r\n\r\n").unwrap();
        String::from_utf8(request[..read].to_vec()).unwrap()
    });
    let mut check = probe("127.0.0.1", port, "/");
    check.method = HttpMethod::Post;
    check.headers = vec![("host".to_owned(), "shop".to_owned()), ("X-Check".to_owned(), "a b".to_owned())];
    check.status = vec![StatusRange::Class(2), StatusRange::Code(429)];
    assert_eq!(result(ProbeTarget::Http(check)), Ok(()));
    let request = server.join().unwrap();
    assert!(request.starts_with("POST / HTTP/1.1\r\nUser-Agent: containerpilot/"), "{request}");
    let fields =
        "Accept: */*\r\nConnection: close\r\nContent-Length: 0\r\nhost: shop\r\nX-Check: a b\r\n\r\n";
    assert!(request.ends_with(fields), "{request}");
}

#[test]
fn h10_the_body_must_match_within_its_first_64_kib() {
    let body_check = |response: &'static [u8], pattern: &str| {
        let port = server(response);
        let mut check = probe("127.0.0.1", port, "/health?x");
        check.body = Some(pattern.to_owned());
        let name = format!("GET http://127.0.0.1:{port}/health?x: ");
        result(ProbeTarget::Http(check)).map_err(|why| why.replace(&name, ""))
    };
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"ok\"\r\n6\r\n: true\r\n0\r\n\r\n";
    assert_eq!(body_check(chunked, r#""ok": *true"#), Ok(()));
    let plain = b"HTTP/1.0 200 OK\r\n\r\nstate: recovering";
    assert_eq!(body_check(plain, "state: (up|recovering)$"), Ok(()));
    assert_eq!(body_check(plain, "state: up"), Err("the body does not match \"state: up\"".to_owned()));
    let failed = b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(body_check(failed, "ok"), Err("status 500, expected 2xx or 3xx".to_owned()));
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
    let closed = "the connection was closed before the response was complete";
    assert_eq!(body_check(short, "ok"), Err(closed.to_owned()));
    assert_eq!(body_check(b"SSH-2.0\r\n\r\n", "ok"), Err("the response is not HTTP".to_owned()));
}

#[test]
fn h10_an_endless_body_is_read_up_to_64_kib() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        for found in [true, false] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let before = if found { 64 * 1024 - 5 } else { 64 * 1024 - 4 };
            let _ = stream.write_all(&vec![b'x'; before]).and_then(|()| stream.write_all(b"ready"));
            // Until the client closes the connection.
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        }
    });
    let mut check = probe("127.0.0.1", port, "/");
    check.body = Some("ready".to_owned());
    assert_eq!(result(ProbeTarget::Http(check.clone())), Ok(()));
    let missed = format!("GET http://127.0.0.1:{port}/: the body does not match \"ready\"");
    assert_eq!(result(ProbeTarget::Http(check.clone())), Err(missed));
    server.join().unwrap();
    let refused = format!("GET http://127.0.0.1:{port}/: connection refused");
    assert_eq!(result(ProbeTarget::Http(check)), Err(refused));
}

#[test]
fn h10_https_is_verified_against_the_given_certificates() {
    let folder = containerpilot_test_support::folder();
    std::fs::write(folder.join("health"), "all is well").unwrap();
    for name in ["own", "other"] {
        openssl::certificate(&folder, name, &["-newkey", "rsa:2048"]);
    }
    let server = openssl::Server::start(&folder, "own", &[]);
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let check = |path: &str, ca: &str, body: Option<&str>| {
        let mut check = probe("127.0.0.1", port.parse().unwrap(), path);
        check.target.https = true;
        check.ca_file = Some(folder.join(ca).display().to_string());
        check.body = body.map(str::to_owned);
        result(ProbeTarget::Http(check))
    };
    assert_eq!(check("/health", "own.pem", None), Ok(()));
    assert_eq!(check("/health", "own.pem", Some("^all is well$")), Ok(()));
    let error = check("/health", "other.pem", None).unwrap_err();
    let start =
        format!("GET https://127.0.0.1:{port}/health: TLS handshake failed: invalid peer certificate");
    assert!(error.starts_with(&start), "{error}");
    let error = check("/health", "missing.pem", None).unwrap_err();
    assert!(error.contains("cannot read ") && error.ends_with("no such file or directory"), "{error}");
}

#[test]
fn h10_a_check_on_the_network_thread_is_cancelled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = LoopReceiver::new().unwrap();
    let (mut probes, mut net) = (Probes::new(receiver.sender()), LazyNet::default());
    let mut check = probe("127.0.0.1", port, "/");
    check.body = Some("x".to_owned());
    assert_eq!(probes.start(RUN, ProbeTarget::Http(check), &mut net), None);
    let (mut stream, _) = listener.accept().unwrap();
    assert!(probes.cancel(RUN) && !probes.cancel(RUN));
    // The connection is closed: reading ends.
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(probes.remote_done(RUN, Ok(())), None, "a result that comes too late");
}
