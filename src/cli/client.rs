//! Speaking to a running supervisor through its control socket: a small HTTP/1.1 client, blocking and with deadlines.
//!
//! A command asks one thing and ends, so there is nothing to share a thread with: no asynchronous runtime, no pool of
//! connections. Whatever answers there may be broken or hostile; everything that is read is bounded.

pub(crate) mod fuzz;
mod http;
mod messages;
mod socket;
mod stream;
#[cfg(test)]
pub(super) mod tests;

use std::fmt;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket as net;

use self::http::Body;
pub(super) use self::messages::Message;
pub(super) use self::stream::Messages;
use super::Failure;
use super::flags::Arguments;
use crate::process::sys;

/// How long an answer may take, unless something else is said.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer that is read: the status of a hundred thousand jobs.
const MOST: usize = 64 * 1024 * 1024;

/// Where a supervisor is asked.
#[derive(Clone, Debug)]
pub(super) struct Client {
    socket: PathBuf,
    write_timeout: Duration,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nobody is there, and why that is thought.
    Absent(String),
    /// Everything else.
    Other(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Absent(message) | Self::Other(message)) = self;
        out.write_str(message)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Failed(trouble.to_string())
    }
}

impl Client {
    /// The supervisor that the flags or the configuration lead to.
    pub(super) fn of(args: &Arguments) -> Result<Self, Failure> {
        Ok(Self::at(socket::path(args)?))
    }

    /// The supervisor behind a socket.
    pub(super) fn at(socket: PathBuf) -> Self {
        Self { socket, write_timeout: PATIENCE }
    }

    /// The same, with another write_timeout.
    pub(super) fn patient(mut self, write_timeout: Duration) -> Self {
        self.write_timeout = write_timeout;
        self
    }

    pub(super) fn get(&self, path: &str) -> Result<Answer, Trouble> {
        self.ask("GET", path, None)
    }

    pub(super) fn post(&self, path: &str, body: Option<&str>) -> Result<Answer, Trouble> {
        self.ask("POST", path, body)
    }

    /// A stream of bytes that goes on as long as the supervisor has something to say.
    pub(super) fn bytes(&self, path: &str) -> Result<Bytes, Trouble> {
        let until = Instant::now() + self.write_timeout;
        let (status, mut body) = self.open("GET", path, None, until)?;
        if status != 200 {
            let body = self.rest(&mut body, Some(until))?;
            return Err(Trouble::Other(Answer { status, body }.reason()));
        }
        Ok(Bytes { client: self.clone(), body })
    }

    /// A stream of server-sent events.
    pub(super) fn messages(&self, path: &str) -> Result<Messages, Trouble> {
        Ok(Messages::new(self.bytes(path)?))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer, Trouble> {
        let until = Instant::now() + self.write_timeout;
        let (status, mut answer) = self.open(method, path, body, until)?;
        let body = self.rest(&mut answer, Some(until))?;
        Ok(Answer { status, body })
    }

    /// Sends a request, and reads the answer up to its body.
    fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        until: Instant,
    ) -> Result<(u16, Body), Trouble> {
        let mut stream = self.connect(until)?;
        let body = body.unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: control\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        // One who refuses a body need not read it: what it has to say counts, not that it closed the door.
        match stream.write_all(request.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(self.trouble(&error)),
            _ => {}
        }
        Body::open(stream, until).map_err(|error| self.trouble(&error))
    }

    fn rest(&self, body: &mut Body, until: Option<Instant>) -> Result<Vec<u8>, Trouble> {
        let mut all = Vec::new();
        while let Some(piece) = body.next(until).map_err(|error| self.trouble(&error))? {
            all.extend_from_slice(piece);
            if all.len() > MOST {
                return Err(Trouble::Other(format!("the answer has more than {MOST} bytes")));
            }
        }
        Ok(all)
    }

    fn connect(&self, until: Instant) -> Result<UnixStream, Trouble> {
        let trouble = |errno: Errno| self.absent(&io::Error::from(errno));
        let address = net::UnixAddr::new(&self.socket).map_err(trouble)?;
        let flags = net::SockFlag::SOCK_CLOEXEC;
        let socket =
            net::socket(net::AddressFamily::Unix, net::SockType::Stream, flags, None).map_err(trouble)?;
        let stream = UnixStream::from(socket);
        // The time to write is the time to connect too, if there is a queue at the door.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_write_timeout(Some(left)).map_err(|error| self.trouble(&error))?;
        net::connect(stream.as_raw_fd(), &address).map_err(trouble)?;
        Ok(stream)
    }

