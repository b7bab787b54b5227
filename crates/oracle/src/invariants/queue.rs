//! W21: with `queue: "all"`, every event starts a run of its own, in order.

use containerpilot_core::event::Code;
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_core::{JobStatus, Phase, State};

use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    /// An event fires the trigger of a job.
    pub(super) fn see_queued(&mut self, job: usize, source: Option<String>, code: Code) {
        if self.plan.jobs[job].when.queues_events() && self.shutdown.is_none() {
            self.jobs[job].queue.push_back((source, code));
        }
    }

    /// A run that is neither a restart nor started by hand belongs to the oldest event.
    pub(super) fn check_queued_start(&mut self, job: usize, environment: &ProcessEnvironment) -> Check {
        let planned = &self.plan.jobs[job];
        // W18: a job that is resumed after a lost source runs for no new event.
        let shutting_down = self.shutdown.is_some() || self.phase != Phase::Running;
        // S3: during a shutdown a job runs once.
        if !planned.when.queues_events() || !planned.requires.is_empty() || shutting_down {
            return Ok(());
        }
        let value = |wanted: &str| {
            let found = environment.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.to_owned())
        };
        let Some(event) = value("CONTAINERPILOT_EVENT") else { return Ok(()) };
        if value("CONTAINERPILOT_RESTARTS").as_deref() != Some("0") {
            if self.exact && self.jobs[job].queue.len() > self.seen[job].fired as usize {
                return self.job_violation("W21", job, "a restart goes before an event");
            }
            return Ok(());
        }
        let Some((source, code)) = self.jobs[job].queue.pop_front() else {
            // The first run after a lost source has no event of its own (W18).
            if self.jobs[job].resumed && self.jobs[job].runs <= 1 {
                return Ok(());
            }
            return self.job_violation("W21", job, "it runs without an event");
        };
        if event != code.name()
            || source.is_some_and(|source| Some(source) != value("CONTAINERPILOT_EVENT_SOURCE"))
        {
            return self.job_violation("W21", job, &format!("it runs for {event} before {code}"));
        }
        Ok(())
    }

    /// No event is lost.
    pub(super) fn check_queue(&self, job: usize, status: &JobStatus) -> Check {
        if status.state == State::Waiting && !self.jobs[job].queue.is_empty() {
            return self.job_violation("W21", job, "an event is lost");
        }
        Ok(())
    }
}
