//! Candidates for the exit code, each with its reason.

use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::log_entry::{Fields, LogEntry, LogEvent};
use crate::plan::Level;

/// Candidates for the exit code (S5).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ExitCodes {
    /// Decided: by a signal, or by a job with `onFailure` or `onSuccess`.
    pub(crate) decided: Option<ExitReason>,
    /// The first job that failed.
    pub(crate) first_failure: Option<ExitReason>,
    /// The first job that failed among those that only react to events. Counts if no work has failed.
    pub(crate) first_hook_failure: Option<ExitReason>,
    /// True if a job that does work was ever started.
    pub(crate) has_worked: bool,
}

/// An exit code and its reason (S12).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExitReason {
    pub(crate) code: u8,
    /// The reason as a clause.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub(crate) words: String,
    /// The event that decided it.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub(crate) cause: String,
}

impl ExitReason {
    /// S12: the last entry of the log.
    pub(crate) fn entry(&self, level: Level) -> LogEntry {
        let Self { code, words, cause } = self;
        let fields = Fields { code: Some(*code), ..LogEvent::Exiting.fields().cause(cause.as_str()) };
        let message = format!("exiting with code {code}: {words}");
        LogEntry { level, job: None, message, fields, with_output: false }
    }
}
