//! A reload that changes a job without its process (R5).
//!
//! Most of a definition is read when it is needed: the new one applies from the next restart, stop or exit on. Only
//! checks, heartbeats, ticks and the registration in the catalog are going on, and must be changed.

use crate::effect::{DesiredService, Effect};
use crate::ids::JobIx;
use crate::plan::{Job, Status};
use crate::state::job::State;
use crate::supervisor::Core;
use crate::supervisor::plan_state::PlanState;

impl Core {
    /// Applies the new definition of a job that was `old` before. The current plan is the new one.
    pub(crate) fn adjust(&mut self, job: JobIx, old: &Job) {
        let new = self.planned(job);
        let (health, service) = (old.health != new.health, old.service != new.service);
        if health {
            self.replace_checks(job);
        }
        let new = self.planned(job);
        if (old.restarts, old.restart_on) != (new.restarts, new.restart_on)
            && let Some(run) = self.job_mut(job).run_mut()
        {
            // H8: one that was unhealthy and had no restarts left may have some now.
            run.replaced &= run.killed || run.kill_timer.is_some();
        }
        if old.restarts != self.planned(job).restarts {
            self.adjust_ticks(job);
        }
        self.adjust_run_timeout(job);
        let desired = self.job(job).desired;
        match desired {
            DesiredService::Present(_) if health || service => {
                self.effects.push(Effect::Advertise { job, desired });
            }
            DesiredService::Absent if service => self.advertise_new_initial_status(job),
            DesiredService::Present(_) | DesiredService::Absent => {}
        }
    }

    /// Another number of ticks: the next one follows, or the last one was the last.
    fn adjust_ticks(&mut self, job: JobIx) {
        let state = self.job(job);
        if !self.planned(job).when.is_periodic() || !state.is_up() || !state.was_started() {
            return;
        }
        let (has_timer, waits) = (state.ticks.timer.is_some(), state.state() == State::Waiting);
        if self.has_restarts_left(job) {
            if !has_timer {
                self.resume_ticks(job);
            }
            return;
        }
        let now = self.now;
        let (state, timers) = self.job_and_timers(job);
        timers.cancel(&mut state.ticks.timer);
        if waits {
            // It is complete, as soon as the reload is done.
            self.set_tick_timer(job, now);
        }
    }

    /// D4: a service that has got an initial status is registered with it, or as critical if it is unhealthy, unless
    /// its job stops.
    fn advertise_new_initial_status(&mut self, job: JobIx) {
        let (state, service) = (self.job(job), self.planned(job).service.as_ref());
        let has_one = service.is_some_and(|service| service.initial_status.is_some());
        if !has_one || state.is_past_hooks() || state.has_ended() {
            return;
        }
        match self.is_healthy(job) {
            None => self.advertise_initial_status(job),
            Some(false) => self.advertise(job, DesiredService::Present(Status::Critical)),
            Some(true) => {}
        }
    }

    /// Cancels the old checks and runs the new ones. The job stays healthy, or unhealthy, until they say otherwise.
    fn replace_checks(&mut self, job: JobIx) {
        self.stop_checks(job);
        let PlanState { plan, health, .. } = &mut self.plan_state;
        health.replace_checks(job, &plan.jobs[job.index()]);
        if self.job(job).state() == State::Running {
            self.begin_checks(job);
        }
        self.tell_health(job, |health, context| {
            if health.active && health.healthy == Some(true) {
                health.set_heartbeat(context);
            }
        });
    }
}
