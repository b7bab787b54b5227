//! A server's side of a connection, with time limits on writes.
//!
//! hyper and the request handling bound every read. A peer that sends a request and does not read the response would
//! keep that response in memory forever. Here a write fails if it makes no progress for a while, or beyond the
//! request's deadline.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

/// An accepted connection.
pub(super) trait Socket: AsyncRead + AsyncWrite + AsRawFd + Unpin + Send {
    /// After end of file: whether the peer has closed both directions, so that it cannot read a response.
    fn peer_has_gone(&self) -> bool;
}

impl Socket for UnixStream {
    /// `printf … | nc -N -U SOCKET` closes one direction and waits for the response. `POLLHUP` distinguishes the two
    /// cases.
    fn peer_has_gone(&self) -> bool {
        let mut polled = [PollFd::new(self.as_fd(), PollFlags::empty())];
        let hung_up = |fd: &PollFd<'_>| fd.revents().is_some_and(|found| found.contains(PollFlags::POLLHUP));
        nix::poll::poll(&mut polled, PollTimeout::ZERO).is_err() || polled.iter().any(hung_up)
    }
}

impl Socket for TcpStream {
    /// TCP cannot distinguish the two cases. Clients that disconnect are far more frequent than clients that
    /// half-close.
    fn peer_has_gone(&self) -> bool {
        true
    }
}

/// What a connection is doing, shared by its socket, its requests and its task.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Debug)]
struct State {
    requests: usize,
    /// Whether the rest of a request's body has not arrived yet.
    reading_body: bool,
    write_blocked: bool,
    write_deadline: Option<Instant>,
    /// Whether a request was completed.
    has_served: bool,
    /// When the connection was accepted, or when its last request began or ended.
    since: Instant,
}

/// What is lost if a connection is closed, least first. Each of these waits for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionValue {
    /// The peer has not sent a request yet, or only a part of its head.
    Silent,
    /// The peer has sent nothing since its last request.
    KeptAlive,
    /// The peer does not send the rest of a body, or does not read a response.
    Stalled,
    /// The next request has arrived behind the last one.
    Pipelined,
}

impl ConnectionActivity {
    pub(super) fn new() -> Self {
        let state = State {
            requests: 0,
            reading_body: false,
            write_blocked: false,
            write_deadline: None,
            has_served: false,
            since: Instant::now(),
        };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as in progress until the guard is dropped. Its body has not been read yet.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        let mut state = self.state();
        state.requests += 1;
        (state.reading_body, state.since) = (true, Instant::now());
        drop(state);
        RequestGuard(Arc::clone(self))
    }

    /// The whole request has arrived, or is refused.
    pub(super) fn body_done(&self) {
        self.state().reading_body = false;
    }

    /// The value of a connection that waits for its peer, and since when it does; `None` if a request is being handled
    /// or has arrived.
    pub(super) fn value(
        &self,
        has_unread_bytes: impl FnOnce() -> bool,
    ) -> Option<(ConnectionValue, Instant)> {
        let state = self.state();
        let value = match *state {
            State { write_blocked: true, .. } | State { requests: 1.., reading_body: true, .. } => {
                ConnectionValue::Stalled
            }
            State { requests: 1.., .. } => return None,
            State { has_served, .. } => match (has_served, has_unread_bytes()) {
                (false, false) => ConnectionValue::Silent,
                (false, true) => return None,
                (true, false) => ConnectionValue::KeptAlive,
                (true, true) => ConnectionValue::Pipelined,
            },
        };
        Some((value, state.since))
    }

    /// Closes the connection.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Waits until the connection has to be closed for another one.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Whether a request is in progress or part of a response is not written yet.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.state();
        state.requests > 0 || state.write_blocked
    }

    /// When the current response must be written completely; `None` for a stream.
    pub(super) fn set_write_deadline(&self, deadline: Option<Instant>) {
        self.state().write_deadline = deadline;
    }
}

/// A request in progress: from its head until its response's body has been passed to the socket.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<ConnectionActivity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        (state.has_served, state.since) = (true, Instant::now());
    }
}

/// A socket whose writes time out.
pub(super) struct TimedSocket {
    socket: Box<dyn Socket>,
    stall_timeout: Duration,
    activity: Arc<ConnectionActivity>,
    /// Runs while a write is blocked.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl TimedSocket {
    pub(super) fn new(
        socket: Box<dyn Socket>,
        stall_timeout: Duration,
        activity: Arc<ConnectionActivity>,
    ) -> Self {
        Self { socket, stall_timeout, activity, blocked: None }
    }

    /// Passes the result of a write on, unless it has been blocked for too long.
    fn bounded<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let mut state = self.activity.state();
        state.write_blocked = result.is_pending();
        if result.is_ready() {
            self.blocked = None;
            return result;
        }
        let blocked = self.blocked.get_or_insert_with(|| {
            let stalled = Instant::now() + self.stall_timeout;
            Box::pin(tokio::time::sleep_until(
                state.write_deadline.map_or(stalled, |deadline| deadline.min(stalled)),
            ))
        });
        match blocked.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for TimedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.socket).poll_read(context, buffer);
        let at_end = matches!(result, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        // A peer that closed only its sending direction still waits for the response. Every wait for more bytes has a
        // timeout.
        if at_end && !this.socket.peer_has_gone() { Poll::Pending } else { result }
    }
}

impl AsyncWrite for TimedSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.socket).poll_write(context, bytes);
        this.bounded(context, result)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.socket).poll_flush(context);
        this.bounded(context, result)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.socket).poll_shutdown(context);
        this.bounded(context, result)
    }
}
