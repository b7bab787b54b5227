//! A stream of server-sent events.

use std::time::Instant;

use super::messages::{Message, MessageReader};
use super::{ByteStream, ClientError, StreamError};

pub(in super::super) struct Messages {
    bytes: ByteStream,
    reader: MessageReader,
}

impl Messages {
    pub(super) fn new(bytes: ByteStream) -> Self {
        Self { bytes, reader: MessageReader::default() }
    }

    /// The next message; `None` at the end. Without a deadline it waits indefinitely.
    pub(in super::super) fn next(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Message>, StreamError> {
        loop {
            if let Some(message) = self.reader.messages.pop_front() {
                return Ok(Some(message));
            }
            let Some(piece) = self.bytes.next(deadline)? else { return Ok(None) };
            self.reader.read(piece).map_err(|why| ClientError::Failed(why.to_owned()))?;
        }
    }
}
