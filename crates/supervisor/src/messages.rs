//! What other threads send to the event loop.
//!
//! Everything that waits for the network or a disk runs on its own thread and sends its results here.

pub(crate) mod channel;
pub(crate) mod query;
pub(crate) mod query_handle;
pub(crate) mod reload;
/// The primitives of the channel, which a test replaces to try all interleavings.
mod sync {
    pub(super) use std::sync::mpsc;
}

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use containerpilot_core::ids::{CheckRunId, JobIx, RenderId, RunId, WatchIx};
use containerpilot_core::input::{CheckError, RenderError, WatchResult};
use containerpilot_core::lock_report::LockReport;
use containerpilot_core::plan::{Level, Lock, Watch};
use containerpilot_process::orphans::OrphanReport;

use self::channel::{Receiver, Sender};
use self::query::LoopQuery;
use self::reload::FinishedLoad;
use crate::files::TempFile;

/// The receiving end, in the loop.
pub(crate) type LoopReceiver = Receiver<LoopMessage>;

/// The sending end, in other threads.
pub(crate) type LoopSender = Sender<LoopMessage>;

/// A message from another thread.
#[derive(Debug)]
pub(crate) enum LoopMessage {
    /// The addresses of a host that checks wait for, or the error of the look-up.
    Resolved(String, Result<Vec<IpAddr>, CheckError>),
    /// A check on the network thread is done, with its result.
    CheckDone(CheckRunId, Result<(), CheckError>),
    /// What a watch has found, or why it cannot tell, with the watch's index when it started.
    Watched(Arc<Watch>, WatchIx, WatchResult),
    /// What Consul has answered about a lock.
    Lock(Arc<Lock>, LockReport),
    /// A file was rendered: the new text, or `None` if it is that of the file.
    FileRendered(RenderId, Result<Option<TempFile>, RenderError>),
    /// A file was replaced, or could not be.
    FileInstalled(RenderId, Result<(), String>),
    /// A service was deregistered: its id, and its job's index when that was requested.
    Deregistered(String, JobIx),
    /// The result of loading a configuration for a reload.
    Loaded(Box<FinishedLoad>),
    /// What was found out about orphans.
    OrphansRead(OrphanReport),
    /// A process has printed the line that makes it ready (H11).
    ReadyLine(RunId),
    /// The telemetry server listens at this address of the plan, or cannot.
    TelemetryListens(SocketAddr, Result<(), String>),
    /// A log entry.
    Log(Level, String),
    /// A query, with the channel for its reply.
    Query(LoopQuery),
}
