//! Any bytes as what a server answers to a check.

use super::answer::status;

pub(crate) fn run(bytes: &[u8]) {
    if let Some(status) = status(bytes) {
        assert!(status <= 999 && bytes.starts_with(b"HTTP/1."));
    }
}
