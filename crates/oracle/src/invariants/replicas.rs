//! W20: the events of a group of replicas. Some are those of any replica; others come when the last replica has it.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::Job;
use containerpilot_core::state::journal::{Event, Origin};
use containerpilot_core::{JobStatus, Phase, State};

use super::model::RunModel;
use super::oracle::{Check, Oracle};

/// Returns true if a source names a job, or the group that it is a replica of.
pub(super) fn is_named(job: &Job, name: &str) -> bool {
    job.name == name || job.replica.as_ref().is_some_and(|replica| replica.group == name)
}

/// Returns true if all replicas of a group must have the event.
fn is_of_all(code: Code) -> bool {
    matches!(code, Code::Healthy | Code::BecameHealthy | Code::Ready | Code::ExitSuccess | Code::Stopped)
}

impl Oracle<'_> {
    /// Returns true if a source is a group of replicas.
    pub(super) fn is_group(&self, name: &str) -> bool {
        self.plan.replicas.iter().any(|group| group.template.name == name)
    }

    /// Returns true if all replicas of a source must have an event.
    pub(super) fn needs_all(&self, name: &str, code: Code) -> bool {
        is_of_all(code) && self.is_group(name)
    }

    /// Returns true if an event of a replica is that of its group: if it is that of any replica, or of the last one.
    pub(super) fn holds_for_group(&self, source: &Source, event: &Event, after: &[JobStatus]) -> bool {
        let Source::Job(name) = source else { return true };
        if !self.needs_all(name, event.code) {
            return true;
        }
        let is_replica = |origin: Origin| matches!(origin, Origin::Job(job) if is_named(&self.plan.jobs[job.index()], name));
        let mut later = self.events.iter().filter(|other| other.id > event.id);
        let is_last = !later.any(|other| {
            other.code == event.code && other.origin != event.origin && is_replica(other.origin)
        });
        let mut replicas = (0..self.jobs.len()).filter(|job| is_named(&self.plan.jobs[*job], name));
        is_last && replicas.all(|job| self.replica_has(job, event.code, after))
    }

    /// After a reload, an event of a group may hold, because a replica that did not have it is gone. A job that waits for it and
    /// has not run is started.
    pub(super) fn see_smaller_groups(&mut self, after: &[JobStatus]) {
        let plan = self.plan;
        for job in (0..self.jobs.len()).filter(|job| !self.seen[*job].reloaded).collect::<Vec<_>>() {
            let when = &plan.jobs[job].when;
            for (nth, pattern) in when.patterns().iter().enumerate() {
                let Source::Job(name) = &pattern.source else { continue };
                let held = self.jobs[job].holds.get(nth) == Some(&true) || self.jobs[job].triggered.is_some();
                let has =
                    |other: usize| !self.seen[other].reloaded && self.replica_has(other, pattern.code, after);
                let mut replicas = (0..self.jobs.len()).filter(|other| is_named(&plan.jobs[*other], name));
                if held || !self.needs_all(name, pattern.code) || !replicas.all(has) {
                    continue;
                }
                if when.needs_all() {
                    self.jobs[job].holds[nth] = true;
                    if !self.jobs[job].holds.iter().all(|holds| *holds) {
                        continue;
                    }
                }
                self.see_fire(job, self.last_event, after);
                self.see_queued(job, None, pattern.code);
            }
        }
    }

    /// Returns true if a rolling restart has started a job that waited: then it was started by hand. A restart by itself
    /// is counted, and so is the start of a job whose source is back (W18).
    pub(super) fn is_started_by_rolling_restart(&self, job: usize, after: &[JobStatus]) -> bool {
        let (was, model) = (&self.previous[job], &self.jobs[job]);
        let waited = matches!(was.state, State::Waiting | State::Delaying);
        let is_back = model.resumed && model.runs == 0 && self.check_required(job, false, after).is_ok();
        waited
            && !is_back
            && after[job].restarts <= was.restarts
            && self.rolling.iter().any(|(_, jobs)| jobs.iter().any(|one| one.index() == job))
    }

    /// W20: every rolling restart is answered, at the latest when the supervisor exits.
    pub(super) fn check_rolling_restarts(&self, phase: Phase) -> Check {
        if phase == Phase::Exited && !self.rolling.is_empty() {
            return Err(self.violation("X1", "a rolling restart has no answer"));
        }
        Ok(())
    }

    /// Returns true if the event of a replica holds.
    pub(super) fn replica_has(&self, job: usize, code: Code, after: &[JobStatus]) -> bool {
        let (status, model) = (&after[job], &self.jobs[job]);
        match code {
            Code::Healthy | Code::BecameHealthy => status.healthy == Some(true),
            Code::ExitSuccess => model.last_exit == Some(code) && status.run.is_none(),
            Code::Stopped => status.state.has_ended(),
            Code::Ready => model.run.as_ref().is_some_and(RunModel::is_ready),
            _ => false,
        }
    }
}
