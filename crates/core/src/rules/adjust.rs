//! A reload that changes a job without its process (R5).
//!
//! Most of a definition is read when it is needed: the new one applies from the next restart, stop or exit on. Only checks,
//! heartbeats and the registration in the catalog are going on, and must be changed.

use crate::effect::{DesiredService, Effect};
use crate::ids::JobIx;
use crate::plan::Job;
use crate::state::health::HealthState;
use crate::state::job::State;
use crate::state::supervisor::Core;

impl Core {
    /// Applies the new definition of a job that was `old` before. The plan in force is the new one.
    pub(crate) fn adjust(&mut self, job: JobIx, old: &Job) {
        let new = self.planned(job);
        let (health, service) = (old.health != new.health, old.service != new.service);
        if health {
            self.replace_checks(job);
        }
        let desired = self.job(job).desired;
        if (health || service) && matches!(desired, DesiredService::Present(_)) {
            self.effects.push(Effect::Advertise { job, desired });
        }
    }

    /// Cancels the old checks and runs the new ones. The job stays healthy, or unhealthy, until they say otherwise.
    fn replace_checks(&mut self, job: JobIx) {
        self.stop_checks(job);
        let Some(planned) = &self.planned(job).health else { return };
        let mut health = HealthState::new(planned);
        let state = self.job_mut(job);
        if let Some(old) = state.health.take() {
            (health.healthy, health.healthy_since) = (old.healthy, old.healthy_since);
            health.continue_from(old);
        }
        let is_healthy = health.healthy == Some(true);
        state.health = Some(health);
        if state.state() == State::Running {
            self.begin_checks(job);
        }
        if is_healthy && self.job(job).health.as_ref().is_some_and(|health| health.active) {
            self.set_heartbeat(job);
        }
    }
}
