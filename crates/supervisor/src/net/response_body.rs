//! Response bodies: complete, or a stream that never makes its producer wait.
//!
//! A stream is a bounded queue. The producer offers chunks and never blocks. When the queue is full, the reader is too
//! slow: the stream ends with a last message about it. Bytes are counted as well as chunks, so that a thousand long
//! lines need no more memory than a thousand short ones.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::limits::{STREAM_BYTES, STREAM_CHUNKS};

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// The whole body. Empty once it was sent.
    Full(Bytes),
    /// Chunks as they are produced.
    Stream(StreamReceiver),
}

impl Body {
    /// A stream and the sender that feeds it.
    pub(crate) fn stream() -> (StreamSender, Self) {
        let (sender, chunks) = mpsc::channel(STREAM_CHUNKS);
        let shared = Arc::new(Shared { queued_bytes: AtomicUsize::new(0), last_message: Mutex::new(None) });
        let receiver = StreamReceiver { chunks, shared: Arc::clone(&shared) };
        (StreamSender { chunks: Some(sender), shared }, Self::Stream(receiver))
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(content: T) -> Self {
        Self::Full(content.into())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match self.get_mut() {
            Self::Full(content) if content.is_empty() => None,
            Self::Full(content) => Some(std::mem::take(content)),
            Self::Stream(receiver) => ready!(receiver.poll_next(context)),
        };
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(content) if content.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(content) => SizeHint::with_exact(content.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

#[derive(Debug)]
struct Shared {
    queued_bytes: AtomicUsize,
    /// Sent after everything that is queued.
    last_message: Mutex<Option<Bytes>>,
}

/// The reading end of a stream.
#[derive(Debug)]
pub(crate) struct StreamReceiver {
    chunks: mpsc::Receiver<Bytes>,
    shared: Arc<Shared>,
}

impl StreamReceiver {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match ready!(self.chunks.poll_recv(context)) {
            Some(chunk) => {
                self.shared.queued_bytes.fetch_sub(chunk.len(), Ordering::AcqRel);
                Poll::Ready(Some(chunk))
            }
            None => {
                Poll::Ready(self.shared.last_message.lock().unwrap_or_else(PoisonError::into_inner).take())
            }
        }
    }
}

/// The writing end of a stream. Dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct StreamSender {
    /// None once the stream has ended.
    chunks: Option<mpsc::Sender<Bytes>>,
    shared: Arc<Shared>,
}

/// What happened to an offered chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Offer {
    /// It waits for the reader.
    Queued,
    /// The reader has gone or was too slow. The stream accepts nothing more.
    Closed,
}

impl StreamSender {
    /// Queues a chunk without waiting. If the queue is full, the stream ends with `too_slow` as its last message.
    pub(crate) fn offer(&mut self, chunk: Bytes, too_slow: &'static str) -> Offer {
        let Some(chunks) = &self.chunks else { return Offer::Closed };
        let length = chunk.len();
        let queued = self.shared.queued_bytes.fetch_add(length, Ordering::AcqRel);
        let sent = if queued > 0 && queued.saturating_add(length) > STREAM_BYTES {
            Err(mpsc::error::TrySendError::Full(chunk))
        } else {
            chunks.try_send(chunk)
        };
        match sent {
            Ok(()) => Offer::Queued,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.close_with(too_slow);
                Offer::Closed
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.chunks = None;
                Offer::Closed
            }
        }
    }

    /// Queues a chunk as soon as the reader has taken all earlier ones, for producers that join what happens meanwhile.
    pub(crate) async fn send(&mut self, chunk: Bytes) -> Offer {
        let Some(chunks) = &self.chunks else { return Offer::Closed };
        // All permits are free when nothing is queued.
        let Ok(all) = chunks.reserve_many(chunks.max_capacity()).await else { return Offer::Closed };
        drop(all);
        self.offer(chunk, "")
    }

    /// Ends the stream with a last message, after everything that is queued.
    pub(crate) fn close_with(&mut self, last_message: &'static str) {
        let mut place = self.shared.last_message.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Bytes::from_static(last_message.as_bytes()));
        drop(place);
        self.chunks = None;
    }

    /// Waits until the reader has gone.
    pub(crate) async fn closed(&self) {
        if let Some(chunks) = &self.chunks {
            chunks.closed().await;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.chunks.as_ref().is_none_or(mpsc::Sender::is_closed)
    }
}

impl crate::logs::TailReader for StreamSender {
    fn offer(&mut self, lines: Bytes, too_slow: &'static str) -> bool {
        Self::offer(self, lines, too_slow) == Offer::Queued
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}

#[cfg(test)]
impl Body {
    /// The whole body, to its end.
    pub(crate) fn read_all(self) -> Vec<u8> {
        use http_body_util::BodyExt;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let Ok(collected) = runtime.block_on(self.collect());
        collected.to_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_a_stream_delivers_every_chunk_and_ends_with_its_sender() {
        let (mut sender, body) = Body::stream();
        assert_eq!(sender.offer("one ".into(), "slow"), Offer::Queued);
        assert_eq!(sender.offer("two".into(), "slow"), Offer::Queued);
        drop(sender);
        assert_eq!(body.read_all(), b"one two");
    }

    #[test]
    fn x2_a_stream_with_too_many_chunks_queued_ends_with_a_message() {
        let (mut sender, body) = Body::stream();
        for _ in 0..STREAM_CHUNKS {
            assert_eq!(sender.offer("x".into(), "(too slow)"), Offer::Queued);
        }
        assert_eq!(sender.offer("y".into(), "(too slow)"), Offer::Closed);
        assert!(sender.is_closed());
        assert_eq!(sender.offer("z".into(), "(too slow)"), Offer::Closed);
        let all = body.read_all();
        assert_eq!(all.len(), STREAM_CHUNKS + "(too slow)".len());
        assert!(all.ends_with(b"x(too slow)"));
    }

    #[test]
    fn x2_a_stream_with_too_many_bytes_queued_ends_but_accepts_one_long_chunk() {
        let (mut sender, body) = Body::stream();
        assert_eq!(
            sender.offer(vec![b'l'; 2 * STREAM_BYTES].into(), "!"),
            Offer::Queued,
            "nothing else waits"
        );
        assert_eq!(sender.offer("x".into(), "!"), Offer::Closed);
        assert_eq!(body.read_all().len(), 2 * STREAM_BYTES + 1);
    }

    #[test]
    fn x2_a_stream_without_a_reader_is_closed() {
        let (mut sender, body) = Body::stream();
        drop(body);
        assert!(sender.is_closed());
        assert_eq!(sender.offer("x".into(), "slow"), Offer::Closed);
    }
}
