//! D4, D8, H6: what is desired in the catalog.

use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::Status;
use containerpilot_core::{JobStatus, Phase, State, StopStage};

use super::{Check, Witness};

impl Witness<'_> {
    pub(super) fn see_advertise(&mut self, job: usize, desired: DesiredService) -> Check {
        let Some(service) = &self.plan.jobs[job].service else {
            return self.broken("D3", job, "it is no service");
        };
        let before = std::mem::replace(&mut self.jobs[job].desired, desired);
        if before == desired {
            return self.broken("D5", job, "the catalog is told twice");
        }
        let DesiredService::Present(status) = desired else { return Ok(()) };
        if self.maintenance {
            return self.broken("D8", job, "it enters the catalog in maintenance");
        }
        let left = self.between[job].stop_stage > Some(StopStage::Hooks)
            || self.between[job].state == State::Complete;
        if left && !self.seen[job].born {
            return self.broken("S2", job, "it comes back to the catalog after it has left");
        }
        let begins = before == DesiredService::Absent;
        let initial = begins && service.initial_status == Some(status);
        let healthy = self.seen[job].healthy > 0;
        let allowed = match status {
            Status::Passing => healthy || initial,
            Status::Warning => initial,
            Status::Critical => initial || !begins,
        };
        if !allowed {
            return self.broken("D4", job, &format!("it is {status:?} in the catalog for no reason"));
        }
        if self.jobs[job].run.is_none() && self.plan.jobs[job].exec.is_some() && status != Status::Critical {
            return self.broken("D4", job, "it enters the catalog without a process");
        }
        Ok(())
    }

    pub(super) fn see_heartbeat(&mut self, job: usize) -> Check {
        let passing = DesiredService::Present(Status::Passing);
        if self.jobs[job].desired != passing {
            return self.broken("H6", job, "a heartbeat of a service that is not healthy");
        }
        let pace = self.plan.jobs[job].health.as_ref().and_then(|health| health.heartbeat);
        if let Some(pace) = pace {
            let due = self.jobs[job].beat + pace;
            if self.exact && due != self.now {
                return self.broken("H6", job, &format!("a heartbeat at the wrong time, due {due:?}"));
            }
            self.jobs[job].beat = self.now;
        }
        Ok(())
    }

    pub(super) fn check_catalog(&self, job: usize, status: &JobStatus, phase: Phase) -> Check {
        if status.desired != self.jobs[job].desired {
            return self.broken("D5", job, "what is desired was not told");
        }
        let Some(service) = &self.plan.jobs[job].service else { return Ok(()) };
        let left = status.stop_stage > Some(StopStage::Hooks) || status.state == State::Complete;
        if status.desired != DesiredService::Absent && (left || self.maintenance || phase == Phase::Exited) {
            return self.broken(if left { "S2" } else { "D8" }, job, "it is still in the catalog");
        }
        if left || self.maintenance {
            return Ok(());
        }
        let running = status.state == State::Running;
        match (status.healthy, status.desired) {
            (Some(true), DesiredService::Present(Status::Passing)) => Ok(()),
            (Some(true), _) => self.broken("H6", job, "it is healthy, and the catalog does not know"),
            (Some(false), DesiredService::Absent | DesiredService::Present(Status::Critical)) => Ok(()),
            (Some(false), _) => self.broken("H6", job, "it is unhealthy, and the catalog does not know"),
            (None, DesiredService::Absent)
                if running && service.initial_status.is_some() && self.jobs[job].active =>
            {
                self.broken("D4", job, "it is not registered with its first status")
            }
            (None, _) => Ok(()),
        }
    }
}
