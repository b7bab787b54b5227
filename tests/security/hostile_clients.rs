//! Hostile clients of the control socket and of the telemetry server (X1, T1).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{open_descriptors, resident_kib};
use crate::support::supervisor::{Mode, Supervisor, wait_until};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to either server.
trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

struct Servers {
    run: Supervisor,
    telemetry: String,
}

impl Servers {
    fn start() -> Self {
        let config =
            "{ jobs: [{ name: 'main', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' } }";
        let mut run = Supervisor::start(Mode::Plain, config);
        let telemetry = run.wait_for_line("telemetry: serving at ").rsplit(' ').next().unwrap().to_owned();
        Self { run, telemetry }
    }

    fn control(&self) -> Box<dyn Connection> {
        let stream = UnixStream::connect(self.run.file("socket")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Box::new(stream)
    }

    fn telemetry(&self) -> Box<dyn Connection> {
        let stream = TcpStream::connect(&self.telemetry).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Box::new(stream)
    }

    /// Requires that both servers still respond, and stops the supervisor.
    fn assert_unharmed(self) {
        for (mut connection, path) in [(self.control(), "/v3/ping"), (self.telemetry(), "/livez")] {
            write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            connection.read_to_string(&mut answer).unwrap();
            assert!(answer.contains(" 200 OK"), "{answer}");
        }
        self.run.signal("-TERM");
        let (code, log) = self.run.wait();
        assert!(code == 0 && !log.contains("main exited with"), "exit code {code}");
    }
}

/// Writes `first`, and then `again` until the server closes the connection; returns the bytes written and the response.
fn flood(mut connection: Box<dyn Connection>, first: &str, again: &[u8]) -> (usize, String) {
    connection.write_all(first.as_bytes()).unwrap();
    let mut written = 0;
    while connection.write_all(again).is_ok() {
        written += again.len();
        assert!(written < 1 << 30, "the server does not close the connection");
    }
    let mut answer = Vec::new();
    // A reset connection may lose the response.
    let _ = connection.read_to_end(&mut answer);
    (written, String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn x1_t1_endless_heads_and_bodies_are_cut_off() {
    let servers = Servers::start();
    drop(servers.control());
    let before = resident_kib(servers.run.pid());
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    let field = b"x-more: and more and more and more\r\n";
    for (connection, path) in [(servers.control(), "/v3/status"), (servers.telemetry(), "/metrics")] {
        let (written, _) = flood(connection, &format!("GET {path} HTTP/1.1\r\n"), field);
        // Socket buffers on both sides may hold some of it.
        assert!(written < 16 << 20, "{path}: {written} bytes of a head");
    }
    for (connection, path) in [(servers.control(), "/v3/environ"), (servers.telemetry(), "/metrics")] {
        let head = format!("POST {path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        let (written, _) = flood(connection, &head, &chunk);
        assert!(written < 32 << 20, "{path}: {written} bytes of a body");
    }
    let more = resident_kib(servers.run.pid()).saturating_sub(before);
    assert!(more < 32 * 1024, "{more} KiB more");
    servers.assert_unharmed();
}

#[test]
fn x1_t1_silent_connections_are_bounded_and_time_out() {
    let servers = Servers::start();
    let pid = servers.run.pid();
    let mut silent: Vec<Box<dyn Connection>> = (0..300).map(|_| servers.control()).collect();
    silent.extend((0..80).map(|_| servers.telemetry()));
    // The limits are 256 connections on the control socket and 64 on the telemetry server.
    wait_until("the connections are accepted", || open_descriptors(pid) >= 320);
    let open = open_descriptors(pid);
    assert!(open < 320 + 64, "{open} descriptors");
    // New clients take the slots of the oldest silent connections.
    servers.assert_unharmed();
    drop(silent);
}
