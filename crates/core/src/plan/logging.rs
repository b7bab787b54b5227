//! How and where the log is written.

use alloc::string::String;
use core::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// How and where the log is written (L1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    /// The lowest level that is written.
    pub level: Level,
    /// The format of a line.
    pub format: Format,
    /// The destination.
    pub output: Output,
}

/// The level of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// Time, job, pid, text.
    Default,
    /// logfmt.
    Text,
    /// One JSON object per line.
    Json,
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, reopened on SIGUSR1.
    File(#[serde(serialize_with = "crate::recorded::as_is")] String),
}

/// What happens to the output of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobOutput {
    /// It is written unchanged to the supervisor's stdout and stderr (L2).
    Raw,
    /// Its lines are logged.
    Logged(JobLogging),
}

impl JobOutput {
    /// Returns true if the supervisor does not see it.
    #[must_use]
    pub const fn is_raw(&self) -> bool {
        matches!(self, Self::Raw)
    }

    /// The file that gets it in place of the log.
    #[must_use]
    pub const fn file(&self) -> Option<&LogFile> {
        match self {
            Self::Logged(JobLogging { file: Some(file), .. }) => Some(file),
            _ => None,
        }
    }
}

impl Default for JobOutput {
    fn default() -> Self {
        Self::Logged(JobLogging::default())
    }
}

/// How the lines of a job are logged (L8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLogging {
    /// The file that gets them in place of the log.
    pub file: Option<LogFile>,
    /// The level of the lines on stderr.
    pub stderr: Level,
    /// A regular expression. A line that matches belongs to the entry before it.
    pub join: Option<String>,
}

impl Default for JobLogging {
    fn default() -> Self {
        Self { file: None, stderr: Level::Info, join: None }
    }
}

/// The log file of a job (L8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFile {
    /// Its path.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub path: String,
    /// It is rotated before it gets larger than this many bytes; `None` means never.
    pub max_size: Option<NonZeroU64>,
    /// How many old files are kept.
    pub keep: u32,
}

/// What is recorded (B1, B2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The bytes of memory for the recording; 0 if nothing is recorded.
    pub memory: u64,
    /// The file that gets it, too.
    pub file: Option<LogFile>,
}
