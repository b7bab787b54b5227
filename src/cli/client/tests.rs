//! The client against a server that says what it is told to say.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::socket as net;

use super::messages::Reader;
use super::{Client, Late, Trouble, quoted};

/// A server that answers each connection with the next of its answers, and keeps what it was asked.
pub(in super::super) struct Script {
    pub(in super::super) socket: PathBuf,
    asked: Receiver<String>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn path() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("containerpilot-client-{}-{number}", std::process::id()))
}

impl Script {
    pub(in super::super) fn new(answers: &[&str]) -> Self {
        let pieces = answers.iter().map(|answer| vec![(*answer).to_owned()]).collect();
        Self::in_pieces(pieces)
    }

    /// Each piece of an answer is sent by itself.
    fn in_pieces(answers: Vec<Vec<String>>) -> Self {
        let socket = path();
        let listener = UnixListener::bind(&socket).unwrap();
        let (sender, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut peer, _) = listener.accept().unwrap();
                let _ = sender.send(request(&mut peer));
                for piece in answer {
                    let _ = peer.write_all(piece.as_bytes());
                    std::thread::yield_now();
                }
            }
        });
        Self { socket, asked }
    }

    fn client(&self) -> Client {
        Client::at(self.socket.clone())
    }

    /// What was asked, in the order of asking.
    pub(in super::super) fn asked(&self) -> String {
        self.asked.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A whole request: head and body.
fn request(peer: &mut UnixStream) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    loop {
        let length = peer.read(&mut piece).unwrap();
        text += std::str::from_utf8(&piece[..length]).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap();
        if body.len() >= length.parse().unwrap() {
            return text;
        }
    }
}

#[test]
fn x4_a_request_is_plain_http() {
    let script = Script::new(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"]);
    let answer = script.client().post("/v3/environ", Some("{\"A\":\"1\"}")).unwrap();
    assert_eq!((answer.status, answer.text().as_ref()), (200, "ok"));
    let asked = script.asked();
    assert!(asked.starts_with("POST /v3/environ HTTP/1.1\r\nHost: control\r\n"), "{asked}");
    assert!(asked.ends_with("Content-Length: 9\r\n\r\n{\"A\":\"1\"}"), "{asked}");
}

#[test]
fn x4_a_body_ends_by_length_by_chunks_or_by_the_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
        "HTTP/1.0 200 OK\r\n\r\nhello world",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nA: b\r\n\r\n",
    ] {
        assert_eq!(Script::new(&[answer]).client().get("/").unwrap().text(), "hello world", "{answer}");
        // However it is cut.
        let letters = answer.chars().map(|c| c.to_string()).collect();
        assert_eq!(Script::in_pieces(vec![letters]).client().get("/").unwrap().text(), "hello world");
    }
}

#[test]
fn x4_garbage_is_told_from_an_answer() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(100_000));
    for (answer, expected) in [
        ("SSH-2.0-x\r\n", "is no supervisor"),
        ("HTTP/1.1 abc\r\n\r\n", "is no supervisor"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "is no supervisor"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "is no supervisor"),
        (&long, "too long"),
        (&many, "too long"),
        ("", "went away"),
        ("HTTP/1.1 200", "went away"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "went away"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "went away"),
    ] {
        let trouble = Script::new(&[answer]).client().get("/").unwrap_err();
        assert!(trouble.to_string().contains(expected), "{answer:.60}: {trouble}");
    }
}

