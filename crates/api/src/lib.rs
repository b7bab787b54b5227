//! What the supervisor and its clients share: the answers of the control socket, and the sentences about them.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod job_names;
mod percent;
pub mod responses;
mod sentences;
mod subjects;
pub mod timestamps;

pub use percent::{percent_decoded, percent_encoded};
pub use sentences::NotOneJob;
pub use subjects::SubjectKind;

/// Longest head of a request or a response, and the read buffer of a connection.
pub const HEAD_BYTES: usize = 16 * 1024;
/// Most header fields of a request or a response.
pub const HEAD_FIELDS: usize = 64;
