//! Parses server-sent events: lines of fields, with an empty line after each message.

use std::collections::VecDeque;

/// Longest message. An event of the supervisor has a few hundred bytes.
const MESSAGE_BYTES: usize = 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Message {
    /// The type; empty for the default type.
    pub(in super::super) event: String,
    pub(in super::super) id: String,
    pub(in super::super) data: String,
}

/// Assembles messages from pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    /// An incomplete line.
    line: Vec<u8>,
    /// An incomplete message.
    message: Message,
    pub(super) messages: VecDeque<Message>,
}

impl MessageReader {
    pub(super) fn read(&mut self, piece: &[u8]) -> Result<(), &'static str> {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() + self.message.data.len() > MESSAGE_BYTES {
                return Err("the supervisor sent a message that is too long");
            }
            if part.ends_with(b"\n") {
                self.finish_line();
            }
        }
        Ok(())
    }

    fn finish_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim_end_matches(['\r', '\n']).to_owned();
        self.line.clear();
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            if message != Message::default() {
                self.messages.push_back(message);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.message.event),
            "id" => value.clone_into(&mut self.message.id),
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // A comment keeps the connection alive; other fields have no meaning here.
            _ => {}
        }
    }
}
