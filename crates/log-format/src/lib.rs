//! Lines of jobs → entries of the log.
//!
//! This is all that is done for every byte a job writes, and nothing else; it is a crate of its own so that it
//! can be compiled for speed whatever the rest of the program is compiled for. It is pure: who speaks, when, and where
//! the entries go is the business of whoever calls it.
#![forbid(unsafe_code)]

mod clock;
mod escape;
mod format;

pub use clock::{Stamp, stamp};
pub use escape::is_hidden;
pub use format::{Form, Labels};
