//! Readiness: what a process says about itself (H11, H12).

use alloc::format;

use crate::event::Code;
use crate::ids::{CheckIx, JobIx, RunId};
use crate::notice::Notice;
use crate::plan::{Check, Level, Probe};
use crate::state::job::State;
use crate::state::journal::Origin;
use crate::state::run::{Readiness, Run};
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// A process reported something about itself. What it says after `STOPPING=1` changes only its status: it has no
    /// way back.
    pub(crate) fn notified(&mut self, run: RunId, notice: Notice) {
        let job = self.plan_state.runs.get(&run).copied();
        let Some(job) = job.filter(|job| self.planned(*job).ready.is_some()) else { return };
        let Some(state) = self.job_mut(job).run_mut() else { return };
        let readiness = state.readiness();
        let next = match (notice, readiness) {
            (Notice::Status(text), _) => {
                state.notified_mut().status = (!text.is_empty()).then_some(text);
                return;
            }
            (_, Readiness::Stopping) => return,
            (Notice::Ready, Readiness::Ready) => return,
            (Notice::Ready, _) => Readiness::Ready,
            (Notice::Stopping, _) => Readiness::Stopping,
            // One that was never ready is still starting.
            (Notice::Reloading, Readiness::Ready) => Readiness::Reloading,
            (Notice::Reloading, _) => return,
            (Notice::Watchdog, _) => return self.watchdog_received(job),
        };
        state.notified_mut().readiness = next;
        // E3: nothing follows from a process before its start. `Started` catches up.
        if self.job(job).state() != State::Running {
            return;
        }
        match next {
            Readiness::Ready => self.became_ready(job, readiness),
            Readiness::Stopping => self.stopping_by_itself(job),
            Readiness::Starting | Readiness::Reloading => {}
        }
    }

    /// The program of a run was executed. What its process said before counts now.
    pub(crate) fn announce_early_readiness(&mut self, job: JobIx) {
        if self.job(job).run().is_some_and(|run| run.readiness().is_ready()) {
            self.announce_readiness(job);
        }
    }

    fn announce_readiness(&mut self, job: JobIx) {
        let now = self.now;
        if !self.job_mut(job).run_mut().is_some_and(|run| run.notified_mut().may_announce(now)) {
            return;
        }
        self.log(Level::Info, Some(job), Code::Ready, format_args!("ready"));
        self.send(Origin::Job(job), Code::Ready);
    }

    fn became_ready(&mut self, job: JobIx, before: Readiness) {
        self.announce_readiness(job);
        // While it reloads, it stays healthy, and its watchdog goes on.
        if before == Readiness::Starting && self.checks_are_active(job) {
            if let Some(check) = self.ready_check(job) {
                self.run_check(job, check);
            }
            self.set_watchdog(job);
        }
    }

    /// The process stops by itself: as after its exit, its health is unknown (H7).
    fn stopping_by_itself(&mut self, job: JobIx) {
        if !self.job(job).is_past_hooks() {
            self.end_checks(job);
        }
    }

    /// Returns true if the process has said that it stops. It is not checked any more.
    pub(crate) fn stops_by_itself(&self, job: JobIx) -> bool {
        self.job(job).run().is_some_and(|run| run.readiness() == Readiness::Stopping)
    }

    /// Whether the process of a job is ready, as it says itself.
    pub(crate) fn readiness(&self, job: JobIx) -> Option<Readiness> {
        let run = self.job(job).run().filter(|_| self.planned(job).ready.is_some());
        run.map(Run::readiness)
    }

    /// Returns true if the check for readiness passes: the process is ready, and has not missed its watchdog.
    pub(crate) fn is_ready(&self, job: JobIx, check: CheckIx) -> bool {
        let state = self.job(job);
        let health = state.health.as_ref().and_then(|health| health.checks.get(check.index()));
        let is_ready = state.run().is_some_and(|run| run.readiness().is_ready());
        is_ready && health.is_some_and(|check| check.failures == 0)
    }

    /// The check that passes while the process is ready.
    fn ready_check(&self, job: JobIx) -> Option<CheckIx> {
        let checks = &self.planned(job).health.as_ref()?.checks;
        let is_ready = |check: &Check| check.probe == Probe::Ready;
        checks.iter().position(is_ready).map(CheckIx::at)
    }

    /// H12: starts the time for the next `WATCHDOG=1`, if the process is ready and checked.
    pub(crate) fn set_watchdog(&mut self, job: JobIx) {
        let Some(time) = self.planned(job).ready.as_ref().and_then(|ready| ready.watchdog()) else { return };
        let is_ready = self.job(job).run().is_some_and(|run| run.readiness().is_ready());
        if !is_ready || !self.checks_are_active(job) {
            return;
        }
        let timer = self.set_timer(job, time, JobTimer::Watchdog);
        let (state, timers) = self.job_and_timers(job);
        if let Some(health) = &mut state.health {
            timers.cancel(&mut health.watchdog);
            health.watchdog = Some(timer);
        }
    }

    /// `WATCHDOG=1`: the process is alive. It passes the check again if it had failed.
    fn watchdog_received(&mut self, job: JobIx) {
        self.set_watchdog(job);
        let Some(check) = self.ready_check(job).filter(|_| self.checks_are_active(job)) else { return };
        let Some(state) = self.check_mut(job, check) else { return };
        if state.failures > 0 || state.passes == Some(false) {
            state.failures = 0;
            self.run_check(job, check);
        }
    }

    /// H12: no `WATCHDOG=1` came in time, which is a failed check.
    pub(crate) fn watchdog_missed(&mut self, job: JobIx) {
        if let Some(health) = self.health_mut(job) {
            health.watchdog = None;
        }
        let time = self.planned(job).ready.as_ref().and_then(|ready| ready.watchdog());
        let (Some(time), Some(check)) = (time, self.ready_check(job)) else { return };
        // Further failures are counted at the same pace.
        self.set_watchdog(job);
        let now = self.now;
        if let Some(state) = self.check_mut(job, check) {
            state.started_at = now;
        }
        self.check_failed(job, check, &format!("no WATCHDOG=1 within {}", fmt_duration(time)), false);
    }
}
