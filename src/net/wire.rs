//! A connection on which HTTP is spoken, on either side and of whatever kind, with what was read of it and not yet used.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::http::{Fault, Head, Rest};

/// What is read at once: little, because there may be many connections, and most of the time they wait.
const AT_ONCE: usize = 8 * 1024;
/// When so much is kept of what a peer says before it is his turn, no more is read.
const MOST_AHEAD: usize = 16 * 1024;

/// What all kinds of connections have in common.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// A connection.
pub(crate) struct Wire {
    stream: Pin<Box<dyn Stream>>,
    /// What was read; what is not yet used begins at `at`.
    buffer: Vec<u8>,
    at: usize,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    pub(crate) fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::pin(stream), buffer: Vec::new(), at: 0 }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// The next head; nothing if the other side has left instead.
    pub(crate) async fn head(&mut self) -> Result<Option<Head>, Fault> {
        loop {
            if let Some((head, length)) = Head::read(self.unread())? {
                self.at += length;
                return Ok(Some(head));
            }
            // A head that comes letter by letter is not read anew for each of them.
            loop {
                let known = self.unread().len();
                if !self.more().await? {
                    return if self.unread().is_empty() {
                        Ok(None)
                    } else {
                        Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
                    };
                }
                let news = self.unread().get(known..).unwrap_or_default();
                if news.contains(&b'\n') || self.unread().len() >= MOST_AHEAD {
                    break;
                }
            }
        }
    }

    /// Whether something has come already and is not yet used.
    pub(crate) fn has_more(&self) -> bool {
        !self.unread().is_empty()
    }

    /// The next piece of a body; nothing at its end.
    pub(crate) async fn piece(&mut self, rest: &mut Rest) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            let found = rest.find(self.unread())?;
            self.at += found.skip;
            if found.over {
                return Ok(None);
            }
            if found.data > 0 {
                let piece = self.unread().get(..found.data).unwrap_or_default().to_vec();
                self.at += found.data;
                return Ok(Some(piece));
            }
            if !self.more().await? {
                return match rest {
                    Rest::Close => Ok(None),
                    _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                };
            }
        }
    }

    /// Waits until the other side has left. What it says meanwhile is kept for later, unless that is too much.
    pub(crate) async fn gone(&mut self) {
        while self.unread().len() < MOST_AHEAD {
            if !matches!(self.more().await, Ok(true)) {
                return;
            }
        }
        std::future::pending().await
    }

    /// Whether nobody has said anything since the last answer, nor left. If not, no new question can be put.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.unread().is_empty() && self.poll_more(&mut context).is_pending()
    }

    /// Sends everything.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Says that nothing more will come.
    pub(crate) async fn close(mut self) {
        // Whoever is gone already need not be told.
        let _ = self.stream.shutdown().await;
    }

    /// Reads more; false at the end of everything.
    async fn more(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        if self.buffer.is_empty() {
            // Those who wait for long keep nothing.
            self.buffer = Vec::new();
        }
        poll_fn(|context| self.poll_more(context)).await
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        // Beside the task, not in it: a task that waits takes no room for it.
        let mut place = [0; AT_ONCE];
        let mut read = ReadBuf::new(&mut place);
        ready!(self.stream.as_mut().poll_read(context, &mut read))?;
        self.buffer.extend_from_slice(read.filled());
        Poll::Ready(Ok(!read.filled().is_empty()))
    }
}
