//! Queries and control requests of other threads, and what the loop replies.
//!
//! The loop only copies its state; the client renders names, times and formats.

use std::sync::Arc;

use containerpilot_core::plan::Signal;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::request::{Reply, Request};
use containerpilot_process::spawn::{Execution, SetupError};
use containerpilot_views::explanation::Explained;
use containerpilot_views::journal::JournalRecord;
use containerpilot_views::lookup::{LookupError, Subject};
use containerpilot_views::snapshot::{PublicSnapshot, Snapshot};
use tokio::sync::{broadcast, oneshot};

use super::reload::ReloadRequest;

/// A query, with the channel for its reply.
#[derive(Debug)]
pub(crate) enum LoopQuery {
    /// The state of everything.
    Overview(oneshot::Sender<Arc<Snapshot>>),
    /// Why something is in its current state. A disclosure is for viewers that must not see all texts (T5); not even
    /// a full one discloses why a file was not rendered.
    Explain(Subject, Option<Disclosure>, oneshot::Sender<Result<Explained, LookupError>>),
    /// What a process of a job would get now (X12).
    Execution(String, oneshot::Sender<Result<Execution, ExecutionError>>),
    /// The name of a job, for data that is kept by name: several jobs with one name are not an error.
    Name(String, oneshot::Sender<Result<String, LookupError>>),
    /// The state of everything, for viewers that must not see all texts (T5).
    PublicOverview(Disclosure, oneshot::Sender<PublicSnapshot>),
    /// The events in the journal, and new ones.
    Events(oneshot::Sender<EventStream>),
    /// The recording so far (B3); `None` if nothing is recorded.
    Recording(oneshot::Sender<Option<Vec<u8>>>),
    ControlRequest(ControlRequest, oneshot::Sender<Result<Reply, LookupError>>),
    Reload(ReloadRequest),
}

/// A change that a client requests.
#[derive(Debug)]
pub(crate) enum ControlRequest {
    Job(String, JobAction),
    Supervisor(Request),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobAction {
    Start,
    Stop,
    Restart,
    /// One at a time, each healthy before the next (W20).
    RollingRestart,
    Signal(Signal),
}

/// Why there is nothing to run a command with.
#[derive(Debug)]
pub(crate) enum ExecutionError {
    Job(LookupError),
    /// Its user does not exist any more, for example.
    Setup(SetupError),
}

impl From<LookupError> for ExecutionError {
    fn from(error: LookupError) -> Self {
        Self::Job(error)
    }
}

/// The events and starts of the journal, and new ones as they happen.
#[derive(Debug)]
pub(crate) struct EventStream {
    pub(crate) past: Vec<Arc<JournalRecord>>,
    pub(crate) live: broadcast::Receiver<Arc<JournalRecord>>,
}
