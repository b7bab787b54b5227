//! Fuzz target: any bytes as the response to an HTTP check.

use super::status;

pub(crate) fn run(bytes: &[u8]) {
    if let Some(status) = status(bytes) {
        assert!(status <= 999 && bytes.starts_with(b"HTTP/1."));
    }
}
