//! An HTTP/1.1 server on hyper, bounded in time and memory for any peer. [`limits`](super::limits) has every bound.
//!
//! A request's body is read completely before the handler sees the request: no handler works on half a request.

mod connections;
mod exchange;
mod socket;
#[cfg(test)]
mod tests;

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use containerpilot_process::sys;
pub(crate) use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::errno::Errno;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use self::connections::{Connections, Registered};
use self::socket::{Socket, TimedSocket};
pub(crate) use super::limits::ServerLimits;
use super::limits::{ACCEPT_RETRY, HEAD_BYTES, HEAD_FIELDS, LARGE_BODIES_BYTES, LAST_READ, SLOT_RETRY};
pub(crate) use super::response_body::{Body, Offer, StreamSender};

/// A complete request.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    /// The user id of the process at the other end of a unix socket.
    pub(crate) peer_uid: Option<u32>,
}

pub(crate) type ServerResponse = hyper::Response<Body>;

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Handles requests.
pub(crate) trait Handler: Send + Sync + 'static {
    /// The response to one request. The future is dropped when the request times out or its client disconnects.
    fn handle(&self, request: ServerRequest) -> impl Future<Output = ServerResponse> + Send;
}

/// A `200 OK` response.
pub(crate) fn ok(content_type: &'static str, body: impl Into<Body>) -> ServerResponse {
    with_status(StatusCode::OK, content_type, body)
}

pub(crate) fn with_status(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> ServerResponse {
    let mut response = ServerResponse::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An error response: the status in words, as in ContainerPilot 3.8, and then the reason.
pub(crate) fn error(status: StatusCode, reason: &str) -> ServerResponse {
    let text = format!("{}\n{reason}\n", status.canonical_reason().unwrap_or_default());
    with_status(status, TEXT, text)
}

/// The response to a method that a path does not support.
pub(crate) fn method_not_allowed(allowed: &'static str) -> ServerResponse {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, &format!("this path accepts only {allowed}"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Unix(listener) => listener.as_raw_fd(),
            Self::Tcp(listener) => listener.as_raw_fd(),
        }
    }
}

impl Listener {
    /// The next connection, and the user id of its peer if the system knows it.
    async fn accept(&self) -> io::Result<(Box<dyn Socket>, Option<u32>)> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred().ok().map(|credentials| credentials.uid());
                Ok((Box::new(stream), uid))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Responses are written at once, so there is nothing to coalesce. Without this option they are only
                // slower.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), None))
            }
        }
    }
}

/// Shared by all connections of a server.
struct Shared<H> {
    limits: ServerLimits,
    handler: H,
    /// One permit for each connection.
    slots: Arc<Semaphore>,
    connections: Arc<Connections>,
    stream_slots: Arc<Semaphore>,
    /// One permit for each large request body that is being read.
    large_bodies: Semaphore,
    shutdown: watch::Receiver<()>,
}

impl<H> Shared<H> {
    fn is_shutting_down(&self) -> bool {
        self.shutdown.has_changed().unwrap_or(true)
    }

    async fn shutdown_requested(&self) {
        // An error means that the sender was dropped, which is the same request.
        let _ = self.shutdown.clone().changed().await;
    }

    /// A slot for a new connection. If none is free, a connection that waits for its peer is closed. If there is no
    /// such connection either, the new one waits. `None` never happens: the semaphore is not closed.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                return Some(slot);
            }
            self.connections.evict_one();
            if let Ok(slot) = timeout(SLOT_RETRY, Arc::clone(&self.slots).acquire_owned()).await {
                return slot.ok();
            }
        }
    }
}

