//! A server's side of a connection, with time limits on writes.
//!
//! hyper and the request handling bound every read. A peer that sends a request and does not read the response would
//! keep that response in memory forever. Here a write fails if it makes no progress for a while, or beyond the
//! request's deadline.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep};

use super::connections::ConnectionActivity;

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
        let write_deadline = self.activity.set_write_blocked(result.is_pending());
        if result.is_ready() {
            self.blocked = None;
            return result;
        }
        let blocked = self.blocked.get_or_insert_with(|| {
            let stalled = Instant::now() + self.stall_timeout;
            Box::pin(tokio::time::sleep_until(
                write_deadline.map_or(stalled, |deadline| deadline.min(stalled)),
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
