//! Questions about the health of jobs.

use crate::health::state::JobHealth;
use crate::ids::JobIx;
use crate::supervisor::Core;

impl Core {
    /// What is known about the health of a job; `None` if it has no checks.
    pub(crate) fn health_of(&self, job: JobIx) -> Option<&JobHealth> {
        self.plan_state.health.of(job)
    }

    /// Healthy or unhealthy; `None` if that is unknown.
    pub(crate) fn is_healthy(&self, job: JobIx) -> Option<bool> {
        self.health_of(job)?.healthy
    }
}