    /// Why nobody could be reached.
    fn absent(&self, error: &io::Error) -> Trouble {
        let path = self.socket.display();
        let nobody =
            |why: &str| Trouble::Absent(format!("no supervisor answers at {path}: is it running? ({why})"));
        match error.kind() {
            io::ErrorKind::NotFound => nobody("there is no such socket"),
            io::ErrorKind::ConnectionRefused => match self.socket.metadata() {
                Ok(about) if !about.file_type().is_socket() => nobody("that is no socket"),
                _ => nobody("nobody listens there"),
            },
            io::ErrorKind::PermissionDenied => Trouble::Other(denied(&self.socket)),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.trouble(error),
            _ => nobody(&error.to_string()),
        }
    }

    /// Why no answer came from somebody who could be reached.
    fn trouble(&self, error: &io::Error) -> Trouble {
        let path = self.socket.display();
        Trouble::Other(match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("the supervisor at {path} has not answered within {:?}", self.write_timeout)
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted => {
                format!("the supervisor at {path} went away before it had answered")
            }
            io::ErrorKind::InvalidData => format!("what answers at {path} is no supervisor: {error}"),
            _ => format!("the supervisor at {path} cannot be asked: {error}"),
        })
    }
}

/// Who may use a socket, for one who may not.
fn denied(socket: &Path) -> String {
    let (user, _) = sys::effective_ids();
    let path = socket.display();
    match socket.metadata() {
        Ok(about) => format!(
            "user {user} may not use {path}, which is for user {} and group {} with mode {:04o}: run this as that \
             user, or let others in with `control: {{ mode, group }}`",
            about.uid(),
            about.gid(),
            about.mode() & 0o7777
        ),
        Err(_) => {
            format!("user {user} may not look into the folder of {path}: run this as the supervisor's user")
        }
    }
}

impl Answer {
    /// Whether it says yes.
    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The answer if it says yes; otherwise the reason it gives.
    pub(super) fn good(self) -> Result<Self, Failure> {
        if self.is_good() { Ok(self) } else { Err(Failure::Failed(self.reason())) }
    }

    /// The answer as JSON, if it says yes and is some.
    pub(super) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        if !self.is_good() {
            return Err(Failure::Failed(self.reason()));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::Failed(format!("unexpected answer from the supervisor: {error}")))
    }

    /// Why it says no. The first line only repeats the number in words, if there are others.
    pub(super) fn reason(&self) -> String {
        let text = self.text();
        let text = text.trim();
        let reason = text.split_once('\n').map_or(text, |(_, reason)| reason).trim();
        if reason.is_empty() {
            format!("the supervisor answers with {}", self.status)
        } else {
            reason.to_owned()
        }
    }
}

/// A stream of bytes from the supervisor.
pub(super) struct Bytes {
    client: Client,
    body: Body,
}

impl Bytes {
    /// The next bytes; nothing at the end. Without a time it waits as long as it takes.
    pub(super) fn next(&mut self, until: Option<Instant>) -> Result<Option<&[u8]>, Late> {
        match self.body.next(until) {
            Ok(piece) => Ok(piece),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(Late::Time)
            }
            Err(error) => Err(Late::Trouble(self.client.trouble(&error))),
        }
    }
}

/// Why a stream has nothing.
#[derive(Debug)]
pub(super) enum Late {
    /// The time is over; it may go on.
    Time,
    /// It is broken.
    Trouble(Trouble),
}

impl From<Late> for Failure {
    fn from(late: Late) -> Self {
        match late {
            Late::Time => Self::Failed("the supervisor has said nothing in time".to_owned()),
            Late::Trouble(trouble) => trouble.into(),
        }
    }
}

/// A name as a part of a path.
pub(super) fn quoted(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => drop(fmt::Write::write_fmt(&mut out, format_args!("%{byte:02X}"))),
        }
    }
    out
}
