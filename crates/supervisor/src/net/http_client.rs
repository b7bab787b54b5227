//! HTTP requests to one server: of discovery to Consul, of telemetry to a collector, of checks and watches (H10).
//!
//! A request has a deadline, and everything that a server sends has a bound. What is said about an error is the same for
//! all of them.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use containerpilot_core::time::fmt_duration;
use containerpilot_process::error_text::{describe, root_cause};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::connect::{ConnectError, Connector};
use super::limits::{HEAD_BYTES, HEAD_FIELDS};

/// Longer responses are read [`LARGE_RESPONSES`] at a time.
const SMALL_RESPONSE_BYTES: usize = 64 * 1024;
const LARGE_RESPONSES: usize = 4;

/// A response with any status.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// As much of the body as was wanted.
    pub(crate) body: Bytes,
}

/// How much of a body is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// All of it. A longer one is an error.
    Whole { most: usize },
    /// Its first bytes. The rest is not read.
    Start(usize),
}

/// Why a request has no response.
#[derive(Debug, Error)]
pub(crate) enum RequestError {
    /// The request was not sent.
    #[error(transparent)]
    NotSent(#[from] NotSent),
    /// The request was sent, and the server may have carried it out.
    #[error(transparent)]
    NoResponse(#[from] NoResponse),
}

#[derive(Debug, Error)]
pub(crate) enum NotSent {
    #[error("`{0}` is not a valid request path")]
    InvalidPath(String),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

#[derive(Debug, Error)]
pub(crate) enum NoResponse {
    #[error("no response within {}", fmt_duration(*.0))]
    Timeout(Duration),
    #[error("the response is not HTTP")]
    NotHttp,
    #[error("the headers of the response are too long")]
    LongHead(#[source] hyper::Error),
    #[error("the connection was closed before the response was complete")]
    Closed(#[source] hyper::Error),
    #[error("{}", cause(.0))]
    Connection(#[source] hyper::Error),
    #[error("the response is longer than {0} bytes")]
    LongBody(usize),
}

impl From<hyper::Error> for NoResponse {
    fn from(error: hyper::Error) -> Self {
        let io = root_cause(&error).downcast_ref::<io::Error>();
        // TLS reports a connection that was cut off this way.
        let is_end = io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        if error.is_parse_too_large() {
            Self::LongHead(error)
        } else if error.is_parse() {
            Self::NotHttp
        } else if is_end || error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            Self::Closed(error)
        } else {
            Self::Connection(error)
        }
    }
}

fn cause(error: &hyper::Error) -> String {
    let cause = root_cause(error);
    cause.downcast_ref::<io::Error>().map_or_else(|| cause.to_string(), describe)
}

/// Sends requests to one server.
pub(crate) struct HttpClient {
    connector: Connector,
    keeps_connections: bool,
    /// Open connections without a request.
    idle: Mutex<Vec<Connection>>,
    /// One permit for each large response that is being read.
    large_responses: Semaphore,
}

/// A connection. Dropping it closes it, whatever the server does.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connector.fmt(out)
    }
}

impl HttpClient {
    /// A client that keeps connections open for the next request.
    pub(crate) fn keeping_connections(connector: Connector) -> Self {
        Self { keeps_connections: true, ..Self::new(connector) }
    }

    /// A client with a new connection for each request.
    pub(crate) fn new(connector: Connector) -> Self {
        Self {
            connector,
            keeps_connections: false,
            idle: Mutex::default(),
            large_responses: Semaphore::new(LARGE_RESPONSES),
        }
    }

    /// Sends a request and reads as much of the response as is wanted for its status. If a kept connection fails, a new
    /// one is opened.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        wanted: &(dyn Fn(StatusCode) -> Wanted + Sync),
        within: Duration,
    ) -> Result<Response, RequestError> {
        let deadline = Instant::now() + within;
        let mut kept = self.idle_connection();
        loop {
            let was_kept = kept.is_some();
            let connection = match kept.take() {
                Some(connection) => connection,
                // Boxed, because a blocking query would otherwise keep the memory for connecting while it waits.
                None => Box::pin(self.connect(deadline)).await?,
            };
            match timeout_at(deadline, self.exchange(connection, request.clone(), wanted)).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(_)) if was_kept => {}
                Ok(Err(error)) => {
                    // With TLS 1.3, a server reports a missing client certificate only after the handshake.
                    self.connector.reload_tls();
                    return Err(error.into());
                }
                Err(_) => return Err(NoResponse::Timeout(within).into()),
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<Connection, RequestError> {
        let stream = self.connector.connect(deadline).await.map_err(NotSent::from)?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS).title_case_headers(true);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(NoResponse::from)?;
        // Its errors are reported to the sender.
        let task = tokio::spawn(async { drop(connection.await) }).abort_handle();
        Ok(Connection { sender, task })
    }

    /// Sends a request on a connection and keeps the connection if it can be used again.
    async fn exchange(
        &self,
        mut connection: Connection,
        request: Request<Full<Bytes>>,
        wanted: &(dyn Fn(StatusCode) -> Wanted + Sync),
    ) -> Result<Response, NoResponse> {
        connection.sender.ready().await?;
        let (head, incoming) = connection.sender.send_request(request).await?.into_parts();
        let (body, is_complete) = self.read_body(incoming, wanted(head.status)).await?;
        if self.keeps_connections && is_complete && !connection.sender.is_closed() {
            self.idle().push(connection);
        }
        Ok(Response { status: head.status, headers: head.headers, body })
    }

    /// Reads what is wanted of a body. Returns true if that was all of it.
    async fn read_body(&self, mut incoming: Incoming, wanted: Wanted) -> Result<(Bytes, bool), NoResponse> {
        let mut body = BytesMut::new();
        let mut permit = None;
        loop {
            if let Wanted::Start(most) = wanted
                && body.len() >= most
            {
                body.truncate(most);
                return Ok((body.freeze(), incoming.is_end_stream()));
            }
            let Some(frame) = incoming.frame().await else { return Ok((body.freeze(), true)) };
            let Ok(chunk) = frame?.into_data() else { continue };
            let length = body.len().saturating_add(chunk.len());
            if let Wanted::Whole { most } = wanted
                && length > most
            {
                return Err(NoResponse::LongBody(most));
            }
            if length > SMALL_RESPONSE_BYTES && permit.is_none() {
                // One permit is enough for the whole response, so that two half-read ones never wait for each other.
                permit = self.large_responses.acquire().await.ok();
            }
            body.extend_from_slice(&chunk);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_connection(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(|connection| !connection.sender.is_closed());
        idle.pop()
    }
}
