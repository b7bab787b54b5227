//! The fuzz target of a private parser.

/// Any bytes as the stream of events of a supervisor.
pub fn event_stream(bytes: &[u8]) {
    crate::client::fuzz::run(bytes);
}
