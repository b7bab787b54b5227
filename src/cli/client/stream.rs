//! A stream of server-sent events.

use std::time::Instant;

use super::messages::{Message, Reader};
use super::{Bytes, Late, Trouble};

/// A stream of messages.
pub(in super::super) struct Messages {
    bytes: Bytes,
    reader: Reader,
}

impl Messages {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { bytes, reader: Reader::default() }
    }

    /// The next message; nothing at the end. Without a time it waits as long as it takes.
    pub(in super::super) fn next(&mut self, until: Option<Instant>) -> Result<Option<Message>, Late> {
        loop {
            if let Some(message) = self.reader.messages.pop_front() {
                return Ok(Some(message));
            }
            let Some(piece) = self.bytes.next(until)? else { return Ok(None) };
            self.reader.read(piece).map_err(|why| Late::Trouble(Trouble::Other(why.to_owned())))?;
        }
    }
}
