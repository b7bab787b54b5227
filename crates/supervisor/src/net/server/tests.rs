//! The server over a unix socket, with clients that misbehave.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::*;
use crate::net::Net;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Echoes bodies. `/stream` streams what the test sends, `/large` sends 8 MiB, `/hang` never responds.
struct Echo(mpsc::Sender<StreamSender>);

impl Handler for Echo {
    async fn handle(&self, request: ServerRequest) -> ServerResponse {
        match request.head.uri.path() {
            "/stream" => {
                let (sender, body) = Body::stream();
                self.0.send(sender).unwrap();
                ok("text/plain", body)
            }
            "/large" => ok("text/plain", vec![b'x'; 8 << 20]),
            "/hang" => std::future::pending().await,
            _ => ok("text/plain", request.body),
        }
    }
}

struct Server {
    folder: PathBuf,
    streams: mpsc::Receiver<StreamSender>,
    shutdown: Option<watch::Sender<()>>,
    ended: mpsc::Receiver<()>,
    net: Option<Net>,
}

impl Server {
    fn start(limits: ServerLimits) -> Self {
        let folder = containerpilot_test_support::folder();
        let net = Net::start().unwrap();
        let (sender, streams) = mpsc::channel();
        let (shutdown, shutdown_requested) = watch::channel(());
        let (ended_sender, ended) = mpsc::channel();
        let listener = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        listener.set_nonblocking(true).unwrap();
        net.spawn(async move {
            let listener = Listener::Unix(UnixListener::from_std(listener).unwrap());
            serve(listener, limits, Echo(sender), shutdown_requested).await;
            drop(ended_sender);
        });
        Self { folder, streams, shutdown: Some(shutdown), ended, net: Some(net) }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.join("socket")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends bytes and reads everything until the server closes the connection.
    fn send(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that refuses a request may close before everything is sent.
        let _ = stream.write_all(request);
        read_all(stream)
    }

    fn next_stream(&self) -> StreamSender {
        self.streams.recv_timeout(TIMEOUT).unwrap()
    }

    fn has_ended(&self) -> bool {
        self.ended.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Disconnected)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(net) = self.net.take() {
            net.finish(Instant::now() + TIMEOUT);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn read_all(mut stream: UnixStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

fn short_timeouts() -> ServerLimits {
    let short = Duration::from_millis(300);
    ServerLimits {
        head_timeout: short,
        request_timeout: short,
        stall_timeout: short,
        ..ServerLimits::CONTROL
    }
}

fn persistent() -> ServerLimits {
    ServerLimits { keep_alive: true, ..ServerLimits::CONTROL }
}

#[test]
fn x1_a_request_gets_a_response_and_the_connection_closed_unless_keep_alive_is_requested() {
    let server = Server::start(ServerLimits::CONTROL);
    let response = server.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("connection: close\r\n") && response.ends_with("\r\n\r\nhello"), "{response}");
    let two = server.send(
        b"POST / HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na\
          POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nb",
    );
    assert_eq!(two.matches("200 OK").count(), 2, "{two}");
}

#[test]
fn x1_a_client_that_closes_its_sending_direction_still_gets_the_response() {
    let server = Server::start(ServerLimits::CONTROL);
    let mut stream = server.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(read_all(stream).ends_with("\r\n\r\nab"));
}

#[test]
fn x1_malformed_and_endless_heads_are_refused() {
    let server = Server::start(ServerLimits::CONTROL);
    for head in [
        "\0\u{16}\u{3} garbage\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET /\r\n\r\n",
        "G(T / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nno field\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nname : x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\na: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\na: \0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\na: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: +1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1 1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length:\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity\r\n\r\n",
        "GET / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        let response = server.send(head.as_bytes());
        assert!(response.starts_with("HTTP/1.1 400 "), "{head:?}: {response}");
    }
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}", "y".repeat(64 * 1024));
    assert!(server.send(long.as_bytes()).starts_with("HTTP/1.1 431 "));
    let fields = |count: usize| format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(count - 1));
    assert!(server.send(fields(HEAD_FIELDS).as_bytes()).starts_with("HTTP/1.1 200 "));
    assert!(server.send(fields(HEAD_FIELDS + 1).as_bytes()).starts_with("HTTP/1.1 431 "));
    let path = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(60 * 1024));
    let response = server.send(path.as_bytes());
    assert!(response.starts_with("HTTP/1.1 414 ") || response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[test]
fn x1_an_http_1_1_request_without_a_host_or_with_two_is_400() {
    let server = Server::start(ServerLimits::TELEMETRY);
    for head in ["", "host: a\r\nhost: b\r\n"] {
        let response = server.send(format!("GET / HTTP/1.1\r\n{head}\r\n").as_bytes());
        assert!(response.starts_with("HTTP/1.1 400 ") && response.contains("Host header"), "{response}");
        assert!(response.contains("connection: close"), "{response}");
    }
    assert!(
        server.send(b"GET / HTTP/1.1\r\nhost:\r\n\r\n").starts_with("HTTP/1.1 200 "),
        "an empty one is valid"
    );
    assert!(server.send(b"GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
}

#[test]
fn x1_a_body_over_the_limit_is_413_announced_or_not() {
    let server = Server::start(ServerLimits::CONTROL);
    let limit = 1 << 20;
    for length in [limit, limit + 1, 2 * limit, 20 << 20] {
        let mut request =
            format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        request.resize(request.len() + length.min(4 << 20), b'x');
        let response = server.send(&request);
        let status = if length > limit { "HTTP/1.1 413 " } else { "HTTP/1.1 200 " };
        assert!(response.starts_with(status), "{length}: {}", response.get(..80).unwrap_or(&response));
    }
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
    let chunked = format!(
        "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(17)
    );
    assert!(server.send(chunked.as_bytes()).starts_with("HTTP/1.1 413 "));
}

#[test]
fn x1_slow_and_incomplete_requests_time_out() {
    let server = Server::start(short_timeouts());
    assert_eq!(server.send(b"GET / HTTP/1.1\r\nho"), "", "half a head");
    assert_eq!(server.send(b""), "", "nothing at all");
    let response = server.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf");
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    let response = server.send(b"GET /hang HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
}

#[test]
fn x1_an_idle_connection_is_closed_after_the_head_timeout() {
    let server = Server::start(ServerLimits { keep_alive: true, ..short_timeouts() });
    let response = server.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 200 ") && !response.contains("connection: close"), "{response}");
}

#[test]
fn x1_a_client_that_does_not_read_the_response_is_disconnected() {
    let server = Server::start(short_timeouts());
    let mut stream = server.connect();
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    // Writing fails once the server has closed the connection.
    stream.set_nonblocking(true).unwrap();
    containerpilot_test_support::until(
        || matches!(stream.write(b"x"), Err(error) if error.kind() == io::ErrorKind::BrokenPipe),
    );
}

/// Few connections, and no timeout that could close one during a test.
fn patient(connections: usize) -> ServerLimits {
    let long = Duration::from_secs(1000);
    ServerLimits {
        connections,
        head_timeout: long,
        request_timeout: long,
        stall_timeout: long,
        ..persistent()
    }
}

/// Whether the server has closed a connection. What it has sent must be read already.
fn is_closed(mut stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let received = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    !matches!(received, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn x1_new_connections_are_served_beside_many_silent_ones() {
    let server = Server::start(patient(2));
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.connect());
        let half_closed = server.connect();
        half_closed.shutdown(std::net::Shutdown::Write).unwrap();
        silent.push(half_closed);
    }
    let response = server.send(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    let first = silent.swap_remove(0);
    assert_eq!(read_all(first), "", "the oldest was closed");
}

#[test]
fn x1_the_connection_that_can_be_missed_most_makes_room_and_a_handled_request_never_does() {
    let server = Server::start(patient(4));
    let mut peers: Vec<_> = (0..4).map(|_| server.connect()).collect();
    peers[0].write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf").unwrap();
    peers[2].write_all(b"GET / HTTP/1.1\r\nhost: x\r\nhalf a head").unwrap();
    peers[1].write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let length = peers[1].read(&mut [0; 1024]).unwrap();
    assert!(length > 0);
    let mut hanging = Vec::new();
    let mut left = vec![2, 3, 1, 0];
    while !left.is_empty() {
        let mut stream = server.connect();
        stream.write_all(b"GET /hang HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        hanging.push(stream);
        let next = left.remove(0);
        containerpilot_test_support::until(|| is_closed(&peers[next]));
        assert!(left.iter().all(|other| !is_closed(&peers[*other])), "{left:?} after {next}");
    }
    // Every slot has a request that is being handled.
    let mut waiting = server.connect();
    waiting.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(4 * SLOT_RETRY)).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "it waits");
    assert!(hanging.iter().all(|stream| !is_closed(stream)));
    drop(hanging.pop());
    waiting.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert!(read_all(waiting).starts_with("HTTP/1.1 200 "));
}

#[test]
fn x1_clients_that_do_not_read_or_never_pause_make_room_for_others() {
    let server = Server::start(patient(1));
    let answered = || {
        let response = server.send(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    };
    let mut deaf = server.connect();
    deaf.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    deaf.read_exact(&mut [0; 1]).unwrap();
    answered();
    assert!(read_all(deaf).len() < 8 << 20, "it was cut off");
    let mut busy = server.connect();
    let mut reader = busy.try_clone().unwrap();
    let reading = std::thread::spawn(move || while matches!(reader.read(&mut [0; 65536]), Ok(1..)) {});
    let writing = std::thread::spawn(move || {
        let requests = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
        while busy.write_all(&requests).is_ok() {}
    });
    answered();
    writing.join().unwrap();
    reading.join().unwrap();
}

#[test]
fn x2_streams_have_slots_of_their_own_and_return_them() {
    let server = Server::start(ServerLimits { streams: 1, ..ServerLimits::CONTROL });
    let mut first = server.connect();
    first.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut sender = server.next_stream();
    assert_eq!(sender.offer("hello".into(), "slow"), Offer::Queued);
    // Once the response head has arrived, the slot is taken.
    first.read_exact(&mut [0; 8]).unwrap();
    let refused = server.send(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    drop(server.next_stream());
    let plain = server.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(plain.starts_with("HTTP/1.1 200 "), "a plain request has a slot: {plain}");
    drop(first);
    // The server notices that the reader has gone although nothing is written.
    containerpilot_test_support::until(|| sender.is_closed());
    let mut again = server.connect();
    again.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    drop(server.next_stream());
    assert!(read_all(again).starts_with("HTTP/1.1 200 "));
}

#[test]
fn x2_a_client_that_does_not_read_a_stream_is_disconnected() {
    let server = Server::start(short_timeouts());
    let mut stream = server.connect();
    stream.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut sender = server.next_stream();
    let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
    while sender.offer(chunk.clone(), "too slow") == Offer::Queued {}
    stream.set_nonblocking(true).unwrap();
    containerpilot_test_support::until(
        || matches!(stream.write(b"x"), Err(error) if error.kind() == io::ErrorKind::BrokenPipe),
    );
}

#[test]
fn s6_requests_in_progress_get_a_response_before_the_server_exits() {
    let mut server = Server::start(ServerLimits::CONTROL);
    let mut stream = server.connect();
    stream.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut sender = server.next_stream();
    drop(server.shutdown.take());
    assert_eq!(sender.offer("last".into(), "slow"), Offer::Queued);
    sender.close_with(" message");
    let response = read_all(stream);
    assert!(response.contains("last") && response.contains(" message"), "{response}");
    assert!(server.has_ended());
    assert!(UnixStream::connect(server.folder.join("socket")).is_err(), "the listener is closed");
}

#[test]
fn s6_a_large_response_is_written_completely_before_the_server_exits() {
    let mut server = Server::start(persistent());
    let mut stream = server.connect();
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut status = [0; 15];
    stream.read_exact(&mut status).unwrap();
    drop(server.shutdown.take());
    assert!(read_all(stream).len() >= 8 << 20);
    assert!(server.has_ended());
}

#[test]
fn s6_requests_that_arrived_unnoticed_get_a_response_before_the_server_exits() {
    let mut server = Server::start(persistent());
    let mut accepted = server.connect();
    accepted.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut response = [0; 1024];
    let length = accepted.read(&mut response).unwrap();
    let response = String::from_utf8_lossy(&response[..length]);
    assert!(response.contains("200 OK") && !response.contains("connection: close"), "{response}");
    let idle = server.connect();
    // The network thread is busy until all of this has happened.
    let (go_on, wait) = mpsc::channel::<()>();
    let (busy, is_busy) = mpsc::channel();
    server.net.as_ref().unwrap().spawn(async move {
        busy.send(()).unwrap();
        let _ = wait.recv();
    });
    is_busy.recv_timeout(TIMEOUT).unwrap();
    accepted.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nagain").unwrap();
    let mut queued = server.connect();
    queued.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nfirst").unwrap();
    drop(server.shutdown.take());
    drop(go_on);
    for (stream, end) in [(accepted, "\r\n\r\nagain"), (queued, "\r\n\r\nfirst")] {
        let response = read_all(stream);
        assert!(response.contains("connection: close\r\n") && response.ends_with(end), "{response}");
    }
    assert_eq!(read_all(idle), "", "an idle connection is closed");
    assert!(server.has_ended());
}

#[test]
fn s6_idle_connections_do_not_delay_the_shutdown() {
    let mut server = Server::start(ServerLimits { head_timeout: Duration::from_secs(1000), ..persistent() });
    let mut peers: Vec<_> = (0..4).map(|_| server.connect()).collect();
    peers[1].write_all(b"\r\n").unwrap();
    peers[2].write_all(b"GET").unwrap();
    peers[3].shutdown(std::net::Shutdown::Write).unwrap();
    // All of them were accepted before this one.
    assert!(server.send(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").contains("200 OK"));
    drop(server.shutdown.take());
    assert!(server.has_ended());
}

#[test]
fn x1_many_large_bodies_are_read_although_memory_is_bounded() {
    let server = Server::start(ServerLimits::CONTROL);
    let length = 1 << 20;
    let mut request = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    request.resize(request.len() + length, b'x');
    let send = |mut stream: UnixStream| {
        let _ = stream.write_all(&request);
        read_all(stream)
    };
    std::thread::scope(|scope| {
        let streams = (0..4 * LARGE_BODIES_BYTES / length).map(|_| server.connect());
        let clients: Vec<_> = streams.map(|stream| scope.spawn(|| send(stream))).collect();
        for client in clients {
            let response = client.join().unwrap();
            assert!(response.starts_with("HTTP/1.1 200 "), "{}", response.get(..200).unwrap_or(&response));
        }
    });
}

#[test]
fn x1_expect_100_continue_gets_a_response_or_is_refused() {
    let server = Server::start(ServerLimits::CONTROL);
    let mut stream = server.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
        .unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    let response = read_all(stream);
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nhello"), "{response}");
    let refused =
        server.send(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2000000\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 413 "), "{refused}");
}

#[test]
fn x1_http_1_0_clients_and_head_requests_get_an_answer_they_understand() {
    let server = Server::start(persistent());
    let response = server.send(b"POST / HTTP/1.0\r\ncontent-length: 2\r\n\r\nab");
    assert!(response.contains("connection: close\r\n") && response.ends_with("\r\n\r\nab"), "{response}");
    let two = server.send(
        b"POST / HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na\
          POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb",
    );
    assert_eq!(two.matches("200 OK").count(), 2, "{two}");
    assert_eq!(two.matches("connection: keep-alive\r\n").count(), 1, "{two}");
    let head =
        server.send(b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc");
    assert!(head.contains("content-length: 3\r\n") && head.ends_with(" GMT\r\n\r\n"), "{head}");

    let stream = |version: &str| {
        let mut stream = server.connect();
        write!(stream, "GET /stream HTTP/1.{version}\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut sender = server.next_stream();
        for chunk in ["one", "", "two"] {
            assert_eq!(sender.offer(chunk.into(), "slow"), Offer::Queued);
        }
        drop(sender);
        read_all(stream)
    };
    let (old, new) = (stream("0"), stream("1"));
    assert!(old.ends_with("\r\n\r\nonetwo") && !old.contains("chunked"), "{old}");
    assert!(new.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"), "{new}");
}

#[test]
fn x1_nothing_after_a_request_with_two_lengths_is_handled() {
    let server = Server::start(persistent());
    // RFC 9112, 6.3: the chunks count, and the connection is closed because a proxy may have read the length instead.
    let response = server.send(
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n\
          GET /hang HTTP/1.1\r\nhost: x\r\n\r\n",
    );
    assert!(response.contains("connection: close\r\n"), "{response}");
    assert_eq!(response.matches("HTTP/1.1").count(), 1, "{response}");
}

#[test]
fn x1_a_malformed_chunked_body_is_refused() {
    let server = Server::start(persistent());
    for body in ["no number\r\n", "-1\r\n", "1\r\nab\r\n", "fffffffffffffffff\r\n", "1\nx\r\n0\r\n\r\n"] {
        let request = format!("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{body}");
        let response = server.send(request.as_bytes());
        assert!(
            response.starts_with("HTTP/1.1 400 ") && response.contains("malformed request body: "),
            "{response}"
        );
    }
}

#[test]
fn x1_a_response_has_a_date_in_years_of_four_digits() {
    let after = |seconds| std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    assert!(super::has_date(after(0)) && super::has_date(after(253_402_300_799)));
    assert!(!super::has_date(after(253_402_300_800)));
    assert!(!super::has_date(std::time::SystemTime::UNIX_EPOCH - Duration::from_secs(1)));
    let server = Server::start(persistent());
    let response = server.send(b"GET / HTTP/1.0\r\n\r\n");
    assert!(response.contains("\r\ndate: "), "{response}");
}
