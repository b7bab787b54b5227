//! The desired state of a job's service in the catalog, and heartbeats (D4, D5, H6).

use crate::effect::{DesiredService, Effect};
use crate::ids::JobIx;
use crate::plan::Status;
use crate::supervisor::Core;

impl Core {
    /// Sets the desired state of a job's service. In maintenance mode it is always absent.
    pub(crate) fn advertise(&mut self, job: JobIx, desired: DesiredService) {
        let desired = if self.maintenance { DesiredService::Absent } else { desired };
        if self.planned(job).service.is_some() && self.job(job).desired != desired {
            self.job_mut(job).desired = desired;
            self.effects.push(Effect::Advertise { job, desired });
        }
    }

    /// D4: registers a service before its health is known, and even before its job starts, if it has an initial status.
    pub(crate) fn advertise_initial_status(&mut self, job: JobIx) {
        let service = self.planned(job).service.as_ref();
        if let Some(status) = service.and_then(|service| service.initial_status) {
            self.advertise(job, DesiredService::Present(status));
        }
    }

    /// H6, H7: marks a service critical, if it is registered.
    pub(crate) fn advertise_critical(&mut self, job: JobIx) {
        if matches!(self.job(job).desired, DesiredService::Present(_)) {
            self.advertise(job, DesiredService::Present(Status::Critical));
        }
    }

    /// Sends a heartbeat if the service is registered as passing. Returns true if it was sent.
    pub(crate) fn send_heartbeat(&mut self, job: JobIx) -> bool {
        let passing = self.job(job).desired == DesiredService::Present(Status::Passing);
        if passing {
            self.effects.push(Effect::Heartbeat { job });
        }
        passing
    }
}
