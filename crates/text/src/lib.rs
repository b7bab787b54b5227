//! What commands print, as text: tables, the summary of a plan, JSON. Touches no system.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod json;
pub mod screen;
pub mod summary;
