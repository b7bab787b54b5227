//! Whether the container is healthy (X2) and ready (T1).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::status::{JobOverview, Overview};
use crate::plan::Role;
use crate::state::job::{State, StopReason};
use crate::state::supervisor::Phase;

/// Whether the container is healthy.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerHealth<'a> {
    /// True if it is.
    pub healthy: bool,
    /// Why, in a few words.
    pub reason: String,
    /// The jobs that count: they have checks, and should be running now or have failed.
    pub jobs: Vec<&'a JobOverview>,
}

impl Overview {
    /// Whether the container is healthy: all jobs that count are.
    #[must_use]
    pub fn health(&self) -> ContainerHealth<'_> {
        let is_due = |job: &&JobOverview| {
            matches!(job.status.word(), "starting" | "running" | "restarting" | "stopping" | "failed")
        };
        let jobs: Vec<&JobOverview> =
            self.jobs.iter().filter(|job| !job.checks.is_empty()).filter(is_due).collect();
        let is_healthy =
            |job: &&&JobOverview| job.status.healthy == Some(true) && job.status.word() != "failed";
        let (passing, all) = (jobs.iter().filter(is_healthy).count(), jobs.len());
        let (healthy, reason) = match self.phase_reason() {
            Some(reason) => (false, reason.to_string()),
            None if self.maintenance => (true, "in maintenance mode: checks are suspended".to_string()),
            None if all == 0 => (true, "no job has to pass a check now".to_string()),
            None => (passing == all, format!("{passing} of {all} jobs with checks are healthy")),
        };
        ContainerHealth { healthy, reason, jobs }
    }

    /// The reasons why the container is not ready; none if it is.
    #[must_use]
    pub fn not_ready(&self) -> Vec<String> {
        let phase = self.phase_reason().map(ToString::to_string);
        let maintenance = self.maintenance.then(|| "in maintenance mode".to_string());
        let jobs =
            self.jobs.iter().filter_map(|job| Some(format!("{}: {}", job.name, not_ready_reason(job)?)));
        phase.into_iter().chain(maintenance).chain(jobs).collect()
    }

    /// Why the supervisor itself is neither healthy nor ready.
    fn phase_reason(&self) -> Option<&'static str> {
        match self.phase {
            Phase::Starting => Some("the supervisor is starting"),
            Phase::Running => None,
            Phase::Stopping | Phase::Terminating | Phase::Killing | Phase::Exited => {
                Some("the supervisor is stopping")
            }
        }
    }
}

/// Why a job is not ready. A job without checks counts as ready.
fn not_ready_reason(job: &JobOverview) -> Option<&'static str> {
    if job.checks.is_empty() || job.role == Role::Telemetry || job.status.healthy == Some(true) {
        return None;
    }
    match (job.status.state, job.status.stop_reason) {
        (State::Complete, Some(StopReason::Failed)) => Some("failed"),
        (State::Complete, Some(StopReason::ByHand)) => Some("stopped by hand"),
        (State::Complete, Some(StopReason::Unreachable)) => Some("can never start"),
        (State::Complete, Some(StopReason::StartTimeout)) => Some("did not start within its timeout"),
        // It has finished its work.
        (State::Complete, _) => None,
        (State::Waiting, _) if job.runs_repeatedly => None,
        (State::Waiting, _) => Some("waiting to start"),
        (State::Starting, _) => Some("starting"),
        (State::Delaying, _) => Some("restarting"),
        (State::Running, _) if job.status.healthy == Some(false) => Some("unhealthy"),
        (State::Running, _) => Some("not checked yet"),
    }
}
