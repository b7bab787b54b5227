//! Bodies of answers: all at once, or as a stream that a slow reader cannot make anybody wait for.
//!
//! A stream is a bounded queue. Whoever has something to say offers it and never waits: when the queue is full the
//! reader is too slow, the stream is over, and its last words say so. How many bytes may wait is counted, not only
//! how many pieces, so that a thousand long lines are no more memory than a thousand short ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// The most pieces that wait for one reader.
const MOST_PIECES: usize = 2048;
/// The most bytes that wait for one reader, beside the one piece that may be longer by itself.
const MOST_BYTES: usize = 1 << 20;

/// What an answer says.
#[derive(Debug)]
pub(crate) enum Body {
    /// All at once.
    Whole(Bytes),
    /// Piece by piece.
    Stream(Stream),
}

impl Body {
    /// A stream, and the end that feeds it.
    pub(crate) fn stream() -> (Feed, Self) {
        let (pieces, waiting) = mpsc::channel(MOST_PIECES);
        let shared = Arc::new(Shared { bytes: AtomicUsize::new(0), last_words: Mutex::new(None) });
        let feed = Feed { pieces: Some(pieces), shared: Arc::clone(&shared) };
        (feed, Self::Stream(Stream { waiting, shared, place: None }))
    }

    /// Whether it goes on until somebody ends it.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Holds a place among the streams for as long as this one lasts.
    pub(super) fn holding(mut self, permit: OwnedSemaphorePermit) -> Self {
        if let Self::Stream(stream) = &mut self {
            stream.place = Some(permit);
        }
        self
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Whole(text.into())
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole(bytes.into())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::Whole(Bytes::from_static(text.as_bytes()))
    }
}

/// What both ends of a stream know.
#[derive(Debug)]
struct Shared {
    /// How many bytes wait.
    bytes: AtomicUsize,
    last_words: Mutex<Option<Bytes>>,
}

/// The reader's end of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    waiting: mpsc::Receiver<Bytes>,
    shared: Arc<Shared>,
    place: Option<OwnedSemaphorePermit>,
}

/// The end of a stream that feeds it. Dropped, the stream is over.
#[derive(Debug)]
pub(crate) struct Feed {
    /// None once the reader has turned out to be too slow.
    pieces: Option<mpsc::Sender<Bytes>>,
    shared: Arc<Shared>,
}

/// How an offer was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Taken {
    /// It waits for the reader.
    Yes,
    /// The reader is gone, or was too slow: nothing will ever be taken again.
    Never,
}

impl crate::logs::Reader for Feed {
    fn offer(&mut self, lines: Bytes, too_slow: &'static str) -> bool {
        Self::offer(self, lines, too_slow) == Taken::Yes
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }
}

impl Feed {
    /// Offers a piece, and waits for nobody. If the reader is too slow to take it, the stream ends with these words.
    pub(crate) fn offer(&mut self, piece: Bytes, too_slow: &'static str) -> Taken {
        let Some(pieces) = &self.pieces else { return Taken::Never };
        let length = piece.len();
        let waiting = self.shared.bytes.fetch_add(length, Ordering::AcqRel);
        let sent = if waiting > 0 && waiting.saturating_add(length) > MOST_BYTES {
            Err(mpsc::error::TrySendError::Full(piece))
        } else {
            pieces.try_send(piece)
        };
        match sent {
            Ok(()) => Taken::Yes,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.finish(too_slow);
                Taken::Never
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.pieces = None;
                Taken::Never
            }
        }
    }

    /// Ends the stream with these words, after what waits already.
    pub(crate) fn finish(&mut self, last_words: &'static str) {
        let mut place = self.shared.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Bytes::from_static(last_words.as_bytes()));
        drop(place);
        self.pieces = None;
    }

    /// Waits until nobody reads any more.
    pub(crate) async fn gone(&self) {
        if let Some(pieces) = &self.pieces {
            pieces.closed().await;
        }
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_over(&self) -> bool {
        self.pieces.as_ref().is_none_or(mpsc::Sender::is_closed)
    }
}

impl Stream {
    /// The next piece; nothing at the end.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.waiting.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(piece)) => {
                self.shared.bytes.fetch_sub(piece.len(), Ordering::AcqRel);
                Poll::Ready(Some(piece))
            }
            Poll::Ready(None) => {
                Poll::Ready(self.shared.last_words.lock().unwrap_or_else(PoisonError::into_inner).take())
            }
        }
    }
}

#[cfg(test)]
impl Body {
    /// All of it, to its end.
    pub(crate) fn read_all(self) -> Vec<u8> {
        let mut stream = match self {
            Self::Whole(bytes) => return bytes.into(),
            Self::Stream(stream) => stream,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut all = Vec::new();
        while let Some(piece) = runtime.block_on(std::future::poll_fn(|context| stream.poll_next(context))) {
            all.extend_from_slice(&piece);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_a_stream_gives_what_was_offered_and_then_ends() {
        let (mut feed, body) = Body::stream();
        assert_eq!(feed.offer("one ".into(), "slow"), Taken::Yes);
        assert_eq!(feed.offer("two".into(), "slow"), Taken::Yes);
        drop(feed);
        assert_eq!(body.read_all(), b"one two");
    }

    #[test]
    fn x2_a_reader_that_is_too_slow_by_pieces_gets_what_waits_and_a_note() {
        let (mut feed, body) = Body::stream();
        for _ in 0..MOST_PIECES {
            assert_eq!(feed.offer("x".into(), "(too slow)"), Taken::Yes);
        }
        assert_eq!(feed.offer("y".into(), "(too slow)"), Taken::Never);
        assert!(feed.is_over());
        assert_eq!(feed.offer("z".into(), "(too slow)"), Taken::Never);
        let all = body.read_all();
        assert_eq!(all.len(), MOST_PIECES + "(too slow)".len());
        assert!(all.ends_with(b"x(too slow)"));
    }

    #[test]
    fn x2_a_reader_that_is_too_slow_by_bytes_is_dropped_too_but_one_long_piece_is_taken() {
        let (mut feed, body) = Body::stream();
        assert_eq!(feed.offer(vec![b'l'; 2 * MOST_BYTES].into(), "!"), Taken::Yes, "nothing else waits");
        assert_eq!(feed.offer("x".into(), "!"), Taken::Never);
        assert_eq!(body.read_all().len(), 2 * MOST_BYTES + 1);
    }

    #[test]
    fn x2_a_reader_that_is_gone_takes_nothing() {
        let (mut feed, body) = Body::stream();
        drop(body);
        assert!(feed.is_over());
        assert_eq!(feed.offer("x".into(), "slow"), Taken::Never);
    }
}
