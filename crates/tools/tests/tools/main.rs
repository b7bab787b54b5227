//! The commands that work on files and need no supervisor: simulate, graph, audit, migrate, schema, completions, man
//! and the pages of the manual; and what the repository generates with them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod files;
mod generated_docs;
mod help;
mod import;
mod incidents;
mod init;
mod manifests;
mod manual;
mod mcp;
mod recordings;
mod recordings_under_chaos;
mod release;
mod simulate;
#[expect(dead_code, reason = "the tests of the supervisor use more of it")]
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod two_programs;

use std::path::{Path, PathBuf};

use support::program::repository;

/// The path of the program with the commands that work on files.
pub(crate) fn tools() -> &'static str {
    env!("CARGO_BIN_EXE_containerpilot-tools")
}

/// A file or folder beside this one.
pub(crate) fn fixture(path: &str) -> PathBuf {
    // Cargo compiles in the root of the repository.
    repository().join(Path::new(file!()).parent().unwrap()).join(path)
}
