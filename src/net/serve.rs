//! An HTTP/1.1 server for any listener, bounded in time and memory whatever its peers do.
//!
//! | what a peer may do | what bounds it |
//! | --- | --- |
//! | connect, or keep a connection, and say nothing | [`Limits::head`], which also bounds the idle time between requests |
//! | send a head without end | 16 KiB, 64 fields: 431 |
//! | send garbage | 400, and the connection is closed |
//! | send a large body | [`Limits::body`]: 413; all large bodies under way share [`LARGE_BODIES`] |
//! | send a body slowly, or ask for what takes long | [`Limits::stall`], [`Limits::request`]: 408 or 503 |
//! | not read the answer | [`Limits::stall`], and the request's time for an answer that has an end |
//! | connect without end | [`Limits::connections`]; more wait in the system's queue until a place is free |
//! | open streams without end | [`Limits::streams`]: 503; so there is always a place for a plain question |
//!
//! A request's body is read before whoever answers sees the request: nobody handles half a request.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioTimer;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub(crate) use super::body::{Body, Feed, Taken};
use super::patience::{Accepted, Patient, Until};
use super::wire;
use crate::mishap::{guarded, mishap};

/// The longest head of a request, and the most that is kept of a connection's bytes in either direction.
const HEAD_BYTES: usize = 16 * 1024;
const HEAD_FIELDS: usize = 64;
/// A body up to this length needs no leave: a connection may always hold as much.
const SMALL_BODY: usize = 16 * 1024;
/// All larger bodies under way, together.
const LARGE_BODIES: usize = 16 << 20;
/// A body that is too long is read all the same, up to here: whoever is cut off while sending never sees the answer.
const LONGEST_REFUSED: usize = 16 << 20;
/// How long to wait when the system has no descriptor for another connection.
const BREATH: Duration = Duration::from_millis(100);

/// What peers may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a request's head may take, and how long a connection may idle.
    pub(crate) head: Duration,
    /// How long a whole request may take, from its head to the end of an answer that is no stream.
    pub(crate) request: Duration,
    /// How long a peer may send nothing of a body, or read nothing of an answer.
    pub(crate) stall: Duration,
    /// The longest body of a request.
    pub(crate) body: usize,
    /// How many connections are served at once.
    pub(crate) connections: usize,
    /// How many of them may be streams.
    pub(crate) streams: usize,
    /// Whether a connection stays open for further requests unless the peer says otherwise. If not, the peer has to
    /// ask for it with `Connection: keep-alive`.
    pub(crate) persistent: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            request: Duration::from_secs(30),
            stall: Duration::from_secs(10),
            body: 1 << 20,
            connections: 256,
            streams: 64,
            persistent: true,
        }
    }
}

/// What can be listened on. There is one server for both, not one of each kind: most of one is the HTTP library.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A unix socket.
    Unix(UnixListener),
    /// A port.
    Tcp(TcpListener),
}

/// Who has connected: the user at the other end, if the system says.
pub(crate) type Peer = Option<u32>;

impl Listener {
    /// The next connection.
    async fn accept(&self) -> io::Result<(Box<dyn Accepted>, Peer)> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred().ok().map(|credentials| credentials.uid());
                Ok((Box::new(stream), user))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are written whole; there is nothing to wait for.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), None))
            }
        }
    }
}

/// A request, all of it, and who sent it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The request.
    pub(crate) request: Request<Bytes>,
    /// The peer.
    pub(crate) peer: Peer,
}

/// An answer that is being made.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// Answers requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// The answer to one request. It is dropped when the request's time is over.
    fn answer(&self, asked: Asked) -> Answering<'_>;
}

/// What all connections of a server share.
struct Shared {
    limits: Limits,
    http: http1::Builder,
    answer: Box<dyn Answer>,
    streams: Arc<Semaphore>,
    large_bodies: Semaphore,
}

/// Serves until the sender of `end` is dropped or says so; then no more connections are taken, those that are open
/// are answered to the end, and it returns when the last is closed. Streams have to be ended by those who feed them.
pub(crate) async fn serve(
    listener: Listener,
    limits: Limits,
    answer: Box<dyn Answer>,
    mut end: watch::Receiver<()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_FIELDS);
    let shared = Arc::new(Shared {
        limits,
        http,
        answer,
        streams: Arc::new(Semaphore::new(limits.streams)),
        large_bodies: Semaphore::new(LARGE_BODIES),
    });
    let places = Arc::new(Semaphore::new(limits.connections));
    let connecting = end.clone();
    loop {
        let next = async {
            // The semaphore is never closed; without a place nothing is taken.
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((place, listener.accept().await?))
        };
        match first(end.changed(), next).await {
            First::One(_) => break,
            First::Other(Ok((place, (line, peer)))) => {
                let (shared, end) = (Arc::clone(&shared), connecting.clone());
                super::begin(async move {
                    connection(&shared, line, peer, end).await;
                    drop(place);
                });
            }
            // Out of descriptors or memory, or a peer who has left already. Neither may end the server.
            First::Other(Err(_)) => sleep(BREATH).await,
        }
    }
    drop(listener);
    // Every connection holds a place.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = places.acquire_many(all).await;
}

