//! An answer as it comes: HTTP as [`crate::net::http`] reads it, from a socket that is waited for with a deadline.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

// Not from `crate`: the fuzzer has the binary's rooms in a house of its own.
use super::super::super::net::http::{Fault, Head, Rest, answered};

/// How every answer begins.
const BEGIN: &[u8] = b"HTTP/1.";

/// The body of an answer, as it comes.
#[derive(Debug)]
pub(super) struct Body {
    stream: UnixStream,
    /// What was read and not yet given out begins at `at`.
    buffer: Vec<u8>,
    at: usize,
    rest: Rest,
}

fn garbled(fault: Fault) -> io::Error {
    match fault {
        Fault::Broken(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, fault.to_string()),
    }
}

impl Body {
    /// Reads the head of an answer; the status in it.
    pub(super) fn open(stream: UnixStream, until: Instant) -> io::Result<(u16, Self)> {
        let mut body = Self { stream, buffer: Vec::new(), at: 0, rest: Rest::Close };
        loop {
            // One who speaks something else need not be waited for.
            if !body.buffer.iter().zip(BEGIN).all(|(byte, expected)| byte == expected) {
                return Err(garbled(Fault::Garbled("it does not begin as an answer does")));
            }
            if let Some((head, length)) = Head::read(&body.buffer).map_err(garbled)? {
                body.at = length;
                let (status, rest) = answered(&head).map_err(garbled)?;
                body.rest = rest;
                return Ok((status, body));
            }
            if !body.more(Some(until))? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next piece of the body; nothing at its end. If the time passes, it can be asked again.
    pub(super) fn next(&mut self, until: Option<Instant>) -> io::Result<Option<&[u8]>> {
        loop {
            let unread = self.buffer.get(self.at..).unwrap_or_default();
            let found = self.rest.find(unread).map_err(garbled)?;
            self.at += found.skip;
            if found.over {
                return Ok(None);
            }
            if found.data > 0 {
                let begin = self.at;
                self.at += found.data;
                return Ok(self.buffer.get(begin..self.at));
            }
            if !self.more(until)? {
                return match self.rest {
                    Rest::Close => Ok(None),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
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
