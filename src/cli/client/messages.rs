//! Server-sent events: messages of lines, with an empty line behind each.

use std::collections::VecDeque;

/// The longest line that is taken; a message is one event of the supervisor, some hundred bytes.
const MOST: usize = 1024 * 1024;

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Message {
    /// What kind of message it is; empty for the usual one.
    pub(in super::super) event: String,
    pub(in super::super) id: String,
    pub(in super::super) data: String,
}

/// Makes messages of pieces.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A line that is not whole yet.
    line: Vec<u8>,
    /// A message that is not whole yet.
    message: Message,
    pub(super) messages: VecDeque<Message>,
}

impl Reader {
    pub(super) fn read(&mut self, piece: &[u8]) -> Result<(), &'static str> {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() + self.message.data.len() > MOST {
                return Err("the supervisor sends a message that is too long");
            }
            if part.ends_with(b"\n") {
                self.whole_line();
            }
        }
        Ok(())
    }

    fn whole_line(&mut self) {
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
            // A comment keeps the connection alive, and others mean nothing to us.
            _ => {}
        }
    }
}
