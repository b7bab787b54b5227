//! R5: a reload that changes a job without its process.

use containerpilot_core::effect::DesiredService;
use containerpilot_core::plan::{Job, Plan, Restarts};
use containerpilot_core::{JobStatus, State, StopStage};

use super::model::JobModel;
use super::oracle::{Check, Oracle};
use super::reloading::Registration;
use super::stopping::is_hook;

impl Oracle<'_> {
    /// The new plan is in force. `old` is the one before, and `kept` has the indices of each job that continues in both.
    pub(super) fn adjust_jobs(&mut self, old: &Plan, kept: &[(usize, usize)]) {
        let plan = self.plan;
        for (from, to) in kept.iter().copied() {
            let (old, new) = (&old.jobs[from], &plan.jobs[to]);
            if old == new {
                continue;
            }
            self.seen[to].adjusted = true;
            if self.seen[to].ended {
                // What follows the end of a run was decided before.
                self.seen[to].ended_as = Some(Box::new(old.clone()));
            }
            self.adjust_restarts(to, old);
            let model = &mut self.jobs[to];
            if old.backoff != new.backoff {
                // A delay that has begun stays as it is.
                model.triggered_itself = None;
            }
            if old.stop != new.stop
                && let Some(run) = model.run.as_mut().filter(|run| run.stopped.or(run.replaced).is_some())
            {
                run.stop_adjusted = true;
            }
            if let Some(run) = &mut model.run {
                run.is_hook = run.by_stop_event && is_hook(new);
            }
            if old.health != new.health {
                self.adjust_checks(to);
            }
            if old.health != new.health || old.service != new.service {
                self.reloading.registered_again.push(Registration { job: to, sent: false, repeated: false });
            }
        }
    }

    /// Another number of restarts counts for the runs that follow. A restart whose delay has begun takes place.
    fn adjust_restarts(&mut self, job: usize, old: &Job) {
        let planned = &self.plan.jobs[job];
        if old.restarts == planned.restarts {
            return;
        }
        let model = &mut self.jobs[job];
        let was = &self.previous[job];
        // W18: a restart may also wait for a requirement.
        model.restarts_at_adjustment = was.restarts + u64::from(was.state == State::Delaying || was.deferred);
        // W4: after the last tick there were none, so that a run did not meet them.
        let ticks = model.runs - model.off_schedule;
        if let (Restarts::Limited(most), Some(run)) = (old.restarts, &mut model.run)
            && ticks > most
        {
            run.ticks_from = Some(self.now);
        }
        let Restarts::Limited(most) = planned.restarts else { return };
        // W21: queued events have not had their runs.
        let fires = model.fires.saturating_sub(model.queue.len() as u64);
        let causes = if planned.when.is_periodic() { 1 } else { fires + model.by_hand };
        let allowed = causes.saturating_add(u64::from(model.resumed)).saturating_mul(1 + most);
        // Those of the events so far, the delayed restart, and the restarts of the current event.
        let so_far = (model.runs - model.off_schedule).saturating_add(1 + most);
        model.runs_before_adjustment = so_far.saturating_sub(allowed);
    }

    /// The old checks are cancelled, and the new ones run at once. The job stays healthy, or unhealthy, until they say otherwise.
    fn adjust_checks(&mut self, job: usize) {
        let (now, status) = (self.now, self.previous[job]);
        let old = std::mem::take(&mut self.jobs[job].checks);
        let running = old.iter().filter(|check| !check.canceled).filter_map(|check| check.running);
        self.reloading.canceled.extend(running);
        let mut new = JobModel::new(&self.plan.jobs[job]).checks;
        for (new, old) in new.iter_mut().zip(&old) {
            (new.running, new.canceled, new.began) = (old.running, old.running.is_some(), old.began);
        }
        let model = &mut self.jobs[job];
        model.checks = new;
        model.active = status.state == State::Running
            && status.stop_stage <= Some(StopStage::Hooks)
            && !self.maintenance
            && !model.run.as_ref().is_some_and(|run| run.is_stopping());
        if self.jobs[job].active {
            self.jobs[job].last_heartbeat = now;
            self.begin_checks(job);
        }
    }

    /// After the part of the step in which the plan is replaced: the old checks were cancelled, and changed services were registered
    /// again.
    pub(super) fn check_adjusted(&mut self, after: &[JobStatus]) -> Check {
        if let Some(run) = self.reloading.canceled.pop() {
            return Err(self.violation("R5", format!("the old check {} is not cancelled", run.0)));
        }
        for Registration { job, sent, .. } in std::mem::take(&mut self.reloading.registered_again) {
            if !sent && matches!(after[job].desired, DesiredService::Present(_)) {
                return self.job_violation("R5", job, "its changed service is not registered again");
            }
        }
        Ok(())
    }

    /// A status is sent. Returns true if it may be the same as before, because the service has changed.
    pub(super) fn is_registered_again(&mut self, job: usize, is_same: bool) -> bool {
        let changed = self.reloading.registered_again.iter_mut().find(|changed| changed.job == job);
        let Some(changed) = changed else { return false };
        changed.sent = true;
        !std::mem::replace(&mut changed.repeated, is_same)
    }
}
