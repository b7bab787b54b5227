//! The command line of both programs: the table of commands and flags, and what the commands have in common.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]

pub mod action;
pub mod failure;
pub mod flags;
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub mod fuzz;
pub mod help;
pub mod loading;
pub mod options;
pub mod output;
pub mod parse;
pub mod report;
pub mod table;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod version;
