//! Restart policies that never restart, and limits that are never reached (W13, W14).

use containerpilot_core::plan::{Job, OnUnhealthy, RestartOn, Restarts};

use crate::decode::Spanned;
use crate::fields::JobFields;
use crate::validate::Checker;

impl Checker<'_> {
    /// Reports `restartOn` and `startLimit` where they can have no effect.
    pub(super) fn restart_policy(&mut self) {
        for (fields, job) in self.pairs.clone() {
            if let Some(job) = job {
                self.restart_on(fields, job);
                self.start_limit(fields, job);
            }
        }
    }

    fn restart_on(&mut self, fields: &JobFields, job: &Job) {
        let Some(given) = fields.restart_on.as_ref().filter(|given| is_own(fields, given)) else { return };
        if job.when.is_periodic() {
            let message = "`restartOn` has no effect: a periodic job runs at its next tick".to_owned();
            self.fault(given.key, message, "remove it, or `when.interval`");
        } else if job.restarts == Restarts::Limited(0) {
            let message = "`restartOn` has no effect: the job has no restarts".to_owned();
            self.fault(given.key, message, "add restarts: \"unlimited\", or a number");
        } else if job.restart_on == RestartOn::Success
            && job.health.as_ref().is_some_and(|health| health.on_unhealthy == OnUnhealthy::Restart)
        {
            let message = "an unhealthy job has failed, so `onUnhealthy` never restarts it".to_owned();
            self.fault(given.key, message, "write another `restartOn`, or onUnhealthy: \"report\"");
        }
    }

    fn start_limit(&mut self, fields: &JobFields, job: &Job) {
        let Some(given) = fields.start_limit.as_ref().filter(|given| is_own(fields, given)) else { return };
        let why = if job.exec.is_none() {
            "the job has no `exec`"
        } else if job.when.is_periodic() {
            "the ticks of a periodic job are not counted"
        } else {
            return;
        };
        self.fault(given.key, format!("`startLimit` is never reached: {why}"), "remove it");
    }
}

/// Returns true for a key that the job itself has. One of `defaults` is also for other jobs.
fn is_own<T>(fields: &JobFields, given: &Spanned<T>) -> bool {
    given.written && fields.place.contains(given.key)
}
