//! D4, D8, H6: what a job advertises: the desired status of its service in the catalog, and its heartbeats.

use containerpilot_core::effect::DesiredService;
use containerpilot_core::event::Code;
use containerpilot_core::plan::Status;
use containerpilot_core::{JobStatus, Phase, State, StopStage};

use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    pub(super) fn see_advertise(&mut self, job: usize, desired: DesiredService) -> Check {
        let Some(service) = &self.plan.jobs[job].service else {
            return self.job_violation("D3", job, "it has no service");
        };
        let before = std::mem::replace(&mut self.jobs[job].desired, desired);
        let again = self.is_registered_again(job, before == desired);
        if before == desired && again {
            return Ok(());
        }
        if before == desired {
            return self.job_violation("D5", job, "the same status is sent twice");
        }
        let DesiredService::Present(status) = desired else {
            (self.seen[job].leaves_catalog_now, self.seen[job].left_catalog) = (true, true);
            return Ok(());
        };
        if self.maintenance {
            return self.job_violation("D8", job, "it is registered in maintenance mode");
        }
        let left =
            self.previous[job].stop_stage > Some(StopStage::Hooks) || self.previous[job].state.has_ended();
        if left && !self.seen[job].is_new {
            return self.job_violation("S2", job, "it is registered again after it has left the catalog");
        }
        let is_new = before == DesiredService::Absent;
        let initial = is_new && service.initial_status == Some(status);
        let healthy = self.seen[job].healthy > 0;
        let allowed = match status {
            Status::Passing => healthy || initial,
            Status::Warning => initial,
            // R5: it may have got an initial status while it is unhealthy.
            Status::Critical => {
                let got_one = service.initial_status.is_some() && self.reloading.changing;
                initial || !is_new || got_one
            }
        };
        if !allowed {
            return self.job_violation(
                "D4",
                job,
                &format!("it is {status:?} in the catalog without a reason"),
            );
        }
        let has_process = self.jobs[job].run.is_some() || self.plan.jobs[job].exec.is_none();
        if !has_process && !initial && status != Status::Critical {
            return self.job_violation("D4", job, "it is registered without a process");
        }
        Ok(())
    }

    pub(super) fn see_heartbeat(&mut self, job: usize) -> Check {
        let passing = DesiredService::Present(Status::Passing);
        if self.jobs[job].desired != passing {
            return self.job_violation("H6", job, "a heartbeat of a service that is not passing");
        }
        self.seen[job].heartbeats += 1;
        // It may have been registered in the same step.
        let service = self.plan.jobs[job].service.as_ref();
        let initial = service.is_some_and(|service| service.initial_status == Some(Status::Passing));
        // R5: the initial status may be that of a service before a reload.
        let initial = initial || self.previous[job].desired == passing;
        if initial && self.seen[job].heartbeats <= self.became_healthy(job) {
            return Ok(());
        }
        let pace = self.plan.jobs[job].health.as_ref().and_then(|health| health.heartbeat);
        if let Some(pace) = pace {
            let due = self.jobs[job].last_heartbeat + pace;
            if self.exact && due != self.now {
                return self.job_violation("H6", job, &format!("a heartbeat at the wrong time, due {due:?}"));
            }
            self.jobs[job].last_heartbeat = self.now;
        }
        Ok(())
    }

    /// D4: the first heartbeat of a job with an initial status that is passing comes at once, when it becomes healthy: that
    /// status may have expired.
    fn became_healthy(&self, job: usize) -> usize {
        self.seen[job].changes.iter().filter(|code| **code == Code::BecameHealthy).count()
    }

    pub(super) fn check_advertised(&self, job: usize, status: &JobStatus, phase: Phase) -> Check {
        if status.desired != self.jobs[job].desired {
            return self.job_violation("D5", job, "the desired status was not sent");
        }
        let Some(service) = &self.plan.jobs[job].service else { return Ok(()) };
        let left = status.stop_stage > Some(StopStage::Hooks) || status.state.has_ended();
        if status.desired != DesiredService::Absent && (left || self.maintenance || phase == Phase::Exited) {
            return self.job_violation(if left { "S2" } else { "D8" }, job, "it is still in the catalog");
        }
        if left || self.maintenance {
            return Ok(());
        }
        let passing = DesiredService::Present(Status::Passing);
        let stayed = !self.seen[job].is_new && !self.seen[job].left_catalog;
        let was_passing = self.before[job].desired == passing && stayed;
        let is_passing = self.became_healthy(job) > 0 && status.desired == passing;
        if self.exact && was_passing && is_passing && self.seen[job].heartbeats == 0 {
            return self.job_violation("H6", job, "it becomes healthy, and sends no heartbeat");
        }
        // Also while the job still waits.
        let waits = status.state == State::Waiting && status.stop_stage.is_none() && phase == Phase::Running;
        let due = waits || (status.state == State::Running && self.jobs[job].active);
        match (status.healthy, status.desired) {
            (Some(true), DesiredService::Present(Status::Passing)) => Ok(()),
            (Some(true), _) => self.job_violation("H6", job, "it is healthy, but not passing in the catalog"),
            (Some(false), DesiredService::Absent | DesiredService::Present(Status::Critical)) => Ok(()),
            (Some(false), _) => {
                self.job_violation("H6", job, "it is unhealthy, but not critical in the catalog")
            }
            (None, DesiredService::Absent) if due && service.initial_status.is_some() => {
                self.job_violation("D4", job, "it is not registered with its initial status")
            }
            (None, _) => Ok(()),
        }
    }
}
