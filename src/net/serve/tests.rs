use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant as StdInstant;

use crate::net::Net;

const PATIENCE: Duration = Duration::from_secs(30);

/// Echoes bodies; `/stream` streams what the test feeds, `/hang` never answers.
struct Echo(mpsc::Sender<Feed>);

impl Answer for Echo {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.echo(asked))
    }
}

impl Echo {
    async fn echo(&self, asked: Asked) -> Response {
        match asked.request.path.as_str() {
            "/stream" => {
                let (feed, body) = Body::stream();
                self.0.send(feed).unwrap();
                Response::new("text/plain", body)
            }
            "/large" => Response::new("text/plain", vec![b'x'; 8 << 20]),
            "/hang" => std::future::pending().await,
            _ => Response::new("text/plain", asked.body),
        }
    }
}

struct Server {
    folder: PathBuf,
    feeds: mpsc::Receiver<Feed>,
    end: Option<watch::Sender<()>>,
    ended: mpsc::Receiver<()>,
    net: Option<Net>,
}

impl Server {
    fn start(limits: Limits) -> Self {
        let folder = crate::test_support::folder();
        let net = Net::start().unwrap();
        let (feed, feeds) = mpsc::channel();
        let (end, ending) = watch::channel(());
        let (tell, ended) = mpsc::channel();
        let listener = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let used = net.used();
        net.spawn(async move {
            let listener = Listener::Unix(UnixListener::from_std(listener).unwrap());
            serve(listener, limits, Box::new(Echo(feed)), used, ending).await;
            drop(tell);
        });
        Self { folder, feeds, end: Some(end), ended, net: Some(net) }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.join("socket")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes and reads all that comes back until the server closes the connection.
    fn ask(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that refuses may close before everything is sent.
        let _ = stream.write_all(request);
        read_all(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(net) = self.net.take() {
            net.finish(StdInstant::now() + PATIENCE);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn read_all(mut stream: UnixStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

fn quick() -> Limits {
    let short = Duration::from_millis(300);
    Limits { head: short, request: short, stall: short, persistent: false, ..Limits::default() }
}

fn calm() -> Limits {
    Limits { persistent: false, ..Limits::default() }
}

#[test]
fn x1_a_request_is_answered_and_the_connection_closed_unless_asked_otherwise() {
    let server = Server::start(calm());
    let answer = server.ask(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    let two = server.ask(
        b"POST / HTTP/1.1\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na\
          POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\nb",
    );
    assert_eq!(two.matches("200 OK").count(), 2, "{two}");
}

#[test]
fn x1_who_closes_his_half_still_gets_the_answer() {
    let server = Server::start(calm());
    let mut stream = server.connect();
    stream.write_all(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(read_all(stream).ends_with("\r\n\r\nab"));
}

#[test]
fn x1_garbage_and_endless_heads_are_refused() {
    let server = Server::start(calm());
    assert!(server.ask(b"\x00\xff\x16\x03 garbage\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(server.ask(b"GET / HTTP/9.9\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(64 * 1024));
    assert!(server.ask(long.as_bytes()).starts_with("HTTP/1.1 431 "));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200));
    assert!(server.ask(many.as_bytes()).starts_with("HTTP/1.1 431 "));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(60 * 1024));
    let answer = server.ask(path.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 414 ") || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn x1_a_body_over_the_limit_is_413_announced_or_not() {
    let server = Server::start(calm());
    let limit = 1 << 20;
    for length in [limit, limit + 1, 2 * limit, 20 << 20] {
        let mut request = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        request.resize(request.len() + length.min(4 << 20), b'x');
        let answer = server.ask(&request);
        let status = if length > limit { "HTTP/1.1 413 " } else { "HTTP/1.1 200 " };
        assert!(answer.starts_with(status), "{length}: {}", answer.get(..80).unwrap_or(&answer));
    }
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
    let chunked =
        format!("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(17));
    assert!(server.ask(chunked.as_bytes()).starts_with("HTTP/1.1 413 "));
}

#[test]
fn x1_slow_and_half_requests_end_by_themselves() {
    let server = Server::start(quick());
    assert_eq!(server.ask(b"GET / HTTP/1.1\r\nho"), "", "half a head");
    assert_eq!(server.ask(b""), "", "nothing at all");
    let answer = server.ask(b"POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\nhalf");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    let answer = server.ask(b"GET /hang HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
}

#[test]
fn x1_who_does_not_read_the_answer_loses_the_connection() {
    let server = Server::start(quick());
    let mut stream = server.connect();
    stream.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
    // The server has hung up when writing fails.
    let deadline = StdInstant::now() + PATIENCE;
    while stream.write_all(b"x").is_ok() {
        assert!(StdInstant::now() < deadline, "it still waits");
        std::thread::yield_now();
    }
}

#[test]
fn x1_more_connections_than_there_are_places_wait_for_one() {
    let server = Server::start(Limits { connections: 2, head: Duration::from_millis(300), ..calm() });
    let idle: Vec<_> = (0..10).map(|_| server.connect()).collect();
    let answer = server.ask(b"GET / HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "after the idle ones were shown out: {answer}");
    drop(idle);
}

#[test]
fn x2_streams_have_places_of_their_own_and_give_them_back() {
    let server = Server::start(Limits { streams: 1, ..calm() });
    let mut first = server.connect();
    first.write_all(b"GET /stream HTTP/1.1\r\n\r\n").unwrap();
    let mut feed = server.feeds.recv_timeout(PATIENCE).unwrap();
    assert_eq!(feed.offer("hello".into(), "slow"), Taken::Yes);
    // The head of the answer says that the place is taken.
    first.read_exact(&mut [0; 8]).unwrap();
    let refused = server.ask(b"GET /stream HTTP/1.1\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(
        server.ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "),
        "a plain question has a place"
    );
    drop(first);
    // That the reader has left is noticed without anything being written.
    let deadline = StdInstant::now() + PATIENCE;
    while !feed.is_over() {
        assert!(StdInstant::now() < deadline, "nobody noticed");
        std::thread::yield_now();
    }
    let mut again = server.connect();
    again.write_all(b"GET /stream HTTP/1.1\r\n\r\n").unwrap();
    let _refused = server.feeds.recv_timeout(PATIENCE).unwrap();
    drop(server.feeds.recv_timeout(PATIENCE).unwrap());
    assert!(read_all(again).starts_with("HTTP/1.1 200 "));
}

#[test]
fn s6_what_was_begun_is_answered_before_the_server_ends() {
    let mut server = Server::start(calm());
    let mut stream = server.connect();
    stream.write_all(b"GET /stream HTTP/1.1\r\n\r\n").unwrap();
    let mut feed = server.feeds.recv_timeout(PATIENCE).unwrap();
    drop(server.end.take());
    assert_eq!(feed.offer("last".into(), "slow"), Taken::Yes);
    feed.finish(" words");
    let answer = read_all(stream);
    assert!(answer.contains("last") && answer.contains(" words"), "{answer}");
    assert_eq!(server.ended.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
    assert!(UnixStream::connect(server.folder.join("socket")).is_err(), "nobody listens");
}

#[test]
fn s6_what_has_come_is_answered_though_nobody_has_looked_at_it_when_the_server_ends() {
    let mut server = Server::start(Limits { persistent: true, ..calm() });
    let mut taken = server.connect();
    taken.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = [0; 1024];
    let length = taken.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(answer.contains("200 OK") && !answer.contains("connection: close"), "{answer}");
    let idle = server.connect();
    // The thread has something else to do until all of this has happened.
    let (go_on, wait) = mpsc::channel::<()>();
    let (busy, is_busy) = mpsc::channel();
    server.net.as_ref().unwrap().spawn(async move {
        busy.send(()).unwrap();
        let _ = wait.recv();
    });
    is_busy.recv_timeout(PATIENCE).unwrap();
    taken.write_all(b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nagain").unwrap();
    let mut at_the_door = server.connect();
    at_the_door.write_all(b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nfirst").unwrap();
    drop(server.end.take());
    drop(go_on);
    for (stream, end) in [(taken, "\r\n\r\nagain"), (at_the_door, "\r\n\r\nfirst")] {
        let answer = read_all(stream);
        assert!(answer.contains("connection: close\r\n") && answer.ends_with(end), "{answer}");
    }
    assert_eq!(read_all(idle), "", "who has not asked is not waited for");
    assert_eq!(server.ended.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn s6_nobody_who_has_not_asked_holds_up_the_end() {
    let patient = Duration::from_secs(1000);
    let mut server = Server::start(Limits { persistent: true, head: patient, ..calm() });
    let mut peers: Vec<_> = (0..4).map(|_| server.connect()).collect();
    peers[1].write_all(b"\r\n").unwrap();
    peers[2].write_all(b"GET").unwrap();
    peers[3].shutdown(std::net::Shutdown::Write).unwrap();
    // All of them were taken before this one.
    assert!(server.ask(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").contains("200 OK"));
    drop(server.end.take());
    assert_eq!(server.ended.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn x1_many_large_bodies_come_through_though_there_is_no_room_for_all_at_once() {
    let server = Server::start(calm());
    let length = 1 << 20;
    let mut request = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    request.resize(request.len() + length, b'x');
    let ask = |mut stream: UnixStream| {
        let _ = stream.write_all(&request);
        read_all(stream)
    };
    std::thread::scope(|scope| {
        let streams = (0..4 * LARGE_BODIES / length).map(|_| server.connect());
        let asking: Vec<_> = streams
            .map(|stream| {
                scope.spawn({
                    let ask = &ask;
                    move || ask(stream)
                })
            })
            .collect();
        for answer in asking {
            let answer = answer.join().unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{}", answer.get(..200).unwrap_or(&answer));
        }
    });
}

#[test]
fn x1_who_waits_for_leave_to_send_a_body_gets_it_or_a_no() {
    let server = Server::start(calm());
    let mut stream = server.connect();
    stream.write_all(b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n").unwrap();
    let mut leave = [0; 25];
    stream.read_exact(&mut leave).unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    let answer = read_all(stream);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    let refused = server.ask(b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2000000\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 413 "), "{refused}");
}

#[test]
fn x1_old_clients_and_those_who_want_the_head_alone_get_what_they_understand() {
    let server = Server::start(Limits { persistent: true, ..calm() });
    let answer = server.ask(b"POST / HTTP/1.0\r\ncontent-length: 2\r\n\r\nab");
    assert!(answer.contains("connection: close\r\n") && answer.ends_with("\r\n\r\nab"), "{answer}");
    let two = server.ask(
        b"POST / HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na\
          POST / HTTP/1.1\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb",
    );
    assert_eq!(two.matches("200 OK").count(), 2, "{two}");
    assert_eq!(two.matches("connection: keep-alive\r\n").count(), 1, "{two}");
    let bare = server.ask(b"HEAD / HTTP/1.1\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc");
    assert!(bare.contains("content-length: 3\r\n") && bare.ends_with(" GMT\r\n\r\n"), "{bare}");

    let stream = |version: &str| {
        let mut stream = server.connect();
        write!(stream, "GET /stream HTTP/1.{version}\r\nconnection: close\r\n\r\n").unwrap();
        let mut feed = server.feeds.recv_timeout(PATIENCE).unwrap();
        for piece in ["one", "", "two"] {
            assert_eq!(feed.offer(piece.into(), "slow"), Taken::Yes);
        }
        drop(feed);
        read_all(stream)
    };
    let (old, new) = (stream("0"), stream("1"));
    assert!(old.ends_with("\r\n\r\nonetwo") && !old.contains("chunked"), "{old}");
    assert!(new.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"), "{new}");
}

#[test]
fn x1_a_request_with_two_ends_is_refused_and_nothing_behind_it_is_answered() {
    let server = Server::start(Limits { persistent: true, ..calm() });
    let answer = server.ask(
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n\
          GET /hang HTTP/1.1\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.matches("HTTP/1.1").count() == 1, "{answer}");
    let answer = server.ask(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("the length of a chunk is no number"),
        "{answer}"
    );
}
