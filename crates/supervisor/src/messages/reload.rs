//! Requests to reload the configuration, their outcome, and the result of the loading thread (R1, R2).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::plan::diff::Changes;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::request::Refusal;
use containerpilot_process::error_text::describe;
use thiserror::Error;
use tokio::sync::oneshot;

/// A request to reload the configuration.
#[derive(Debug)]
pub(crate) struct ReloadRequest {
    /// Only report what a reload would do.
    pub(crate) dry_run: bool,
    /// The channel for the outcome; SIGHUP has none.
    pub(crate) reply: Option<oneshot::Sender<ReloadOutcome>>,
}

impl ReloadRequest {
    /// Returns true if the client has gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    pub(crate) fn reply(self, outcome: ReloadOutcome) {
        if let Some(reply) = self.reply {
            // Sending fails if the client has gone.
            let _ = reply.send(outcome);
        }
    }
}

/// The outcome of a reload.
#[derive(Clone, Debug)]
pub(crate) enum ReloadOutcome {
    /// The changes that were made or, for a dry run, would be made.
    Applied(ReloadSummary),
    /// The configuration cannot be loaded; all its problems. Nothing has changed.
    Invalid(String),
    /// A reload is not possible now.
    Refused(ReloadError),
}

/// Why a reload is not possible.
#[derive(Clone, Debug, Error)]
pub(crate) enum ReloadError {
    #[error("there is no configuration to reload: a single program is running")]
    NoConfiguration,
    #[error("{0} earlier reloads are still waiting for the configuration")]
    Stuck(usize),
    #[error("cannot start a thread to load the configuration: {}", describe(.0))]
    Thread(#[source] Arc<io::Error>),
    #[error("the configuration could not be read within {}s; nothing was changed", .0.as_secs())]
    Timeout(Duration),
    #[error(transparent)]
    Core(#[from] Refusal),
}

/// More names than these are only counted in the log.
const MAX_NAMES: usize = 10;

/// What a reload changed, or would change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReloadSummary {
    /// The jobs.
    pub(crate) changes: Changes,
    /// The other sections of the configuration that have changed.
    pub(crate) settings: Vec<&'static str>,
    /// The warnings about the configuration.
    pub(crate) warnings: String,
}

impl ReloadSummary {
    /// One line for the log.
    pub(crate) fn line(&self) -> String {
        let Changes { kept, adjusted, restarted, waiting, started, stopped } = &self.changes;
        let named = [
            ("adjusted", adjusted),
            ("restarted", restarted),
            ("changed, waiting:", waiting),
            ("started", started),
            ("removed", stopped),
        ];
        let named = named.iter().filter(|(_, names)| !names.is_empty());
        let list = |names: &[String]| match names.len() {
            0..=MAX_NAMES => names.join(", "),
            many => format!("{many} jobs"),
        };
        let mut parts: Vec<String> = named.map(|(what, names)| format!("{what} {}", list(names))).collect();
        if !self.settings.is_empty() {
            parts.push(format!("changed {}", self.settings.join(", ")));
        }
        parts.push(format!(
            "kept {}",
            if kept.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", kept.len()) }
        ));
        parts.join("; ")
    }
}

/// The result of the loading thread.
#[derive(Debug)]
pub(crate) struct FinishedLoad {
    /// The number of the load.
    pub(crate) load: u64,
    pub(crate) result: ReadResult,
}

#[derive(Debug)]
pub(crate) struct ReadResult {
    /// The plan, or the report of all problems as text: it is only shown.
    pub(crate) plan: Result<Box<Plan>, String>,
    pub(crate) warnings: String,
    /// A log entry for each problem.
    pub(crate) entries: Vec<(Level, String)>,
}
