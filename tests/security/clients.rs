//! Clients that want to harm, of the control socket and of telemetry (X1, T1).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::{As, Supervisor, until};
use crate::{descriptors, resident};

const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to one of the two servers.
trait Line: Read + Write + Send {}
impl<T: Read + Write + Send> Line for T {}

struct Servers {
    run: Supervisor,
    telemetry: String,
}

impl Servers {
    fn start() -> Self {
        let config =
            "{ jobs: [{ name: 'main', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' } }";
        let mut run = Supervisor::start(As::Plain, config);
        let telemetry = run.line("telemetry: serving at ").rsplit(' ').next().unwrap().to_owned();
        Self { run, telemetry }
    }

    fn control(&self) -> Box<dyn Line> {
        let stream = UnixStream::connect(self.run.file("socket")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Box::new(stream)
    }

    fn telemetry(&self) -> Box<dyn Line> {
        let stream = TcpStream::connect(&self.telemetry).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Box::new(stream)
    }

    /// Both servers answer, and everything ends as it should.
    fn unharmed(self) {
        for (mut line, path) in [(self.control(), "/v3/ping"), (self.telemetry(), "/livez")] {
            write!(line, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            line.read_to_string(&mut answer).unwrap();
            assert!(answer.contains(" 200 OK"), "{answer}");
        }
        self.run.signal("-TERM");
        let (code, log) = self.run.end();
        assert!(code == 0 && !log.contains("main exited with"), "{log}");
    }
}

/// Writes one thing, and another until the other side has enough; how much that was, and what was answered.
fn pour(mut line: Box<dyn Line>, first: &str, again: &[u8]) -> (usize, String) {
    line.write_all(first.as_bytes()).unwrap();
    let mut poured = 0;
    while line.write_all(again).is_ok() {
        poured += again.len();
        assert!(poured < 1 << 30, "nobody stops it");
    }
    let mut answer = Vec::new();
    // What was still under way when it closed may have taken the answer along.
    let _ = line.read_to_end(&mut answer);
    (poured, String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn x1_endless_heads_and_bodies_are_cut_off() {
    let servers = Servers::start();
    drop(servers.control());
    let before = resident(servers.run.pid());
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    let field = b"x-more: and more and more and more\r\n";
    for (line, path) in [(servers.control(), "/v3/status"), (servers.telemetry(), "/metrics")] {
        let (poured, _) = pour(line, &format!("GET {path} HTTP/1.1\r\n"), field);
        // No more than fits between the two.
        assert!(poured < 16 << 20, "{path}: {poured} bytes of a head");
    }
    for (line, path) in [(servers.control(), "/v3/environ"), (servers.telemetry(), "/metrics")] {
        let head = format!("POST {path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        let (poured, _) = pour(line, &head, &chunk);
        assert!(poured < 32 << 20, "{path}: {poured} bytes of a body");
    }
    let more = resident(servers.run.pid()).saturating_sub(before);
    assert!(more < 32 * 1024, "{more} KiB more");
    servers.unharmed();
}

#[test]
fn x1_a_crowd_that_says_nothing_is_bounded_and_shown_out() {
    let servers = Servers::start();
    let pid = servers.run.pid();
    let mut crowd: Vec<Box<dyn Line>> = (0..300).map(|_| servers.control()).collect();
    crowd.extend((0..80).map(|_| servers.telemetry()));
    // 256 on the one, 64 on the other.
    until("they are not taken", || descriptors(pid) >= 320);
    let open = descriptors(pid);
    assert!(open < 320 + 64, "{open} descriptors");
    // Those who came late wait for a place, which is free as soon as the first have had their time.
    servers.unharmed();
    drop(crowd);
}
