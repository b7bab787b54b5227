//! Formats the lines of jobs as log entries.
//!
//! Every byte that a job writes passes through here. The crate is pure: the caller supplies source and time, and writes the
//! entries.
#![forbid(unsafe_code)]

mod escape;
mod format;
mod redact;
mod timestamp;

pub use escape::is_hidden;
pub use format::{EntryFormatter, Labels, StreamName, Writer};
pub use redact::{HIDDEN, HiddenValues, Patterns, Redactor, SHORTEST};
pub use timestamp::{Stamp, stamp};
