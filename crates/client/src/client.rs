//! Sends requests to a running supervisor through its control socket: a blocking client on hyper, with deadlines.
//!
//! Every request has a connection and a small runtime of its own. The peer may be broken or hostile, so everything
//! that is read is bounded.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod messages;
mod socket;
mod stream;
#[cfg(test)]
pub(super) mod tests;

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use containerpilot_api::{HEAD_BYTES, HEAD_FIELDS};
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_config::ControlSocket;
use containerpilot_process::error_text::{describe, root_cause};
use containerpilot_process::sys;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use nix::errno::Errno;
use nix::sys::socket as net;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout_at;

pub(super) use self::messages::Message;
pub(super) use self::stream::Messages;

/// How long a response may take, unless the command has another timeout.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest response: the status of a hundred thousand jobs.
const RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// A supervisor's control socket.
#[derive(Clone, Debug)]
pub(super) struct Client {
    socket: PathBuf,
    /// False if the configuration cannot be read completely, and may name another socket.
    certain: bool,
    timeout: Duration,
}

/// A complete response.
#[derive(Debug)]
pub(super) struct ApiResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, Error)]
pub(super) enum ClientError {
    #[error("no supervisor answers at {}: is it running? ({reason})", socket.display())]
    NotRunning { socket: PathBuf, reason: String },
    #[error("{}", permission_hint(.0))]
    PermissionDenied(PathBuf),
    #[error("the supervisor at {} did not answer within {timeout:?}", socket.display())]
    Timeout { socket: PathBuf, timeout: Duration },
    #[error("the supervisor at {} closed the connection before it answered", socket.display())]
    Closed { socket: PathBuf },
    #[error("the process at {} is not a supervisor: {reason}", socket.display())]
    NotHttp { socket: PathBuf, reason: String },
    #[error("cannot send a request to the supervisor at {}: {}", socket.display(), describe(source))]
    Io { socket: PathBuf, source: io::Error },
    #[error("the response is longer than {RESPONSE_BYTES} bytes")]
    TooLong,
    /// The supervisor refused the request, or sent something that cannot be used.
    #[error("{0}")]
    Failed(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Client {
    /// The supervisor that the flags or the configuration name.
    pub(super) fn of(args: &Arguments) -> Self {
        let ControlSocket { path, certain } = socket::find(args);
        Self { certain, ..Self::at(path.into()) }
    }

    pub(super) const fn at(socket: PathBuf) -> Self {
        Self { socket, certain: true, timeout: DEFAULT_TIMEOUT }
    }

    pub(super) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(super) fn get(&self, path: &str) -> Result<ApiResponse, ClientError> {
        self.send(Method::GET, path, None)
    }

    pub(super) fn post(&self, path: &str, body: Option<&str>) -> Result<ApiResponse, ClientError> {
        self.send(Method::POST, path, body).map_err(may_continue)
    }

    /// Like `post`, for a request that may be accepted (202) long before it is done. It waits for the end of the
    /// response.
    pub(super) fn post_until_done(&self, path: &str, body: Option<&str>) -> Result<ApiResponse, ClientError> {
        let deadline = Instant::now() + self.timeout;
        let (status, mut stream) = self.open(Method::POST, path, body, deadline).map_err(may_continue)?;
        let deadline = Some(deadline).filter(|_| status != 202);
        Ok(ApiResponse { status, body: stream.read_all(deadline).map_err(may_continue)? })
    }

    /// A stream of bytes that continues as long as the supervisor sends.
    pub(super) fn bytes(&self, path: &str) -> Result<ByteStream, ClientError> {
        let deadline = Instant::now() + self.timeout;
        let (status, mut stream) = self.open(Method::GET, path, None, deadline)?;
        if status != 200 {
            let body = stream.read_all(Some(deadline))?;
            return Err(ClientError::Failed(ApiResponse { status, body }.reason()));
        }
        Ok(stream)
    }

    /// A stream of server-sent events.
    pub(super) fn messages(&self, path: &str) -> Result<Messages, ClientError> {
        Ok(Messages::new(self.bytes(path)?))
    }

    fn send(&self, method: Method, path: &str, body: Option<&str>) -> Result<ApiResponse, ClientError> {
        let deadline = Instant::now() + self.timeout;
        let (status, mut stream) = self.open(method, path, body, deadline)?;
        Ok(ApiResponse { status, body: stream.read_all(Some(deadline))? })
    }

    /// Sends a request and reads the head of the response.
    fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&str>,
        deadline: Instant,
    ) -> Result<(u16, ByteStream), ClientError> {
        let stream = self.connect(deadline)?;
        let body = Full::new(Bytes::copy_from_slice(body.unwrap_or_default().as_bytes()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "control")
            .header(CONNECTION, "close")
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| self.io_error(io::Error::other(error)))?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| self.io_error(error))?;
        let response = runtime.block_on(async {
            let stream = stream.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(stream));
            let stream = stream.map_err(|error| self.io_error(error))?;
            let exchange = async {
                let mut builder = http1::Builder::new();
                builder.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS);
                let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
                // Its errors are reported to the sender.
                tokio::spawn(async { drop(connection.await) });
                sender.send_request(request).await
            };
            match timeout_at(deadline.into(), exchange).await {
                Ok(response) => response.map_err(|error| self.http_error(&error)),
                Err(_) => Err(self.timed_out()),
            }
        })?;
        let status = response.status().as_u16();
        let body = response.into_body();
        Ok((status, ByteStream { client: self.clone(), runtime, body, chunk: Bytes::new() }))
    }

    fn connect(&self, deadline: Instant) -> Result<UnixStream, ClientError> {
        let failed = |errno: Errno| self.connect_error(io::Error::from(errno));
        let address = net::UnixAddr::new(&self.socket).map_err(failed)?;
        let flags = net::SockFlag::SOCK_CLOEXEC;
        let socket =
            net::socket(net::AddressFamily::Unix, net::SockType::Stream, flags, None).map_err(failed)?;
        let stream = UnixStream::from(socket);
        // A blocking connect waits for room in the listen queue, at most as long as the write timeout. A non-blocking
        // connect would fail with EAGAIN.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_write_timeout(Some(left)).map_err(|error| self.io_error(error))?;
        net::connect(stream.as_raw_fd(), &address).map_err(failed)?;
        Ok(stream)
    }

    fn connect_error(&self, error: io::Error) -> ClientError {
        let not_running = |reason: &str| {
            let other =
                "; the configuration cannot be read completely: if it names another socket, use --socket";
            let reason = format!("{reason}{}", if self.certain { "" } else { other });
            ClientError::NotRunning { socket: self.socket.clone(), reason }
        };
        match error.kind() {
            io::ErrorKind::NotFound => not_running("there is no such socket"),
            io::ErrorKind::ConnectionRefused => match self.socket.metadata() {
                Ok(metadata) if !metadata.file_type().is_socket() => not_running("the file is not a socket"),
                _ => not_running("no process listens there"),
            },
            io::ErrorKind::PermissionDenied => ClientError::PermissionDenied(self.socket.clone()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.timed_out(),
            _ => not_running(&describe(&error)),
        }
    }

    fn http_error(&self, error: &hyper::Error) -> ClientError {
        let cause = root_cause(error);
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let is_malformed = matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput));
        if error.is_parse() || is_malformed {
            ClientError::NotHttp { socket: self.socket.clone(), reason: cause.to_string() }
        } else {
            ClientError::Closed { socket: self.socket.clone() }
        }
    }

    fn io_error(&self, source: io::Error) -> ClientError {
        ClientError::Io { socket: self.socket.clone(), source }
    }

    fn timed_out(&self) -> ClientError {
        ClientError::Timeout { socket: self.socket.clone(), timeout: self.timeout }
    }
}

