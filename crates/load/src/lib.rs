//! Loads a plan from the command line, configuration files and properties of the host.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod at_start;
pub mod config_source;
pub mod find_files;
pub mod host;
pub mod looks;
mod mounts;