#[test]
fn x6_a_refusal_gives_its_reason() {
    for (body, reason) in [
        ("Not Found\nthere is no job `x`", "there is no job `x`"),
        ("Unprocessable Entity\nerror: a\n  |\nerror: b\n", "error: a\n  |\nerror: b"),
        ("just this", "just this"),
        ("", "the supervisor answers with 409"),
    ] {
        let answer = format!("HTTP/1.1 409 Conflict\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let answer = Script::new(&[&answer]).client().get("/").unwrap();
        assert_eq!(answer.good().unwrap_err().to_string(), reason);
    }
}

#[test]
fn x4_nobody_there_is_said_in_one_line() {
    let nowhere = path();
    let trouble = Client::at(nowhere.clone()).get("/").unwrap_err();
    assert!(matches!(trouble, Trouble::Absent(_)));
    let expected =
        format!("no supervisor answers at {}: is it running? (there is no such socket)", nowhere.display());
    assert_eq!(trouble.to_string(), expected);
    // A socket that a supervisor has left behind, and a file that never was one.
    drop(UnixListener::bind(&nowhere).unwrap());
    let trouble = Client::at(nowhere.clone()).get("/").unwrap_err();
    assert!(trouble.to_string().ends_with("is it running? (nobody listens there)"), "{trouble}");
    std::fs::remove_file(&nowhere).unwrap();
    std::fs::write(&nowhere, "").unwrap();
    let trouble = Client::at(nowhere.clone()).get("/").unwrap_err();
    assert!(trouble.to_string().ends_with("is it running? (that is no socket)"), "{trouble}");
    std::fs::remove_file(&nowhere).unwrap();
    let long = PathBuf::from(format!("/{}", "x".repeat(200)));
    assert!(matches!(Client::at(long).get("/").unwrap_err(), Trouble::Absent(_)));
}

#[test]
fn x4_who_may_not_is_told_who_may() {
    let socket = path();
    let _listener = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = super::denied(&socket);
    assert!(text.contains("with mode 0600: run this as that user"), "{text}");
    std::fs::remove_file(&socket).unwrap();
    assert!(super::denied(&socket).contains("may not look into the folder"));
}

#[test]
fn x4_nobody_is_waited_for_without_end() {
    // It takes the connection and says nothing.
    let socket = path();
    let _listener = UnixListener::bind(&socket).unwrap();
    let begun = Instant::now();
    let trouble = Client::at(socket.clone()).patient(Duration::from_millis(50)).get("/").unwrap_err();
    assert!(trouble.to_string().contains("has not answered within 50ms"), "{trouble}");
    // It does not even take the connection: its queue has room for one, and one is in it.
    let full = path();
    let listener =
        net::socket(net::AddressFamily::Unix, net::SockType::Stream, net::SockFlag::empty(), None).unwrap();
    net::bind(listener.as_raw_fd(), &net::UnixAddr::new(&full).unwrap()).unwrap();
    net::listen(&listener, net::Backlog::new(0).unwrap()).unwrap();
    let waiting = UnixStream::connect(&full).unwrap();
    let trouble = Client::at(full.clone()).patient(Duration::from_millis(50)).get("/").unwrap_err();
    assert!(trouble.to_string().contains("has not answered within 50ms"), "{trouble}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(waiting);
    std::fs::remove_file(&socket).unwrap();
    std::fs::remove_file(&full).unwrap();
}

#[test]
fn x4_server_sent_events_are_read_however_they_are_cut() {
    let text = ": hello\n\nid: 1\ndata: {\"a\":1}\n\n:\r\nid: 2\r\nevent: end\r\ndata: x\r\ndata:y\r\n\r\n\n\ndata: cut";
    for length in [1, 2, 3, 7, 1000] {
        let mut reader = Reader::default();
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
    let mut reader = Reader::default();
    let endless = vec![b'x'; 2 * 1024 * 1024];
    assert!(reader.read(&endless).is_err());
}

#[test]
fn x4_a_stream_can_be_waited_for_again_after_its_time() {
    let socket = path();
    let listener = UnixListener::bind(&socket).unwrap();
    let (go, wait) = mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        request(&mut peer);
        peer.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n").unwrap();
        // The length of a chunk comes in two halves, with a silence between.
        peer.write_all(b"0").unwrap();
        wait.recv().unwrap();
        peer.write_all(b"9\r\ndata: b\n\n\r\n0\r\n\r\n").unwrap();
    });
    let mut stream = Client::at(socket.clone()).messages("/v3/events").unwrap();
    assert_eq!(stream.next(None).unwrap().unwrap().data, "a");
    let late = stream.next(Some(Instant::now() + Duration::from_millis(20)));
    assert!(matches!(late, Err(Late::Time)), "{late:?}");
    go.send(()).unwrap();
    assert_eq!(stream.next(None).unwrap().unwrap().data, "b");
    assert_eq!(stream.next(None).unwrap(), None);
    server.join().unwrap();
    std::fs::remove_file(&socket).unwrap();
}

#[test]
fn x4_any_name_can_be_part_of_a_path() {
    assert_eq!(quoted("a-b_c.d~E9"), "a-b_c.d~E9");
    assert_eq!(quoted("a/b c%?\r\nä"), "a%2Fb%20c%25%3F%0D%0A%C3%A4");
}
