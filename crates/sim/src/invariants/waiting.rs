//! W9, W10: nobody waits for what cannot come, and when all work is done everything ends.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, Job, Role, Trigger};
use containerpilot_core::{JobStatus, Phase, State};

use super::{Check, Witness};

impl Witness<'_> {
    /// Whether an event can plainly not come any more.
    fn is_past(&self, event: &EventPattern, after: &[JobStatus]) -> bool {
        match &event.source {
            Source::Global => event.code == Code::Startup,
            Source::Signal(_) => false,
            Source::Watch(name) => self.plan.watches.iter().all(|watch| watch.name != *name),
            Source::Job(name) => {
                let mut jobs = self.plan.jobs.iter().zip(after).filter(|(job, _)| job.name == *name);
                jobs.all(|(_, status)| status.state == State::Complete)
            }
        }
    }

    pub(super) fn check_waiting(&self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let model = &self.jobs[job];
        if phase != Phase::Running || after[job].state != State::Waiting || model.stopping.is_some() {
            return Ok(());
        }
        let hopeless = match &self.plan.jobs[job].when.trigger {
            Trigger::Never => true,
            Trigger::Interval(_) => false,
            Trigger::Event { .. } | Trigger::Any { .. } | Trigger::All { .. }
                if self.is_once(job) && model.runs > 0 =>
            {
                true
            }
            Trigger::Event { event, .. } => self.is_past(event, after),
            Trigger::Any { conditions, .. } => conditions.iter().all(|event| self.is_past(event, after)),
            Trigger::All { conditions, .. } => {
                let mut missing = conditions.iter().zip(&model.holds).filter(|(_, holds)| !**holds);
                let can_change =
                    |event: &EventPattern| event.code == Code::Healthy && !self.is_past(event, after);
                let all_hold = model.holds.iter().all(|holds| *holds);
                missing.any(|(event, _)| self.is_past(event, after))
                    || (all_hold && !conditions.iter().any(can_change))
            }
        };
        if hopeless { self.broken("W10", job, "it waits for what cannot come any more") } else { Ok(()) }
    }

    /// W10: the supervisor stops by itself when all work is done.
    pub(super) fn check_whole(&self, after: &[JobStatus], phase: Phase) -> Check {
        if phase != Phase::Running {
            return Ok(());
        }
        let working = self.plan.jobs.iter().any(works);
        let done = self
            .plan
            .jobs
            .iter()
            .zip(after)
            .all(|(job, status)| status.state == State::Complete || (working && !works(job)));
        if done { Err(self.says("W10", "all work is done, and it does not stop")) } else { Ok(()) }
    }
}

/// Whether a job does work of its own (W10).
fn works(job: &Job) -> bool {
    let only_reacts = |event: &EventPattern| {
        matches!(event.source, Source::Signal(_))
            || matches!(
                event.code,
                Code::EnterMaintenance
                    | Code::ExitMaintenance
                    | Code::Stopping
                    | Code::Stopped
                    | Code::Shutdown
            )
    };
    let patterns = job.when.patterns();
    let secondary = matches!(job.role, Role::Telemetry | Role::Coprocess);
    !secondary && (patterns.is_empty() || !patterns.iter().all(only_reacts))
}
