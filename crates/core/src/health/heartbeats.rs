//! H6: the heartbeats of a service, if they have an interval of their own. Otherwise each passing check is one.

use core::time::Duration;

use crate::health::context::HealthContext;
use crate::health::state::JobHealth;
use crate::plan::Job;
use crate::state::timers::JobTimer;

impl JobHealth {
    /// Starts the timer of the next heartbeat, if heartbeats have their own interval.
    pub(crate) fn set_heartbeat(&mut self, context: &mut HealthContext<'_>) {
        let interval = heartbeat_interval(context.planned()).filter(|_| context.planned().service.is_some());
        if let Some(interval) = interval {
            context.timers.cancel(&mut self.heartbeat);
            self.heartbeat = Some(context.set_timer(context.now + interval, JobTimer::Heartbeat));
        }
    }

    /// The heartbeat interval has passed; `sent` if that was worth a heartbeat.
    pub(crate) fn heartbeat_due(&mut self, sent: bool, context: &mut HealthContext<'_>) {
        self.heartbeat = None;
        if sent {
            self.set_heartbeat(context);
        }
    }
}

/// H6: the pace of heartbeats, if that is not the pace of the checks.
pub(super) fn heartbeat_interval(planned: &Job) -> Option<Duration> {
    planned.health.as_ref()?.heartbeat
}
