//! An HTTP/1.1 server for any listener, bounded in time and memory whatever its peers do.
//!
//! | what a peer may do | what bounds it |
//! | --- | --- |
//! | connect, or keep a connection, and say nothing | [`Limits::head`], which also bounds the idle time between requests |
//! | send a head without end | 16 KiB, 64 fields: 431 |
//! | send garbage | 400, and the connection is closed |
//! | send the next request early | 16 KiB of it are kept, and the rest stays with the system |
//! | send a large body | [`Limits::body`]: 413; as many large ones are read at once as [`LARGE_BODIES`] has room for |
//! | send a body slowly, or ask for what takes long | [`Limits::stall`], [`Limits::request`]: 408 or 503 |
//! | not read the answer | [`Limits::stall`], and the request's time for an answer that has an end |
//! | connect without end | [`Limits::connections`]; more wait in the system's queue until a place is free |
//! | open streams without end | [`Limits::streams`]: 503; so there is always a place for a plain question |
//!
//! A request's body is read before whoever answers sees the request: nobody handles half a request.

use std::fmt::Write;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub(crate) use super::body::{Body, Feed, Taken};
use super::http::{Fault, Rest, date};
pub(crate) use super::http::{Request, Status};
use super::rest::Used;
use super::wire::Wire;
use super::write_timeout::{Accepted, Patient, Until};
use crate::process::sys;
use crate::runtime::failpoints::{failpoint, guarded};

/// A body up to this length needs no leave: a connection may always hold as much.
const SMALL_BODY: usize = 16 * 1024;
/// All larger bodies under way, together.
const LARGE_BODIES: usize = 16 << 20;
/// A body that is too long is read all the same, up to here: whoever is cut off while sending never sees the answer.
const LONGEST_REFUSED: usize = 16 << 20;
/// How much of an answer is sent together.
const PIECE: usize = 32 * 1024;
/// How long a server that ends looks at what has come. It is there already, so this is not about speed: nobody who has sent half a
/// question, or nothing but blank lines, is waited for.
const LAST_LOOK: Duration = Duration::from_millis(5);
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

/// What can be listened on. There is one server for both, so that it is compiled once.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A unix socket.
    Unix(UnixListener),
    /// A port.
    Tcp(TcpListener),
}

/// Who has connected: the user at the other end, if the system says.
pub(crate) type Peer = Option<u32>;

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Unix(listener) => listener.as_raw_fd(),
            Self::Tcp(listener) => listener.as_raw_fd(),
        }
    }
}

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
    pub(crate) request: Request,
    /// Its body.
    pub(crate) body: Bytes,
    /// The peer.
    pub(crate) peer: Peer,
}

/// What is answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: Status,
    /// Names and values of its fields, beside those that are the server's affair.
    pub(crate) fields: Vec<(&'static str, &'static str)>,
    pub(crate) body: Body,
}

impl Response {
    /// An answer of some kind: its media type.
    pub(crate) fn new(kind: &'static str, body: impl Into<Body>) -> Self {
        Self { status: Status::OK, fields: vec![("content-type", kind)], body: body.into() }
    }
}

/// An answer that is being made.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// Answers requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// The answer to one request. It is dropped when the request's time is over.
    fn answer(&self, asked: Asked) -> Answering<'_>;
}

/// What all connections of a server share.
struct Shared {
    limits: Limits,
    answer: Box<dyn Answer>,
    streams: Arc<Semaphore>,
    /// A place for each large body under way.
    large_bodies: Semaphore,
    used: Used,
    /// Changed, or without a sender, when the server is to end.
    end: watch::Receiver<()>,
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.end.has_changed().unwrap_or(true)
    }

    /// Waits until the server is to end.
    async fn ending(&self) {
        // What each of them has seen is its own affair.
        let _ = self.end.clone().changed().await;
    }
}

/// Serves until the sender of `end` is dropped or says so. Then whatever has come already is still taken and answered to the
/// end, as long as there are places, and it returns when the last connection is closed. Streams have to be ended by those
/// who feed them.
pub(crate) async fn serve(
    listener: Listener,
    limits: Limits,
    answer: Box<dyn Answer>,
    used: Used,
    end: watch::Receiver<()>,
) {
    let shared = Arc::new(Shared {
        limits,
        answer,
        streams: Arc::new(Semaphore::new(limits.streams)),
        large_bodies: Semaphore::new((LARGE_BODIES / limits.body.max(1)).max(1)),
        used,
        end,
    });
    let places = Arc::new(Semaphore::new(limits.connections));
    // How many may have been waiting at the door when it was closed.
    let mut last = limits.connections;
    loop {
        let next = if shared.is_ending() {
            // The listener is soon closed, since another may want its place.
            if last == 0 || !sys::can_read_now(listener.as_raw_fd()) {
                break;
            }
            last -= 1;
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
            let Ok(Ok(accepted)) = timeout(LAST_LOOK, listener.accept()).await else { break };
            Ok((place, accepted))
        } else {
            let next = async {
                // The semaphore is never closed; without a place nothing is taken.
                let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((place, listener.accept().await?))
            };
            match first(shared.ending(), next).await {
                First::One(()) => continue,
                First::Other(next) => next,
            }
        };
        match next {
            Ok((place, (line, peer))) => {
                let shared = Arc::clone(&shared);
                super::begin(async move {
                    connection(&shared, line, peer).await;
                    drop(place);
                });
            }
            // Out of descriptors or memory, or a peer who has left already. Neither may end the server.
            Err(_) => sleep(BREATH).await,
        }
    }
    drop(listener);
    // Every connection holds a place.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = places.acquire_many(all).await;
}

