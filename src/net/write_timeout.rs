//! A connection with bounded write_timeout.
//!
//! Whoever waits for a request has a time-out of its own. That leaves a peer who asks and then does not read: the answer
//! would wait for ever, in our memory. Here a write that makes no progress for a while is an error, and so
//! is an answer that is not through by the end of its request's time.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep};

/// The stream of a connection that was taken.
pub(super) trait Accepted: AsyncRead + AsyncWrite + AsRawFd + Unpin + Send {
    /// Whether a peer who sends no more does not read any more either.
    fn is_deaf(&self) -> bool;
}

impl Accepted for UnixStream {
    /// `printf … | nc -N -U SOCKET` closes its half and waits for the answer. The system knows the difference.
    fn is_deaf(&self) -> bool {
        let mut asked = [PollFd::new(self.as_fd(), PollFlags::empty())];
        let hung_up = |fd: &PollFd<'_>| fd.revents().is_some_and(|found| found.contains(PollFlags::POLLHUP));
        nix::poll::poll(&mut asked, PollTimeout::ZERO).is_err() || asked.iter().any(hung_up)
    }
}

impl Accepted for TcpStream {
    /// Nobody can tell; a peer who leaves is far more frequent than one who closes a half.
    fn is_deaf(&self) -> bool {
        true
    }
}

/// The end of the request's time, if its answer has one. Shared by the connection and whoever answers on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Until(Arc<Mutex<Option<Instant>>>);

impl Until {
    pub(super) fn set(&self, until: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose writes give up.
pub(super) struct Patient {
    line: Box<dyn Accepted>,
    stall: Duration,
    until: Until,
    /// Runs while a write is stuck.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(super) fn new(line: Box<dyn Accepted>, stall: Duration, until: Until) -> Self {
        Self { line, stall, until, stuck: None }
    }

    /// Passes on how a write came out, unless it has been stuck for too long.
    fn bound<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stuck = None;
            return result;
        }
        let (stall, until) = (self.stall, &self.until);
        let stuck = self.stuck.get_or_insert_with(|| {
            let end = Instant::now() + stall;
            Box::pin(tokio::time::sleep_until(until.get().map_or(end, |until| until.min(end))))
        });
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.line).poll_read(context, buffer);
        let ended = matches!(result, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        // Who has only closed his half still waits for the answer. Every wait for more has a time-out of its own.
        if ended && !this.line.is_deaf() { Poll::Pending } else { result }
    }
}

impl AsyncWrite for Patient {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.line).poll_write(context, bytes);
        this.bound(context, result)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.line).poll_flush(context);
        this.bound(context, result)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.line).poll_shutdown(context);
        this.bound(context, result)
    }
}
