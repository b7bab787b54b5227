//! Processes: starting, signalling and reaping them, and the system calls for that.
//!
//! This is the only crate with `unsafe` code, and it has that in [`sys`] only. All other crates forbid it.
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod boot_clock;
pub mod cgroups;
pub mod descendants;
pub mod error_text;
pub mod failpoints;
pub mod orphans;
pub mod paths;
pub mod proc;
pub mod reaper;
pub mod regular_file;
pub mod secrets;
pub mod signals;
pub mod spawn;
pub mod sys;
#[cfg(test)]
mod test_support;
pub mod users;
