//! The client against a server that sends scripted responses.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::socket as net;

use super::messages::MessageReader;
use super::{Client, ClientError, StreamError};

/// A server that responses each connection with the next of its responses and records the requests.
pub(in super::super) struct Script {
    pub(in super::super) socket: PathBuf,
    requests: Receiver<String>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn path() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("containerpilot-client-{}-{number}", std::process::id()))
}

impl Script {
    pub(in super::super) fn new(responses: &[&str]) -> Self {
        let pieces = responses.iter().map(|response| vec![(*response).to_owned()]).collect();
        Self::in_pieces(pieces)
    }

    /// Each piece of a response is sent by itself.
    fn in_pieces(responses: Vec<Vec<String>>) -> Self {
        let socket = path();
        let listener = UnixListener::bind(&socket).unwrap();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for response in responses {
                let (mut peer, _) = listener.accept().unwrap();
                let _ = sender.send(request(&mut peer));
                for piece in response {
                    let _ = peer.write_all(piece.as_bytes());
                    std::thread::yield_now();
                }
            }
        });
        Self { socket, requests }
    }

    fn client(&self) -> Client {
        Client::at(self.socket.clone())
    }

    /// The next recorded request.
    pub(in super::super) fn next_request(&self) -> String {
        self.requests.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A complete request: head and body.
fn request(peer: &mut UnixStream) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    loop {
        let length = peer.read(&mut piece).unwrap();
        text += std::str::from_utf8(&piece[..length]).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        if body.len() >= length {
            return text;
        }
    }
}

#[test]
fn x4_a_request_is_http_1_1() {
    let script = Script::new(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"]);
    let response = script.client().post("/v3/environ", Some("{\"A\":\"1\"}")).unwrap();
    assert_eq!((response.status, response.text().as_ref()), (200, "ok"));
    let request = script.next_request();
    assert!(request.starts_with("POST /v3/environ HTTP/1.1\r\nhost: control\r\n"), "{request}");
    assert!(request.ends_with("content-length: 9\r\n\r\n{\"A\":\"1\"}"), "{request}");
}

#[test]
fn x4_a_body_ends_by_length_by_chunks_or_by_the_connection() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
        "HTTP/1.0 200 OK\r\n\r\nhello world",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nA: b\r\n\r\n",
    ] {
        assert_eq!(Script::new(&[response]).client().get("/").unwrap().text(), "hello world", "{response}");
        // Byte by byte.
        let letters = response.chars().map(|c| c.to_string()).collect();
        assert_eq!(Script::in_pieces(vec![letters]).client().get("/").unwrap().text(), "hello world");
    }
}

#[test]
fn x4_garbage_is_distinguished_from_a_response() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(100_000));
    for (response, expected) in [
        ("SSH-2.0-x\r\n", "is not a supervisor"),
        ("HTTP/1.1 abc\r\n\r\n", "is not a supervisor"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "is not a supervisor"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "is not a supervisor"),
        (&long, "too large"),
        (&many, "too large"),
        ("", "closed the connection"),
        ("HTTP/1.1 200", "closed the connection"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "closed the connection"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "closed the connection"),
    ] {
        let error = Script::new(&[response]).client().get("/").unwrap_err();
        assert!(error.to_string().contains(expected), "{response:.60}: {error}");
    }
}

