//! Which jobs keep the supervisor running (W10).

use alloc::vec;
use alloc::vec::Vec;

use super::{EventPattern, Job, Plan};
use crate::event::{Code, Source};

impl Job {
    /// Returns true if the job does work of its own, rather than only react to signals, maintenance or stop events.
    pub(crate) fn does_work(&self) -> bool {
        let reacts = |event: &EventPattern| {
            matches!(event.source, Source::Signal(_))
                || event.code.is_stop_event()
                || matches!(event.code, Code::EnterMaintenance | Code::ExitMaintenance)
        };
        let patterns = self.when.patterns();
        !self.role.is_secondary() && (patterns.is_empty() || !patterns.iter().all(reacts))
    }
}

impl Plan {
    /// For each job, whether it keeps the supervisor running until it is complete. If no job does work, every job does.
    pub(crate) fn jobs_that_hold_open(&self) -> Vec<bool> {
        let work: Vec<bool> = self.jobs.iter().map(Job::does_work).collect();
        if work.contains(&true) { work } else { vec![true; self.jobs.len()] }
    }
}