fn may_continue(error: ClientError) -> ClientError {
    match error {
        ClientError::Timeout { .. } => {
            ClientError::Failed(format!("{error}; it may still do what was requested"))
        }
        other => other,
    }
}

/// Explains to a user without access who may use a socket.
fn permission_hint(socket: &Path) -> String {
    let (user, _) = sys::effective_ids();
    let path = socket.display();
    match socket.metadata() {
        Ok(metadata) => format!(
            "user {user} may not use {path}, which belongs to user {} and group {} with mode {:04o}: run this as that \
             user, or admit others with `control: {{ mode, group }}`",
            metadata.uid(),
            metadata.gid(),
            metadata.mode() & 0o7777
        ),
        Err(_) => {
            format!("user {user} may not enter the directory of {path}: run this as the supervisor's user")
        }
    }
}

impl ApiResponse {
    /// Whether the status is 2xx.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.status == 404
    }

    pub(super) fn is_conflict(&self) -> bool {
        self.status == 409
    }

    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The response if it is a success; otherwise the reason it gives.
    pub(super) fn success(self) -> Result<Self, Failure> {
        if self.is_success() { Ok(self) } else { Err(Failure::Failed(self.reason())) }
    }

    /// The JSON of a successful response.
    pub(super) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        if !self.is_success() {
            return Err(Failure::Failed(self.reason()));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::Failed(format!("unexpected response from the supervisor: {error}")))
    }

    /// The reason of an error response: all but the first line, which only repeats the status.
    pub(super) fn reason(&self) -> String {
        let text = self.text();
        let text = text.trim();
        let reason = text.split_once('\n').map_or(text, |(_, reason)| reason).trim();
        if reason.is_empty() {
            format!("the supervisor answered with status {}", self.status)
        } else {
            reason.to_owned()
        }
    }
}