#[test]
fn x6_a_refusal_gives_its_reason() {
    for (body, reason) in [
        ("Not Found\nthere is no job `x`", "there is no job `x`"),
        ("Unprocessable Entity\nerror: a\n  |\nerror: b\n", "error: a\n  |\nerror: b"),
        ("just this", "just this"),
        ("", "the supervisor answered with status 409"),
    ] {
        let response = format!("HTTP/1.1 409 Conflict\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let response = Script::new(&[&response]).client().get("/").unwrap();
        assert_eq!(response.success().unwrap_err().to_string(), reason);
    }
}

#[test]
fn x4_a_missing_supervisor_is_reported_in_one_line() {
    let nowhere = path();
    let error = Client::at(nowhere.clone()).get("/").unwrap_err();
    assert!(matches!(error, ClientError::NotRunning { .. }));
    let expected =
        format!("no supervisor answers at {}: is it running? (there is no such socket)", nowhere.display());
    assert_eq!(error.to_string(), expected);
    // A stale socket, and a file that is not a socket.
    drop(UnixListener::bind(&nowhere).unwrap());
    let error = Client::at(nowhere.clone()).get("/").unwrap_err();
    assert!(error.to_string().ends_with("is it running? (no process listens there)"), "{error}");
    std::fs::remove_file(&nowhere).unwrap();
    std::fs::write(&nowhere, "").unwrap();
    let error = Client::at(nowhere.clone()).get("/").unwrap_err();
    assert!(error.to_string().ends_with("is it running? (the file is not a socket)"), "{error}");
    std::fs::remove_file(&nowhere).unwrap();
    let long = PathBuf::from(format!("/{}", "x".repeat(200)));
    assert!(matches!(Client::at(long).get("/").unwrap_err(), ClientError::NotRunning { .. }));
}

#[test]
fn x4_a_user_without_permission_learns_who_has_it() {
    let socket = path();
    let _listener = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = super::permission_hint(&socket);
    assert!(text.contains("with mode 0600: run this as that user"), "{text}");
    std::fs::remove_file(&socket).unwrap();
    assert!(super::permission_hint(&socket).contains("may not enter the directory"));
}

#[test]
fn x4_every_wait_has_a_timeout() {
    // It accepts the connection and sends nothing.
    let socket = path();
    let _listener = UnixListener::bind(&socket).unwrap();
    let started = Instant::now();
    let error = Client::at(socket.clone()).with_timeout(Duration::from_millis(50)).get("/").unwrap_err();
    assert!(error.to_string().contains("did not answer within 50ms"), "{error}");
    // It does not accept the connection: its listen queue is full.
    let full = path();
    let listener =
        net::socket(net::AddressFamily::Unix, net::SockType::Stream, net::SockFlag::empty(), None).unwrap();
    net::bind(listener.as_raw_fd(), &net::UnixAddr::new(&full).unwrap()).unwrap();
    net::listen(&listener, net::Backlog::new(0).unwrap()).unwrap();
    let waiting = UnixStream::connect(&full).unwrap();
    let error = Client::at(full.clone()).with_timeout(Duration::from_millis(50)).get("/").unwrap_err();
    assert!(error.to_string().contains("did not answer within 50ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(waiting);
    std::fs::remove_file(&socket).unwrap();
    std::fs::remove_file(&full).unwrap();
}

#[test]
fn x4_server_sent_events_are_parsed_for_any_split() {
    let text = ": hello\n\nid: 1\ndata: {\"a\":1}\n\n:\r\nid: 2\r\nevent: end\r\ndata: x\r\ndata:y\r\n\r\n\n\ndata: cut";
    for length in [1, 2, 3, 7, 1000] {
        let mut reader = MessageReader::default();
        for piece in text.as_bytes().chunks(length) {
            reader.read(piece).unwrap();
        }
        let found: Vec<_> = reader
            .messages
            .iter()
            .map(|one| (one.id.as_str(), one.event.as_str(), one.data.as_str()))
            .collect();
        assert_eq!(found, [("1", "", "{\"a\":1}"), ("2", "end", "x\ny")]);
    }
    let mut reader = MessageReader::default();
    let endless = vec![b'x'; 2 * 1024 * 1024];
    assert!(reader.read(&endless).is_err());
}

#[test]
fn x4_a_stream_continues_after_a_timeout() {
    let socket = path();
    let listener = UnixListener::bind(&socket).unwrap();
    let (go, wait) = mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        request(&mut peer);
        peer.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n").unwrap();
        // The length of a chunk arrives in two halves, with a pause between them.
        peer.write_all(b"0").unwrap();
        wait.recv().unwrap();
        peer.write_all(b"9\r\ndata: b\n\n\r\n0\r\n\r\n").unwrap();
    });
    let mut stream = Client::at(socket.clone()).messages("/v3/events").unwrap();
    assert_eq!(stream.next(None).unwrap().unwrap().data, "a");
    let late = stream.next(Some(Instant::now() + Duration::from_millis(20)));
    assert!(matches!(late, Err(StreamError::Timeout)), "{late:?}");
    go.send(()).unwrap();
    assert_eq!(stream.next(None).unwrap().unwrap().data, "b");
    assert_eq!(stream.next(None).unwrap(), None);
    server.join().unwrap();
    std::fs::remove_file(&socket).unwrap();
}
