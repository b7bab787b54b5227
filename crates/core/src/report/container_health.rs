//! Whether the container is healthy (X2) and ready (T1).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::log_entry::few;
use crate::outcome::{Outcome, SkipReason};
use crate::plan::Role;
use crate::report::status::{JobOverview, Overview, ReportedState};
use crate::state::job::StopReason;
use crate::state::phase::Phase;

/// Whether the container is healthy.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerHealth<'a> {
    /// True if it is.
    pub healthy: bool,
    /// Why, in a few words.
    pub reason: String,
    /// The jobs that count: they have checks, and are healthy or keep the container from being ready.
    pub jobs: Vec<&'a JobOverview>,
}

impl Overview {
    /// Whether the container is healthy, which is the same as ready, except in maintenance mode (H15).
    #[must_use]
    pub fn health(&self) -> ContainerHealth<'_> {
        let is_healthy = |job: &&JobOverview| job.status.health() == Some(true);
        let counts = |job: &&JobOverview| {
            let has_checks = !job.checks.is_empty() && job.role != Role::Telemetry;
            has_checks && (is_healthy(job) || not_ready_reason(job).is_some())
        };
        let jobs: Vec<&JobOverview> = self.jobs.iter().filter(counts).collect();
        let passing = jobs.iter().copied().filter(is_healthy).count();
        let all = jobs.len();
        let (healthy, reason) = match self.not_working() {
            Some(reason) => (false, reason),
            None if self.maintenance => (true, "in maintenance mode: checks are suspended".to_string()),
            None if all == 0 => (true, "no job has to pass a check now".to_string()),
            None => {
                let healthy =
                    if all == 1 { "job with checks is healthy" } else { "jobs with checks are healthy" };
                let reasons = self.not_ready();
                let why = if reasons.is_empty() { String::new() } else { format!(": {}", few(reasons)) };
                (passing == all, format!("{passing} of {all} {healthy}{why}"))
            }
        };
        ContainerHealth { healthy, reason, jobs }
    }

    /// The reasons why the container is not ready; none if it is.
    #[must_use]
    pub fn not_ready(&self) -> Vec<String> {
        let maintenance = self.maintenance.then(|| "in maintenance mode".to_string());
        // In maintenance mode checks are suspended, so no job is healthy.
        let jobs = self.jobs.iter().filter(|_| !self.maintenance);
        let jobs = jobs.filter_map(|job| Some(format!("{}: {}", job.name, not_ready_reason(job)?)));
        self.not_working().into_iter().chain(maintenance).chain(jobs).collect()
    }

    /// Why the supervisor itself is neither healthy nor ready.
    fn not_working(&self) -> Option<String> {
        match self.phase {
            Phase::Starting => Some("the supervisor is starting".into()),
            Phase::Running => self.deadlock.clone(),
            Phase::Stopping | Phase::Terminating | Phase::Killing | Phase::Exited => {
                Some("the supervisor is stopping".into())
            }
        }
    }
}

/// Why a job is not ready. A job without checks counts as ready.
fn not_ready_reason(job: &JobOverview) -> Option<&'static str> {
    if job.checks.is_empty() || job.role == Role::Telemetry || job.status.health() == Some(true) {
        return None;
    }
    match job.status.reported() {
        ReportedState::Waiting if job.runs_repeatedly => None,
        ReportedState::Waiting => Some("waiting to start"),
        ReportedState::Starting => Some("starting"),
        ReportedState::Restarting => Some("restarting"),
        ReportedState::Stopping => Some("stopping"),
        ReportedState::Running if job.status.health() == Some(false) => Some("unhealthy"),
        ReportedState::Running => Some("not checked yet"),
        ReportedState::Ended(Outcome::Failed) => Some("failed"),
        ReportedState::Ended(Outcome::Skipped(SkipReason::Unreachable)) => Some("can never start"),
        ReportedState::Ended(Outcome::Skipped(SkipReason::StartTimeout)) => {
            Some("did not start within its timeout")
        }
        ReportedState::Ended(Outcome::Stopped) if job.status.stop_reason == Some(StopReason::ByHand) => {
            Some("stopped by hand")
        }
        // It has finished its work, or the supervisor says that it stops.
        ReportedState::Ended(_) => None,
    }
}