/// Serves one connection to its end. How it ends is the peer's affair: garbage is answered, and time-outs are not worth a line
/// of the log.
async fn connection(shared: &Shared, line: Box<dyn Accepted>, peer: Peer) {
    let until = Until::default();
    let fd = line.as_raw_fd();
    let mut wire = Wire::new(Patient::new(line, shared.limits.stall, until.clone()));
    loop {
        until.set(None);
        let mut head = first(shared.ending(), timeout(shared.limits.head, wire.head())).await;
        // What has come before the end is answered; what has not is not. The runtime hears of it later than the system.
        if matches!(head, First::One(())) && (wire.has_more() || sys::can_read_now(fd)) {
            head = First::Other(timeout(LAST_LOOK, wire.head()).await);
        }
        let First::Other(Ok(head)) = head else { break };
        let request = match head {
            Ok(Some(head)) => Request::of(head).and_then(|request| Ok((request.framing()?, request))),
            Ok(None) => break,
            Err(fault) => Err(fault),
        };
        let (request, rest) = match request {
            Ok((rest, request)) => (request, rest),
            Err(Fault::Broken(_)) => break,
            Err(fault) => {
                until.set(Some(Instant::now() + shared.limits.request));
                let refusal = match fault {
                    Fault::Long => error(Status::HEAD_TOO_LARGE, "the head of the request is too long"),
                    _ => error(Status::BAD_REQUEST, &fault.to_string()),
                };
                let _ =
                    answer_with(&mut wire, refusal, Manner { stays: false, modern: true, bare: false }).await;
                break;
            }
        };
        let stays = exchange(shared, &mut wire, request, rest, peer, &until).await;
        shared.used.note();
        if !matches!(stays, Ok(true)) {
            break;
        }
    }
    wire.close().await;
    shared.used.note();
}

/// Answers one request in its time; whether the connection stays.
async fn exchange(
    shared: &Shared,
    wire: &mut Wire,
    request: Request,
    rest: Rest,
    peer: Peer,
    until: &Until,
) -> io::Result<bool> {
    let deadline = Instant::now() + shared.limits.request;
    until.set(Some(deadline));
    let modern = request.modern;
    let bare = request.method == "HEAD";
    let stays = request.stays(!shared.limits.persistent);
    let body = match timeout_at(deadline, read(shared, wire, &request, rest)).await {
        Ok(read) => read?,
        Err(_) => Err(late()),
    };
    let (mut answer, stays) = match body {
        Err(refusal) => (refusal, false),
        Ok(body) => {
            let asked = Asked { request, body, peer };
            let answer = guarded(async {
                failpoint("request");
                shared.answer.answer(asked).await
            });
            // Whoever has left needs no answer.
            match first(timeout_at(deadline, answer), wire.gone()).await {
                First::Other(()) => return Ok(false),
                First::One(Ok(Ok(answer))) => (answer, stays),
                // The log has heard of it.
                First::One(Ok(Err(_))) => {
                    let words = "a fault of containerpilot; the log says more";
                    (error(Status::INTERNAL_SERVER_ERROR, words), false)
                }
                First::One(Err(_)) => {
                    (error(Status::SERVICE_UNAVAILABLE, "there was no answer in time"), stays)
                }
            }
        }
    };
    if answer.body.is_stream() {
        match Arc::clone(&shared.streams).try_acquire_owned() {
            Ok(permit) => {
                until.set(None);
                answer.body = answer.body.holding(permit);
            }
            Err(_) => {
                let words = "too many streams are open; close one and try again";
                answer = error(Status::SERVICE_UNAVAILABLE, words);
            }
        }
    }
    let stays = stays && !shared.is_ending();
    answer_with(wire, answer, Manner { stays, modern, bare }).await
}

/// How an answer is to be sent.
#[derive(Clone, Copy)]
struct Manner {
    /// The connection stays afterwards.
    stays: bool,
    /// The peer knows HTTP/1.1.
    modern: bool,
    /// Without its body.
    bare: bool,
}

