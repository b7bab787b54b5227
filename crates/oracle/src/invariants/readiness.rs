//! H11, H12: readiness. A job with `ready` is healthy only while its process says that it is ready.

use containerpilot_core::event::Code;
use containerpilot_core::ids::RunId;
use containerpilot_core::plan::Probe;
use containerpilot_core::{JobStatus, Notice, Phase, State, StopStage, Time};

use super::model::Said;
use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    pub(super) fn see_notice(&mut self, run: RunId, notice: &Notice) {
        let now = self.now;
        let Some(job) = self.job_of(run).filter(|job| self.plan.jobs[*job].ready.is_some()) else { return };
        // S14: what is left of a run does not speak for its job.
        let Some(run) = self.jobs[job].run.as_mut().filter(|run| !run.outlived) else { return };
        let (said, runs) = (&mut run.said, run.started.is_some());
        match notice {
            _ if said.stopping => {}
            Notice::Ready if !said.ready || said.reloading => {
                self.seen[job].expected_ready += u32::from(runs);
                *said = Said {
                    ready: true,
                    reloading: false,
                    alive: if said.ready { said.alive } else { now },
                    ..*said
                };
            }
            Notice::Reloading => said.reloading |= said.ready,
            Notice::Stopping => {
                said.stopping = true;
                if self.previous[job].stop_stage <= Some(StopStage::Hooks) {
                    // It is not checked any more.
                    self.jobs[job].active = false;
                }
            }
            Notice::Watchdog => said.alive = now,
            Notice::Ready | Notice::Status(_) => {}
        }
    }

    /// A process has executed its program: what it has said before counts.
    pub(super) fn see_started(&mut self, job: usize) {
        let said = self.jobs[job].run.as_ref().map(|run| run.said).unwrap_or_default();
        self.seen[job].expected_ready += u32::from(said.ready && !said.stopping);
    }

    /// The health of a job with `ready`. Its events follow from its health as those of any job do.
    pub(super) fn check_readiness(&mut self, job: usize, status: &JobStatus, phase: Phase) -> Check {
        let planned = &self.plan.jobs[job];
        let (Some(ready), Some(health)) = (&planned.ready, &planned.health) else { return Ok(()) };
        let (model, seen) = (&self.jobs[job], &self.seen[job]);
        if self.exact && phase != Phase::Exited && seen.ready != seen.expected_ready && !seen.ended {
            let what = format!("`ready` is sent {} times instead of {}", seen.ready, seen.expected_ready);
            return self.job_violation("H11", job, &what);
        }
        let said = model.run.as_ref().map(|run| run.said).unwrap_or_default();
        // The health of a job that has left the catalog counts until its exit (H7).
        let checked = status.state == State::Running && status.stop_stage <= Some(StopStage::Hooks);
        if status.healthy == Some(true) && checked && (!said.ready || said.stopping) {
            return self.job_violation("H11", job, "it is healthy, and has not said that it is ready");
        }
        let Some(at) = health.checks.iter().position(|check| check.probe == Probe::Ready) else {
            return Ok(());
        };
        let check = &health.checks[at];
        let alive: Time = said.alive.max(model.epoch);
        let missed = ready.watchdog().map(|time| alive + time * check.failures);
        let in_start_period = self.now.since(model.begun)
            < check.start_period + ready.watchdog().unwrap_or_default() * check.failures;
        if self.exact
            && checked
            && status.healthy == Some(true)
            && !in_start_period
            && missed.is_some_and(|at| at < self.now)
        {
            return self.job_violation("H12", job, "it is healthy, and its watchdog was missed");
        }
        let in_time = ready.watchdog().is_none_or(|time| self.now < alive + time);
        let others = model.checks.iter().zip(&health.checks).filter(|(_, check)| check.probe != Probe::Ready);
        let others_pass = others.into_iter().all(|(check, _)| check.passes);
        if self.exact
            && checked
            && model.active
            && said.ready
            && !said.stopping
            && in_time
            && others_pass
            && status.healthy != Some(true)
            && phase != Phase::Exited
        {
            return self.job_violation("H11", job, "it is ready and passes its checks, and is not healthy");
        }
        let healthy = status.healthy;
        self.jobs[job].health_state = healthy;
        Ok(())
    }

    pub(super) fn see_ready(&mut self, job: usize) -> Check {
        self.seen[job].ready += 1;
        if self.plan.jobs[job].ready.is_none() {
            return self.job_violation("H11", job, &format!("it sends `{}` without `ready`", Code::Ready));
        }
        Ok(())
    }
}
