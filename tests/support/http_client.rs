//! A minimal HTTP client on a unix socket, and a supervisor that listens on one.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::supervisor::{Mode, Supervisor, wait_until};

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// The value of a response header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A supervisor with a control socket.
pub(crate) struct Pilot {
    pub(crate) supervisor: Supervisor,
    pub(crate) socket: PathBuf,
}

impl Pilot {
    /// Starts one and waits until its socket accepts connections.
    pub(crate) fn start(config: &str) -> Self {
        let pilot = Self::start_without_waiting(config);
        wait_until("the control socket accepts connections", || UnixStream::connect(&pilot.socket).is_ok());
        pilot
    }

    /// Starts one without waiting for its socket.
    pub(crate) fn start_without_waiting(config: &str) -> Self {
        let supervisor = Supervisor::start(Mode::Plain, config);
        let socket = supervisor.file("socket");
        Self { supervisor, socket }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        request(&self.socket, "GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Response {
        request(&self.socket, "POST", path, body)
    }

    /// A job as `/v3/status` shows it.
    pub(crate) fn job(&self, name: &str) -> Value {
        let status = self.get("/v3/status").json();
        let jobs = status["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["name"] == name).unwrap_or_else(|| panic!("no {name} in {status}")).clone()
    }

    pub(crate) fn wait_for_state(&self, name: &str, state: &str) {
        wait_until(&format!("{name} is {state}"), || self.job(name)["state"] == state);
    }

    /// The process of a job, as soon as it runs.
    pub(crate) fn pid_of(&self, name: &str) -> Value {
        self.wait_for_state(name, "running");
        self.job(name)["pid"].clone()
    }

    pub(crate) fn open(&self, path: &str) -> Lines {
        Lines::open(&self.socket, path)
    }
}

pub(crate) fn connect(socket: &Path) -> UnixStream {
    // The listen queue may be full for a moment while hundreds of clients connect.
    let mut stream = None;
    wait_until("the control socket accepts the connection", || {
        stream = UnixStream::connect(socket).ok();
        stream.is_some()
    });
    let stream = stream.unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Sends bytes, and reads the response until the connection is closed.
pub(crate) fn send_raw(socket: &Path, request: &[u8]) -> String {
    let mut stream = connect(socket);
    // The server may refuse the request and close the connection before it has read all of it.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no response within {TIMEOUT:?}"),
        _ => String::from_utf8_lossy(&answer).into_owned(),
    }
}

pub(crate) fn request(socket: &Path, method: &str, path: &str, body: &str) -> Response {
    let length = body.len();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    let answer = send_raw(socket, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
}

/// A streamed response, line by line.
pub(crate) struct Lines(BufReader<UnixStream>);

impl Lines {
    pub(crate) fn open(socket: &Path, path: &str) -> Self {
        let mut stream = connect(socket);
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut lines = Self(BufReader::new(stream));
        let first = lines.next().unwrap();
        assert!(first.contains(" 200 "), "{first}");
        while !lines.next().unwrap().is_empty() {}
        lines
    }

    /// The next line without its line ending; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self.0.read_until(b'\n', &mut line).unwrap();
        let line = String::from_utf8_lossy(&line);
        (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Waits for a line that contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.next() {
                Some(line) if line.contains(text) => return line,
                Some(line) => seen.push(line),
                None => panic!("no line contains `{text}`; the lines were {seen:#?}"),
            }
        }
    }

    /// The next event of a stream of server-sent events. The start of a run is not an event and is skipped.
    pub(crate) fn event(&mut self) -> Value {
        self.wait_for("id: ");
        self.data()
    }

    /// The data of the current message of a stream of server-sent events.
    pub(crate) fn data(&mut self) -> Value {
        let line = self.wait_for("data: ");
        serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap()
    }

    /// All remaining lines.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
