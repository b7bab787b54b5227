//! Any bytes as a stream of server-sent events: the messages do not depend on how the bytes are split.

use super::messages::MessageReader;

pub(crate) fn run(bytes: &[u8]) {
    let whole = messages(&[bytes]);
    let (front, back) = bytes.split_at(bytes.len() / 2);
    assert_eq!(messages(&[front, back]), whole, "the split of the bytes must not matter");
}

/// The messages in the pieces of a stream: event, id and data.
fn messages(pieces: &[&[u8]]) -> Vec<(String, String, String)> {
    let mut reader = MessageReader::default();
    for piece in pieces {
        if reader.read(piece).is_err() {
            break;
        }
    }
    reader.messages.into_iter().map(|message| (message.event, message.id, message.data)).collect()
}
