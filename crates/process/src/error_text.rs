//! Errors in words.

use std::error::Error;
use std::io;

use nix::errno::Errno;

/// An error in the system's words, without its number: `connection refused`.
pub fn describe(error: &io::Error) -> String {
    let text = error
        .raw_os_error()
        .map_or_else(|| error.to_string(), |errno| Errno::from_raw(errno).desc().to_owned());
    // `I/O error` stays as it is.
    let is_word = text.chars().nth(1).is_some_and(char::is_lowercase);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if is_word => first.to_lowercase().chain(letters).collect(),
        _ => text,
    }
}

/// True if the supervisor has no descriptor left: then the error says nothing about a file or a peer.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EMFILE | Errno::ENFILE))
}

/// The innermost error. hyper's own messages only name the operation that failed.
pub fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, root_cause)
}
