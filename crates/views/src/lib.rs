//! What clients see of the state of the core: the answers of the control socket, the text that the commands print of
//! them, and the live page. A supervisor answers with it, and a replay of a recording shows the same.
//!
//! What only the runtime knows (what the catalog has answered, the usage of processes, the output of jobs) is an input,
//! which a replay does not have.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod answers;
pub mod catalog;
pub mod clock;
pub mod explanation;
pub mod explanation_text;
pub mod items;
pub mod journal;
pub mod lookup;
pub mod page;
pub mod snapshot;
pub mod status;
