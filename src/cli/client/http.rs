//! An answer in HTTP/1.1: its head, and its body in whichever of the three ways it is delimited.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The longest head of an answer, and the longest line between chunks.
const HEAD: usize = 64 * 1024;
const LINE: usize = 4096;

/// The body of an answer, as it comes.
#[derive(Debug)]
pub(super) struct Body {
    stream: UnixStream,
    /// What was read and not yet given out begins at `at`.
    buffer: Vec<u8>,
    at: usize,
    rest: Rest,
}

/// How much of a body is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// So many bytes.
    Length(u64),
    /// So many bytes of this chunk, then others.
    Chunk(u64),
    /// A chunk has ended; the end of its line is to come.
    ChunkEnd,
    /// The line that says how long the next chunk is.
    ChunkSize,
    /// Lines behind the last chunk, which mean nothing to us.
    Trailer,
    /// Everything until the other side closes.
    Close,
    Done,
}

fn garbled(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl Body {
    /// Reads the head of an answer; the status in it.
    pub(super) fn open(stream: UnixStream, until: Instant) -> io::Result<(u16, Self)> {
        let mut body = Self { stream, buffer: Vec::new(), at: 0, rest: Rest::Close };
        let status = body.line(Some(until), HEAD)?;
        let mut words = status.split(' ');
        let version = words.next().unwrap_or_default();
        let number = words.next().filter(|_| version.starts_with("HTTP/1."));
        let status: u16 = number
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| garbled("its answer does not begin as one of HTTP does"))?;
        let mut read = 0;
        loop {
            let line = body.line(Some(until), HEAD)?;
            read += line.len();
            if line.is_empty() {
                break;
            }
            if read > HEAD {
                return Err(garbled("the head of its answer is too long"));
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") && body.rest == Rest::Close {
                let length = value.parse().map_err(|_| garbled("the length of its answer is no number"))?;
                body.rest = Rest::Length(length);
            }
            if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
                body.rest = Rest::ChunkSize;
            }
        }
        if matches!(status, 204 | 304) {
            body.rest = Rest::Done;
        }
        Ok((status, body))
    }

    /// The next piece of the body; nothing at its end. If the time passes, it can be asked again.
    pub(super) fn next(&mut self, until: Option<Instant>) -> io::Result<Option<&[u8]>> {
        let most = loop {
            match self.rest {
                Rest::Done | Rest::Length(0) => return Ok(None),
                Rest::Chunk(0) => self.rest = Rest::ChunkEnd,
                Rest::Length(left) | Rest::Chunk(left) => break usize::try_from(left).unwrap_or(usize::MAX),
                Rest::Close => break usize::MAX,
                Rest::ChunkEnd => {
                    self.line(until, LINE)?;
                    self.rest = Rest::ChunkSize;
                }
                Rest::ChunkSize => {
                    let line = self.line(until, LINE)?;
                    let digits = line.split(';').next().unwrap_or_default().trim();
                    let length = u64::from_str_radix(digits, 16)
                        .map_err(|_| garbled("the length of a chunk is no number"))?;
                    self.rest = if length == 0 { Rest::Trailer } else { Rest::Chunk(length) };
                }
                Rest::Trailer => {
                    if self.line(until, LINE)?.is_empty() {
                        self.rest = Rest::Done;
                    }
                }
            }
        };
        if self.at == self.buffer.len() && !self.more(until)? {
            return if self.rest == Rest::Close {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        let begin = self.at;
        let length = (self.buffer.len() - begin).min(most);
        self.at += length;
        if let Rest::Length(left) | Rest::Chunk(left) = &mut self.rest {
            *left = left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
        }
        Ok(self.buffer.get(begin..self.at))
    }

    /// A whole line without its end. It stays unread if the time passes before it is whole.
    fn line(&mut self, until: Option<Instant>, most: usize) -> io::Result<String> {
        let mut searched = 0;
        loop {
            let unread = self.buffer.get(self.at..).unwrap_or_default();
            let new = unread.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', new) {
                let line = unread.get(..searched + end).unwrap_or_default();
                let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
                self.at += searched + end + 1;
                return Ok(line);
            }
            searched = unread.len();
            if searched > most {
                return Err(garbled("a line of its answer is too long"));
            }
            if !self.more(until)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads more into the buffer; false at the end of everything.
    fn more(&mut self, until: Option<Instant>) -> io::Result<bool> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let mut piece = [0; 16 * 1024];
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(left)?;
            match self.stream.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(length) => {
                    self.buffer.extend_from_slice(piece.get(..length).unwrap_or_default());
                    return Ok(length > 0);
                }
            }
        }
    }
}