/// The body of a response, as it arrives.
pub(super) struct ByteStream {
    client: Client,
    runtime: Runtime,
    body: Incoming,
    chunk: Bytes,
}

impl ByteStream {
    /// The next bytes; `None` at the end. After [`StreamError::Timeout`] it can be called again. Without a deadline it
    /// waits indefinitely.
    pub(super) fn next(&mut self, deadline: Option<Instant>) -> Result<Option<&[u8]>, StreamError> {
        loop {
            let Self { runtime, body, .. } = self;
            let frame = runtime.block_on(async {
                match deadline {
                    Some(deadline) => timeout_at(deadline.into(), body.frame()).await,
                    None => Ok(body.frame().await),
                }
            });
            match frame {
                Err(_) => return Err(StreamError::Timeout),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.client.http_error(&error).into()),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(chunk) if !chunk.is_empty() => {
                        self.chunk = chunk;
                        return Ok(Some(&self.chunk));
                    }
                    // Trailers are ignored.
                    _ => {}
                },
            }
        }
    }

    fn read_all(&mut self, deadline: Option<Instant>) -> Result<Vec<u8>, ClientError> {
        let mut all = Vec::new();
        loop {
            match self.next(deadline) {
                Ok(Some(chunk)) => all.extend_from_slice(chunk),
                Ok(None) => return Ok(all),
                Err(StreamError::Timeout) => return Err(self.client.timed_out()),
                Err(StreamError::Failed(error)) => return Err(error),
            }
            if all.len() > RESPONSE_BYTES {
                return Err(ClientError::TooLong);
            }
        }
    }
}

/// Why a stream has no next part.
#[derive(Debug, Error)]
pub(super) enum StreamError {
    /// The deadline has passed. The stream may continue.
    #[error("timed out waiting for the supervisor")]
    Timeout,
    /// The stream is broken.
    #[error(transparent)]
    Failed(#[from] ClientError),
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Self::Failed(error.to_string())
    }
}