/// Serves until the sender of `shutdown` sends something or is dropped. Then it accepts the connections that wait in
/// the listen queue, closes the listener, handles every request that has arrived, and returns when the last connection
/// is closed. Open streams must be ended by their senders.
pub(crate) async fn serve<H: Handler>(
    listener: Listener,
    limits: ServerLimits,
    handler: H,
    shutdown: watch::Receiver<()>,
) {
    let shared = Arc::new(Shared {
        limits,
        handler,
        slots: Arc::new(Semaphore::new(limits.connections)),
        connections: Arc::default(),
        stream_slots: Arc::new(Semaphore::new(limits.streams)),
        large_bodies: Semaphore::new((LARGE_BODIES_BYTES / limits.body_bytes.max(1)).max(1)),
        shutdown,
    });
    let mut queue_budget = limits.connections;
    loop {
        let accepted = if shared.is_shutting_down() {
            // The listener closes soon, because another server may need its address.
            if queue_budget == 0 || !sys::can_read_now(listener.as_raw_fd()) {
                break;
            }
            queue_budget -= 1;
            let Ok(slot) = Arc::clone(&shared.slots).try_acquire_owned() else { break };
            let Ok(Ok(connection)) = timeout(LAST_READ, listener.accept()).await else { break };
            Ok((Some(slot), connection))
        } else {
            let next = async {
                let connection = listener.accept().await?;
                Ok::<_, io::Error>((shared.slot().await, connection))
            };
            tokio::select! {
                biased;
                () = shared.shutdown_requested() => continue,
                accepted = next => accepted,
            }
        };
        match accepted {
            Ok((slot, (socket, peer_uid))) => {
                let shared = Arc::clone(&shared);
                // Not in the task, which may not run before the next connection is accepted.
                let registered = shared.connections.add(socket.as_raw_fd());
                tokio::spawn(async move {
                    serve_connection(&shared, socket, peer_uid, registered).await;
                    drop(slot);
                });
            }
            // Out of descriptors or memory, or the peer has already closed the connection. The server continues.
            Err(error) => {
                let errno = error.raw_os_error().map(Errno::from_raw);
                if matches!(errno, Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM)) {
                    shared.connections.evict_one();
                }
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listener);
    // Every connection holds a slot.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = shared.slots.acquire_many(all).await;
}

/// Whether a response can have a `Date`: its year has four digits.
fn has_date(now: SystemTime) -> bool {
    const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);
    now.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since < YEAR_10000)
}

/// Serves one connection until it closes. Errors are not logged: the peer sees them, and timeouts are normal.
async fn serve_connection<H: Handler>(
    shared: &Arc<Shared<H>>,
    socket: Box<dyn Socket>,
    peer_uid: Option<u32>,
    registered: Registered,
) {
    let fd = socket.as_raw_fd();
    let activity = Arc::clone(registered.activity());
    let io = TokioIo::new(TimedSocket::new(socket, shared.limits.stall_timeout, Arc::clone(&activity)));
    let service =
        service_fn(|request| exchange::respond(Arc::clone(shared), Arc::clone(&activity), request, peer_uid));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(shared.limits.head_timeout);
    builder.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS);
    builder.auto_date_header(has_date(SystemTime::now()));
    let mut connection = pin!(builder.serve_connection(io, service));
    // Dropped before the connection.
    let _registered = registered;
    tokio::select! {
        biased;
        // First, because the connection could begin a request.
        () = activity.evicted() => return,
        _ = connection.as_mut() => return,
        () = shared.shutdown_requested() => {}
    }
    // A request that has reached the kernel is still handled. The runtime may not have seen it yet.
    if !activity.is_busy() && sys::can_read_now(fd) {
        let request = drive(connection.as_mut(), || activity.is_busy());
        if timeout(LAST_READ, request).await == Ok(Driven::Closed) {
            return;
        }
    }
    drive(connection, || !activity.is_busy()).await;
}

#[derive(Debug, PartialEq, Eq)]
enum Driven {
    /// The condition holds; the connection is still open.
    Met,
    Closed,
}

/// Runs a connection until it closes or the condition holds.
async fn drive(mut connection: Pin<&mut impl Future>, condition: impl Fn() -> bool) -> Driven {
    poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(Driven::Closed),
        Poll::Pending if condition() => Poll::Ready(Driven::Met),
        Poll::Pending => Poll::Pending,
    })
    .await
}
