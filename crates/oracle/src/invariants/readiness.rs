//! H11, H12: readiness. `ready` and the health of a job follow from the notices of its process.

use containerpilot_core::ids::RunId;
use containerpilot_core::plan::Probe;
use containerpilot_core::{JobStatus, Notice, Phase, Readiness, State, StopStage, Time};

use super::model::RunModel;
use super::oracle::{Check, Oracle};

impl RunModel {
    fn has_sent(&self, notice: &Notice) -> bool {
        self.notices.iter().any(|(_, sent)| sent == notice)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.started.is_some() && !self.outlived && self.has_sent(&Notice::Ready) && !self.is_stopping()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.has_sent(&Notice::Stopping)
    }

    /// When the time for its next `WATCHDOG=1` began.
    pub(super) fn alive(&self) -> Option<Time> {
        let at = |notice| self.notices.iter().find(|(_, sent)| *sent == notice).map(|(at, _)| *at);
        at(Notice::Ready).max(at(Notice::Watchdog))
    }

    /// How many `ready` events its notices cause: one for each `READY=1`, unless the one before still holds.
    fn ready_events(&self) -> usize {
        let notices = self.notices.iter().map(|(_, notice)| notice);
        let mut notices: Vec<_> =
            notices.filter(|it| matches!(it, Notice::Ready | Notice::Reloading)).collect();
        notices.dedup();
        notices.into_iter().filter(|notice| **notice == Notice::Ready).count()
    }
}

impl Oracle<'_> {
    pub(super) fn see_notice(&mut self, run: RunId, notice: &Notice) {
        let now = self.now;
        let Some(job) = self.job_of(run).filter(|job| self.plan.jobs[*job].ready.is_some()) else { return };
        // S14: what is left of a run does not speak for its job.
        let Some(run) = self.jobs[job].run.as_mut().filter(|run| !run.outlived && !run.is_stopping()) else {
            return;
        };
        if *notice == Notice::Watchdog {
            // Only the last one counts.
            run.notices.retain(|(_, sent)| sent != notice);
        }
        run.notices.push((now, notice.clone()));
        if *notice == Notice::Stopping && self.previous[job].stop_stage <= Some(StopStage::Hooks) {
            // It is not checked any more.
            self.jobs[job].active = false;
        }
    }

    /// A process has executed its program. What it has said before causes one `ready`, if it is ready.
    pub(super) fn see_started(&mut self, job: usize) {
        if let Some(run) = &mut self.jobs[job].run {
            run.ready_sent = run.ready_events().saturating_sub(usize::from(run.is_ready()));
        }
    }

    /// The health of a job with `ready`. Its events follow from its health as those of any job do.
    pub(super) fn check_readiness(&mut self, job: usize, status: &JobStatus, phase: Phase) -> Check {
        let planned = &self.plan.jobs[job];
        let (Some(ready), Some(health)) = (&planned.ready, &planned.health) else { return Ok(()) };
        let model = &self.jobs[job];
        let run = model.run.as_ref().filter(|run| run.started.is_some());
        let (sent, caused) = run.map(|run| (run.ready_sent, run.ready_events())).unwrap_or_default();
        if sent != caused {
            let what = format!("`ready` is sent {sent} times instead of {caused}");
            return self.job_violation("H11", job, &what);
        }
        let is_ready = run.is_some_and(RunModel::is_ready);
        if run.is_some() && is_ready != status.readiness.is_some_and(Readiness::is_ready) {
            return self.job_violation("H11", job, "its readiness does not follow from its notices");
        }
        // The health of a job that has left the catalog counts until its exit (H7).
        let checked = status.state == State::Running && status.stop_stage <= Some(StopStage::Hooks);
        if status.healthy == Some(true) && checked && !is_ready {
            return self.job_violation("H11", job, "it is healthy, and has not said that it is ready");
        }
        let Some(at) = health.checks.iter().position(|check| check.probe == Probe::Ready) else {
            return Ok(());
        };
        let check = &health.checks[at];
        let alive = run.and_then(RunModel::alive).unwrap_or_default().max(model.epoch);
        let missed = ready.watchdog().map(|time| alive + time * check.failures);
        let in_start_period = self.now.since(model.begun)
            < check.start_period + ready.watchdog().unwrap_or_default() * check.failures;
        let is_late = missed.is_some_and(|at| at < self.now) && !in_start_period;
        if self.exact && checked && status.healthy == Some(true) && is_late {
            return self.job_violation("H12", job, "it is healthy, and its watchdog was missed");
        }
        let in_time = ready.watchdog().is_none_or(|time| self.now < alive + time);
        let others = model.checks.iter().zip(&health.checks).filter(|(_, check)| check.probe != Probe::Ready);
        let others_pass = others.into_iter().all(|(check, _)| check.passes);
        let passes = model.active && is_ready && in_time && others_pass && phase != Phase::Exited;
        if self.exact && checked && passes && status.healthy != Some(true) {
            return self.job_violation("H11", job, "it is ready and passes its checks, and is not healthy");
        }
        self.jobs[job].health_state = status.healthy;
        Ok(())
    }

    pub(super) fn see_ready(&mut self, job: usize) -> Check {
        match self.jobs[job].run.as_mut().filter(|run| run.is_ready()) {
            Some(run) => run.ready_sent += 1,
            None => return self.job_violation("H11", job, "it sends `ready`, and is not"),
        }
        Ok(())
    }
}