/// Serves one connection to its end.
async fn connection(shared: &Shared, line: Box<dyn Accepted>, peer: Peer, mut end: watch::Receiver<()>) {
    let until = Until::default();
    let patient = Patient::new(line, shared.limits.stall, until.clone());
    let service = service_fn(|request: Request<Incoming>| {
        let until = until.clone();
        async move { Ok::<_, Infallible>(respond(shared, request, peer, &until).await) }
    });
    let mut connection = pin!(shared.http.serve_connection(wire(patient), service));
    // How it ended is the peer's affair: garbage was answered, and time-outs are not worth a line of the log.
    if let First::One(_) = first(end.changed(), connection.as_mut()).await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Answers one request in its time.
async fn respond(shared: &Shared, request: Request<Incoming>, peer: Peer, until: &Until) -> Response<Body> {
    let deadline = Instant::now() + shared.limits.request;
    until.set(Some(deadline));
    let (head, body) = request.into_parts();
    let stays = shared.limits.persistent || wants_to_stay(&head);
    let answer = async {
        let body = match timeout_at(deadline, read(shared, body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(refusal)) => return (refusal, false),
            Err(_) => return (late(), false),
        };
        let asked = Asked { request: Request::from_parts(head, body), peer };
        let answer = guarded(async {
            mishap("request");
            shared.answer.answer(asked).await
        });
        match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => (answer, stays),
            // The log has heard of it.
            Ok(Err(_)) => (
                error(StatusCode::INTERNAL_SERVER_ERROR, "a fault of containerpilot; the log says more"),
                false,
            ),
            Err(_) => (error(StatusCode::SERVICE_UNAVAILABLE, "there was no answer in time"), stays),
        }
    };
    let (mut answer, stays) = answer.await;
    if answer.body().is_stream() {
        match Arc::clone(&shared.streams).try_acquire_owned() {
            Ok(permit) => {
                until.set(None);
                answer = holding(answer, permit);
            }
            Err(_) => {
                let words = "too many streams are open; close one and try again";
                answer = error(StatusCode::SERVICE_UNAVAILABLE, words);
            }
        }
    }
    if !stays {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

fn holding(answer: Response<Body>, permit: OwnedSemaphorePermit) -> Response<Body> {
    answer.map(|body| body.holding(permit))
}

/// Whether the peer has asked for the connection to stay open.
fn wants_to_stay(head: &hyper::http::request::Parts) -> bool {
    head.headers.get_all(CONNECTION).iter().any(|value| {
        let words = value.to_str().unwrap_or_default();
        words.split(',').any(|word| word.trim().eq_ignore_ascii_case("keep-alive"))
    })
}

/// Reads a body, if it is not too long.
async fn read(shared: &Shared, mut body: Incoming) -> Result<Bytes, Response<Body>> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let limit = shared.limits.body;
    let announced = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > LONGEST_REFUSED) {
        return Err(too_long(limit));
    }
    let refused = announced.is_some_and(|length| length > limit);
    let mut bytes = Vec::new();
    let mut length = 0_usize;
    // For what has come, not for what was announced: who sends nothing takes no room from others.
    let mut leave = Vec::new();
    loop {
        let Ok(frame) = timeout(shared.limits.stall, body.frame()).await else { return Err(late()) };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| error(StatusCode::BAD_REQUEST, "the body is not whole"))?;
        let Some(data) = frame.data_ref() else { continue };
        length = length.saturating_add(data.len());
        if length > LONGEST_REFUSED {
            return Err(too_long(limit));
        }
        if refused || length > limit {
            (bytes, leave) = (Vec::new(), Vec::new());
            continue;
        }
        if length > SMALL_BODY {
            let needed = u32::try_from(data.len()).unwrap_or(u32::MAX);
            leave.push(shared.large_bodies.acquire_many(needed).await);
        }
        bytes.extend_from_slice(data);
    }
    // What was read is the handler's now, who is done with it soon.
    drop(leave);
    if length > limit { Err(too_long(limit)) } else { Ok(bytes.into()) }
}

fn late() -> Response<Body> {
    error(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")
}

fn too_long(limit: usize) -> Response<Body> {
    error(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body may have {limit} bytes at most"))
}

/// An answer that says what is wrong: the status in words, as ContainerPilot 3.8 does, and then the reason.
pub(crate) fn error(status: StatusCode, reason: &str) -> Response<Body> {
    let words = status.canonical_reason().unwrap_or("Error");
    let mut answer = Response::new(Body::from(format!("{words}\n{reason}\n")));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// The answer to a method that a path does not know.
pub(crate) fn wrong_method(allowed: &'static str) -> Response<Body> {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, &format!("this path takes {allowed}"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Which of two futures was ready first.
pub(crate) enum First<A, B> {
    /// The one, also if both were.
    One(A),
    /// The other.
    Other(B),
}

/// Waits for one of two futures; the other is dropped.
pub(crate) async fn first<A: Future, B: Future>(one: A, other: B) -> First<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        if let Poll::Ready(output) = one.as_mut().poll(context) {
            return Poll::Ready(First::One(output));
        }
        other.as_mut().poll(context).map(First::Other)
    })
    .await
}

#[cfg(test)]
mod tests;