/// Sends an answer; whether the connection stays.
async fn answer_with(wire: &mut Wire, answer: Response, manner: Manner) -> io::Result<bool> {
    let Response { status, fields, body } = answer;
    let chunked = body.is_stream() && manner.modern;
    // Who does not know chunks knows the end of a body by the end of the connection.
    let stays = manner.stays && (chunked || !body.is_stream());
    let mut head = format!("HTTP/1.1 {} {}\r\n", status.number(), status.words());
    // Writing to a string cannot fail.
    for (name, value) in fields {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if !stays {
        head.push_str("connection: close\r\n");
    } else if !manner.modern {
        head.push_str("connection: keep-alive\r\n");
    }
    if let Body::Whole(bytes) = &body {
        let _ = write!(head, "content-length: {}\r\n", bytes.len());
    } else if chunked {
        head.push_str("transfer-encoding: chunked\r\n");
    }
    let _ = write!(head, "date: {}\r\n\r\n", date(SystemTime::now()));
    let mut out = head.into_bytes();
    let mut body = match body {
        _ if manner.bare => return wire.send(&out).await.map(|()| stays),
        Body::Whole(bytes) if bytes.len() <= PIECE => {
            out.extend_from_slice(&bytes);
            return wire.send(&out).await.map(|()| stays);
        }
        Body::Whole(bytes) => {
            wire.send(&out).await?;
            return wire.send(&bytes).await.map(|()| stays);
        }
        Body::Stream(stream) => stream,
    };
    wire.send(&out).await?;
    loop {
        out.clear();
        // What is there goes together, as much of it as makes a piece.
        let gather = poll_fn(|context| {
            while out.len() < PIECE {
                match body.poll_next(context) {
                    Poll::Ready(Some(piece)) if chunked => chunk(&mut out, &piece),
                    Poll::Ready(Some(piece)) => out.extend_from_slice(&piece),
                    Poll::Ready(None) => return Poll::Ready(true),
                    Poll::Pending if out.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(false)
        });
        let First::One(over) = first(gather, wire.gone()).await else { return Ok(false) };
        if over && chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        wire.send(&out).await?;
        if over {
            return Ok(stays);
        }
    }
}

/// A piece as a chunk. An empty one would be the end.
fn chunk(out: &mut Vec<u8>, piece: &[u8]) {
    if !piece.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads a body, if it is not too long; the answer if it is. An error means that there is nobody to answer.
async fn read(
    shared: &Shared,
    wire: &mut Wire,
    request: &Request,
    mut rest: Rest,
) -> io::Result<Result<Bytes, Response>> {
    if rest == Rest::Length(0) {
        return Ok(Ok(Bytes::new()));
    }
    let limit = shared.limits.body;
    let announced = match rest {
        Rest::Length(length) => Some(usize::try_from(length).unwrap_or(usize::MAX)),
        _ => None,
    };
    if announced.is_some_and(|length| length > LONGEST_REFUSED) {
        return Ok(Err(too_long(limit)));
    }
    let refused = announced.is_some_and(|length| length > limit);
    if request.modern && request.fields.says("expect", "100-continue") && !wire.has_more() {
        if refused {
            return Ok(Err(too_long(limit)));
        }
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let mut bytes = Vec::new();
    let mut length = 0_usize;
    // Once it is large, not when it is announced: who sends nothing takes no room from others.
    let mut place = None;
    loop {
        let Ok(piece) = timeout(shared.limits.stall, wire.piece(&mut rest)).await else {
            return Ok(Err(late()));
        };
        let piece = match piece {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(Fault::Broken(error)) => return Err(error),
            Err(fault) => return Ok(Err(error(Status::BAD_REQUEST, &fault.to_string()))),
        };
        length = length.saturating_add(piece.len());
        if length > LONGEST_REFUSED {
            return Ok(Err(too_long(limit)));
        }
        if refused || length > limit {
            (bytes, place) = (Vec::new(), None);
            continue;
        }
        if length > SMALL_BODY && place.is_none() {
            // For all that may follow, so that nobody waits for others who wait in turn.
            match timeout(shared.limits.stall, shared.large_bodies.acquire()).await {
                Ok(taken) => place = taken.ok(),
                Err(_) => {
                    let words = "too many large bodies are under way; try again";
                    return Ok(Err(error(Status::SERVICE_UNAVAILABLE, words)));
                }
            }
        }
        bytes.extend_from_slice(&piece);
    }
    // What was read is the handler's now, who is done with it soon.
    drop(place);
    Ok(if length > limit { Err(too_long(limit)) } else { Ok(bytes.into()) })
}

fn late() -> Response {
    error(Status::REQUEST_TIMEOUT, "the body did not come in time")
}

fn too_long(limit: usize) -> Response {
    error(Status::PAYLOAD_TOO_LARGE, &format!("the body may have {limit} bytes at most"))
}

/// An answer that says what is wrong: the status in words, as ContainerPilot 3.8 does, and then the reason.
pub(crate) fn error(status: Status, reason: &str) -> Response {
    let text = format!("{}\n{reason}\n", status.words());
    Response { status, ..Response::new("text/plain; charset=utf-8", text) }
}

/// The answer to a method that a path does not know.
pub(crate) fn wrong_method(allowed: &'static str) -> Response {
    let mut answer = error(Status::METHOD_NOT_ALLOWED, &format!("this path takes {allowed}"));
    answer.fields.push(("allow", allowed));
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
