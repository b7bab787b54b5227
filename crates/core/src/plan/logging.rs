//! How and where the log is written.

use alloc::string::String;

/// How and where the log is written (L1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// The lowest level that is written.
    pub level: Level,
    /// The format of a line.
    pub format: Format,
    /// The destination.
    pub output: Output,
}

/// The level of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the usual levels")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
    /// Ends the supervisor.
    Fatal,
    /// A bug in the supervisor.
    Panic,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, job, pid, text.
    Default,
    /// logfmt.
    Text,
    /// One JSON object per line.
    Json,
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, reopened on SIGUSR1.
    File(String),
}
