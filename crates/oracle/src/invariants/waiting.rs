//! W9, W10: nobody waits for what cannot come, and when all work is done everything ends.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{Catalog, EventPattern, Job, Trigger};
use containerpilot_core::{JobStatus, Phase, State, StopReason};

use super::{Check, Witness};

impl Witness<'_> {
    /// Whether an event can come, if only these jobs can begin anything.
    fn can_come(&self, event: &EventPattern, after: &[JobStatus], begins: &[bool]) -> bool {
        let jobs = || {
            self.plan.jobs.iter().zip(after).zip(begins).map(|((job, status), begins)| (job, status, *begins))
        };
        match &event.source {
            Source::Global => event.code != Code::Startup,
            Source::Signal(_) => true,
            Source::Watch(name) => self.plan.watches.iter().enumerate().any(|(nth, watch)| {
                let advertised =
                    |job: &Job| job.service.as_ref().is_some_and(|service| service.name == *name);
                watch.name == *name
                    && (self.plan.catalog != Catalog::Embedded
                        || !self.watches[nth].is_empty()
                        || jobs().any(|(job, status, begins)| {
                            advertised(job)
                                && (begins && status.state != State::Complete || Self::comes_again(status))
                        }))
            }),
            Source::Job(name) => {
                let named = self.plan.jobs.iter().enumerate().filter(|(_, job)| job.name == *name);
                named.into_iter().any(|(nth, _)| self.can_send(nth, event.code, &after[nth], begins[nth]))
            }
        }
    }

    /// Whether a job can send an event, if it can begin something or not.
    fn can_send(&self, job: usize, code: Code, status: &JobStatus, begins: bool) -> bool {
        let (planned, model) = (&self.plan.jobs[job], &self.jobs[job]);
        let up = status.stop_stage.is_none();
        let active = up || status.run.is_some() || status.state == State::Running;
        let can = match code {
            Code::ExitSuccess | Code::ExitFailed => planned.exec.is_some() && active && begins,
            Code::Healthy | Code::Unhealthy => planned.health.is_some() && active && begins,
            Code::Stopping => up,
            Code::Stopped => true,
            Code::TimerExpired => {
                let ran = model.runs > 0 || model.has_begun;
                up && planned.when.timeout.is_some() && !ran
            }
            _ => false,
        };
        (can && status.state != State::Complete) || Self::comes_again(status)
    }

    /// The jobs that do something, will by themselves, or can be started by those who do (W10).
    fn hopeful(&self, after: &[JobStatus]) -> Vec<bool> {
        let waits = |job: usize| {
            // Who has a time set for its start gives up by itself.
            let timed = self.plan.jobs[job].when.timeout.is_some() && self.jobs[job].runs == 0;
            after[job].state == State::Waiting && after[job].stop_stage.is_none() && !timed
        };
        let mut begins: Vec<bool> = (0..after.len()).map(|job| !waits(job)).collect();
        loop {
            let more = (0..after.len()).find(|job| !begins[*job] && self.can_start(*job, after, &begins));
            match more {
                Some(job) => begins[job] = true,
                None => return begins,
            }
        }
    }

    fn can_start(&self, job: usize, after: &[JobStatus], begins: &[bool]) -> bool {
        let model = &self.jobs[job];
        let can_come = |event: &EventPattern| self.can_come(event, after, begins);
        match &self.plan.jobs[job].when.trigger {
            Trigger::Never => false,
            Trigger::Interval(_) => true,
            _ if self.is_spent(job, after) => false,
            Trigger::Event { event, .. } => can_come(event),
            Trigger::Any { conditions, .. } => conditions.iter().any(can_come),
            Trigger::All { conditions, .. } => {
                let mut missing = conditions.iter().zip(&model.holds).filter(|(_, holds)| !**holds);
                let all_hold = model.holds.iter().all(|holds| *holds);
                let again = |event: &EventPattern| event.code == Code::Healthy && can_come(event);
                if all_hold {
                    conditions.iter().any(again)
                } else {
                    missing.all(|(event, _)| can_come(event))
                }
            }
        }
    }

    /// W10: nobody gives up hope who has reason to hope. That is looked at as it was just before, because giving up may
    /// itself be what others have waited for.
    pub(super) fn check_given_up(&self, after: &[JobStatus]) -> Check {
        let gives_up = |job: usize| {
            let was = &self.between[job];
            after[job].stop_reason == Some(StopReason::Unreachable)
                && was.generation == after[job].generation
                && was.stop_reason.is_none()
        };
        if !(0..after.len()).any(gives_up) {
            return Ok(());
        }
        let hopeful = self.hopeful(&self.between);
        match (0..after.len()).find(|job| gives_up(*job) && hopeful[*job]) {
            Some(job) => self.broken("W10", job, "it gives up hope, and need not"),
            None => Ok(()),
        }
    }

    /// W10: nobody waits in vain.
    pub(super) fn check_hope(&self, after: &[JobStatus], phase: Phase) -> Check {
        if phase != Phase::Running {
            return Ok(());
        }
        // While a reload is waited for nobody knows what may come.
        if self.is_reloading() || !after.iter().any(|status| status.state == State::Waiting) {
            return Ok(());
        }
        match self.hopeful(after).iter().position(|hopeful| !hopeful) {
            Some(job) => self.broken("W10", job, "it waits for what cannot come any more"),
            None => Ok(()),
        }
    }

    /// W10: the supervisor stops by itself when all work is done.
    pub(super) fn check_whole(&self, after: &[JobStatus], phase: Phase) -> Check {
        if phase != Phase::Running || self.is_reloading() {
            return Ok(());
        }
        let working = self.plan.jobs.iter().any(works);
        let done = self.plan.jobs.iter().zip(after).all(|(job, status)| {
            let complete = status.state == State::Complete && !Self::comes_again(status);
            complete || (working && !works(job))
        });
        if done { Err(self.says("W10", "all work is done, and it does not stop")) } else { Ok(()) }
    }
}

/// Whether a job does work of its own (W10).
pub(super) fn works(job: &Job) -> bool {
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
    !job.role.is_secondary() && (patterns.is_empty() || !patterns.iter().all(only_reacts))
}
