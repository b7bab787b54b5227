//! Fuzz target: any bytes as a response of the supervisor to the command line. The result is a response or an error, and
//! never more than was sent.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::http::Body;
use super::messages::Reader;

/// Fits into a socket buffer without a reader.
const MAX_BYTES: usize = 64 * 1024;

pub(crate) fn run(bytes: &[u8]) {
    let bytes = bytes.get(..MAX_BYTES).unwrap_or(bytes);
    read(bytes);
    let whole = messages(&[bytes]);
    let middle = bytes.len() / 2;
    let (front, back) = bytes.split_at(middle);
    assert_eq!(messages(&[front, back]), whole, "the messages do not depend on how the bytes are split");
}

fn read(bytes: &[u8]) {
    let Ok((mut server, client)) = UnixStream::pair() else { return };
    if server.write_all(bytes).and_then(|()| server.shutdown(Shutdown::Write)).is_err() {
        return;
    }
    let until = Instant::now() + Duration::from_secs(60);
    let Ok((_, mut body)) = Body::open(client, until) else { return };
    let mut length = 0;
    while let Ok(Some(piece)) = body.next(Some(until)) {
        assert!(!piece.is_empty(), "a piece is never empty");
        length += piece.len();
        assert!(length <= bytes.len());
    }
}

/// The messages in a stream that arrives in pieces: event, id and data.
fn messages(pieces: &[&[u8]]) -> Vec<(String, String, String)> {
    let mut reader = Reader::default();
    for piece in pieces {
        assert!(reader.read(piece).is_ok(), "below the size limit");
    }
    reader.messages.into_iter().map(|message| (message.event, message.id, message.data)).collect()
}
