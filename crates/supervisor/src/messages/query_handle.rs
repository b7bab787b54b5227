//! The client's end of a query: sends it to the loop and waits for the reply, which has its own channel.

use std::net::SocketAddr;
use std::sync::Arc;

use containerpilot_core::plan::Level;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::request::Reply;
use containerpilot_process::spawn::Execution;
use containerpilot_views::explanation::Explained;
use containerpilot_views::lookup::{LookupError, Subject};
use containerpilot_views::snapshot::{PublicSnapshot, Snapshot};
use tokio::sync::oneshot;

use super::query::{ControlRequest, EventStream, ExecutionError, LoopQuery};
use super::reload::{ReloadOutcome, ReloadRequest};
use super::{LoopMessage, LoopSender};

/// Sends queries to the loop.
#[derive(Clone, Debug)]
pub(crate) struct QueryHandle(LoopSender);

impl QueryHandle {
    pub(crate) fn new(sender: LoopSender) -> Self {
        Self(sender)
    }

    /// The state of everything; `None` if the loop does not answer.
    pub(crate) async fn overview(&self) -> Option<Arc<Snapshot>> {
        self.query(LoopQuery::Overview).await
    }

    /// See [`LoopQuery::Explain`].
    pub(crate) async fn explain(
        &self,
        subject: Subject,
        shown: Option<Disclosure>,
    ) -> Result<Explained, LookupError> {
        let reply = self.query(|reply| LoopQuery::Explain(subject, shown, reply)).await;
        reply.unwrap_or(Err(LookupError::NoAnswer))
    }

    /// What a process of a job would get now.
    pub(crate) async fn execution(&self, job: String) -> Result<Execution, ExecutionError> {
        let reply = self.query(|reply| LoopQuery::Execution(job, reply)).await;
        reply.unwrap_or(Err(LookupError::NoAnswer.into()))
    }

    /// The state of everything without the texts that are not disclosed; `None` if the loop does not answer.
    pub(crate) async fn public_overview(&self, shown: Disclosure) -> Option<PublicSnapshot> {
        self.query(|reply| LoopQuery::PublicOverview(shown, reply)).await
    }

    /// See [`LoopQuery::Name`].
    pub(crate) async fn name(&self, job: String) -> Result<String, LookupError> {
        self.query(|reply| LoopQuery::Name(job, reply)).await.unwrap_or(Err(LookupError::NoAnswer))
    }

    /// The event stream; `None` if the loop does not answer.
    pub(crate) async fn events(&self) -> Option<EventStream> {
        self.query(LoopQuery::Events).await
    }

    /// See [`LoopQuery::Recording`]. `None` also if the loop does not answer.
    pub(crate) async fn recording(&self) -> Option<Vec<u8>> {
        self.query(LoopQuery::Recording).await.flatten()
    }

    /// Requests a change.
    pub(crate) async fn request(&self, request: ControlRequest) -> Result<Reply, LookupError> {
        self.query(|reply| LoopQuery::ControlRequest(request, reply))
            .await
            .unwrap_or(Err(LookupError::NoAnswer))
    }

    /// Reloads the configuration, or reports what that would do; `None` if the loop does not answer.
    pub(crate) async fn reload(&self, dry_run: bool) -> Option<ReloadOutcome> {
        self.query(|reply| LoopQuery::Reload(ReloadRequest { dry_run, reply: Some(reply) })).await
    }

    /// Reports that the telemetry server listens at this address of the plan, or why it cannot.
    pub(crate) fn telemetry_listens(&self, address: SocketAddr, result: Result<(), String>) {
        self.0.send(LoopMessage::TelemetryListens(address, result));
    }

    /// Writes a log entry.
    pub(crate) fn log(&self, level: Level, message: String) {
        self.0.send(LoopMessage::Log(level, message));
    }

    async fn query<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> LoopQuery) -> Option<T> {
        let (sender, reply) = oneshot::channel();
        self.0.send(LoopMessage::Query(query(sender)));
        reply.await.ok()
    }
}
