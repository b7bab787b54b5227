//! A client of the telemetry server and of the control socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use flate2::read::GzDecoder;

use super::deadline::wait_until_within;
use super::supervisor::{Mode, Supervisor};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A supervisor with a telemetry server on a free port.
pub(crate) struct Telemetry {
    pub(crate) supervisor: Supervisor,
    pub(crate) address: SocketAddr,
}

/// A response: status code, lowercase head, body without its compression.
pub(crate) type Response = (u16, String, String);

impl Telemetry {
    /// Starts it with the keys of a configuration, without the outer braces.
    pub(crate) fn start(config: &str) -> Self {
        Self::with_setup("", config)
    }

    /// Runs a shell script first.
    pub(crate) fn with_setup(script: &str, config: &str) -> Self {
        let whole = format!("{{ control: {{ socket: '@/control' }}, {config} }}");
        // As PID 1, so that its jobs end with it.
        let mut supervisor = Supervisor::with_setup(Mode::Pid1, script, &whole);
        let line = supervisor.wait_for_line("telemetry: serving at ");
        let address = line.rsplit(' ').next().unwrap().parse().unwrap();
        Self { supervisor, address }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        request(self.address, "GET", path)
    }

    /// The page `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        let (code, _, body) = self.get("/metrics");
        assert_eq!(code, 200, "{body}");
        body
    }

    /// The value of a sample, with its labels.
    pub(crate) fn value(&self, sample: &str) -> Option<f64> {
        let page = self.metrics();
        page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
    }

    /// Sends values of metrics to the control socket, as JSON.
    pub(crate) fn put(&self, values: &str) -> Response {
        self.control("POST", "/v3/metric", values)
    }

    /// Sends a request to the control socket.
    pub(crate) fn control(&self, method: &str, path: &str, body: &str) -> Response {
        let mut stream = UnixStream::connect(self.supervisor.file("control")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        read_response(stream)
    }

    /// Waits until `/metrics` has the line `line`.
    pub(crate) fn wait_for_line(&self, line: &str) {
        let what = || format!("a line is `{line}` in\n{}", self.metrics());
        wait_until_within(TIMEOUT, what, || self.metrics().lines().any(|found| found == line));
    }
}

pub(crate) fn request(address: SocketAddr, method: &str, path: &str) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let headers = "Host: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n";
    write!(stream, "{method} {path} HTTP/1.1\r\n{headers}\r\n").unwrap();
    read_response(stream)
}

pub(crate) fn read_response(mut stream: impl Read) -> Response {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("not an HTTP response: {}", String::from_utf8_lossy(&bytes)));
    let mut body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap().trim_end().to_lowercase();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    if head.contains("\r\ncontent-encoding: gzip") && !body.is_empty() {
        let mut plain = Vec::new();
        GzDecoder::new(body.as_slice()).read_to_end(&mut plain).unwrap();
        body = plain;
    }
    (code, head, String::from_utf8(body).unwrap())
}
