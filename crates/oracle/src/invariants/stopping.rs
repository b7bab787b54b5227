//! S1–S5: how one job stops, and how everything does.

use std::time::Duration;

use containerpilot_core::effect::DesiredService;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::input::Input;
use containerpilot_core::plan::{Job, OnCompletion, Role, Trigger};
use containerpilot_core::{Core, JobStatus, Phase, State, StopStage};

use super::waiting::works;
use super::{Check, JobModel, LAST_WAIT, MOST_PATIENCE, RunModel, Witness, asks_to_stop};

impl Witness<'_> {
    /// S5: the code that is to come, as far as it is known when the shutdown begins.
    pub(super) fn see_shutdown(&mut self, input: Option<&Input>) {
        let by_signal = input.is_some_and(asks_to_stop) && !self.plan.pass_signals;
        if by_signal && (self.exact || self.expected_code.is_none()) {
            self.expected_code = Some(0);
        }
    }

    /// A job that has nothing to run and nothing to check has ended as soon as it has begun, and no run tells of it.
    pub(super) fn see_empty(&mut self, job: usize) {
        let planned = &self.plan.jobs[job];
        let periodic = matches!(planned.when.trigger, Trigger::Interval(_)) && self.startup.is_some();
        let begun = periodic || self.jobs[job].fires > 0 || self.seen[job].by_hand;
        if planned.exec.is_none() && planned.health.is_none() && begun {
            self.jobs[job].has_begun = true;
        }
    }

    /// A job has completed: what that means for the exit code.
    pub(super) fn see_complete(&mut self, job: usize, status: &JobStatus) {
        // Who is stopped by hand, or for a reload, has not ended for good.
        let was = !self.seen[job].born && Self::comes_again(&self.between[job]);
        if was || Self::comes_again(status) {
            return;
        }
        let planned = &self.plan.jobs[job];
        let model = &self.jobs[job];
        let failure = model.last_failure.filter(|_| !model.was_asked);
        let working = !self.plan.jobs.iter().any(works) || works(planned);
        // When everything is being stopped, work does not fail any more; what runs for the end may.
        if matches!(planned.role, Role::Coprocess | Role::Sensor(_)) {
            // C6: it says nothing about the whole.
        } else if working && self.shutdown.is_none() {
            self.first_failure = self.first_failure.or(failure);
        } else {
            self.first_hook_failure = self.first_hook_failure.or(failure);
        }
        if self.shutdown.is_some() {
            return;
        }
        let has_run = model.runs > 0 || model.has_begun;
        let (at_end, code) = match failure {
            Some(code) => (planned.on_failure, code),
            None if has_run => (planned.on_success, 0),
            None => (OnCompletion::Continue, 0),
        };
        if at_end == OnCompletion::Shutdown && self.expected_code.is_none() {
            self.expected_code = Some(code);
        }
    }

    pub(super) fn see_exit(&mut self, code: u8) -> Check {
        let Some((at, _)) = self.shutdown else {
            return Err(self.says("S1", "it leaves without a shutdown"));
        };
        let expected = self.expected_code.or(self.first_failure).or(self.first_hook_failure).unwrap_or(0);
        if self.exact && expected != code {
            return Err(self.says("S5", format!("it leaves with {code} instead of {expected}")));
        }
        let waited = self.killing.is_some_and(|killing| killing + LAST_WAIT <= self.now);
        let alive = self.jobs.iter().position(|job| job.run.is_some());
        if let Some(job) = alive {
            if !waited {
                return self.broken("S4", job, "it is left behind");
            }
            let killed = self.jobs[job].run.as_ref().is_some_and(|run| run.killed.is_some());
            let started = self.jobs[job].run.as_ref().is_some_and(|run| run.started.is_some());
            if started && !killed {
                return self.broken("S4", job, "it is left behind and was not even killed");
            }
        }
        if !self.remains.is_empty() {
            return Err(self.says("P4", "what is left of a process group is left behind"));
        }
        if self.exact && self.now > at + self.plan.stop_timeout + LAST_WAIT {
            return Err(self.says("S4", "it took too long to leave"));
        }
        Ok(())
    }

    /// The shutdown as a whole.
    pub(super) fn check_shutdown(&mut self, input: &Input, phase: Phase, after: &[JobStatus]) -> Check {
        let asked = asks_to_stop(input) && !self.plan.pass_signals;
        let request = match input {
            Input::Signal(signal) if asked => Some(*signal),
            _ => None,
        };
        let first = self.asked;
        if let Some(signal) = request {
            self.asked = self.asked.or(Some((signal, self.now)));
        }
        // One request may come as two signals; and who stops by itself has not been asked at all.
        let counts = first.is_some_and(|(signal, at)| {
            request != Some(signal) || self.now.since(at) >= Duration::from_millis(100)
        });
        let stop_time = self.shutdown.is_some_and(|(at, _)| at + self.plan.stop_timeout <= self.now);
        match self.phase_before {
            Phase::Starting | Phase::Running if asked && self.shutdown.is_none() => {
                return Err(self.says("S1", "nothing is stopped"));
            }
            Phase::Stopping if asked && counts && phase == Phase::Stopping => {
                return Err(self.says("S1", "the second request does not cut it short"));
            }
            Phase::Stopping if phase == Phase::Killing && !(asked && counts) && !stop_time => {
                return Err(self.says("S1", "everything is killed, and nobody has asked for that"));
            }
            _ => {}
        }
        if phase == Phase::Killing {
            for (job, status) in after.iter().enumerate() {
                let alive = self.jobs[job].run.as_ref();
                if status.state != State::Complete && alive.is_none() {
                    return self.broken("S4", job, "it has no process, and is not complete");
                }
                if alive.is_some_and(|run| run.started.is_some() && run.killed.is_none()) {
                    return self.broken("S4", job, "it was not killed");
                }
            }
        }
        if let (Some((at, _)), true) = (self.shutdown, self.exact) {
            let due = at + self.plan.stop_timeout;
            if phase == Phase::Stopping && due < self.now {
                return Err(self.says("S4", "the stop time has passed, and nothing is killed"));
            }
            if phase == Phase::Killing && due + LAST_WAIT < self.now {
                return Err(self.says("S4", "it does not leave"));
            }
        }
        let ending = matches!(phase, Phase::Stopping | Phase::Killing);
        if ending && after.iter().all(|status| status.state == State::Complete) {
            return Err(self.says("S4", "everything is complete, and it does not leave"));
        }
        if phase == Phase::Stopping && self.jobs.iter().all(|job| job.run.is_none()) {
            return Err(self.says("S4", "no process is left, and it sits the time out"));
        }
        Ok(())
    }

    /// The catalog has let a service go.
    pub(super) fn see_withdrawn(&mut self, job: usize) {
        let now = self.now;
        let model = &mut self.jobs[job];
        if model.left && model.free_at.is_none() {
            model.free_at = Some(now);
        }
    }

    /// The jobs that run at the `stopping` of another.
    fn hooks(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        let name = &self.plan.jobs[job].name;
        self.plan
            .jobs
            .iter()
            .enumerate()
            .filter(move |(nth, hook)| {
                let mut patterns = hook.when.patterns().iter();
                *nth != job
                    && patterns.any(|event| {
                        event.code == Code::Stopping
                            && matches!(&event.source, Source::Job(source) if source == name)
                    })
            })
            .map(|(nth, _)| nth)
    }

    /// Whether a job that waits for hooks is waited for by one of them, directly or by others (S2).
    fn in_a_ring(&self, from: usize, target: usize, seen: &mut Vec<usize>) -> bool {
        let status = &self.between[from];
        let waits = status.stop_stage == Some(StopStage::Hooks)
            && status.run.is_none()
            && status.state != State::Complete;
        if !waits || seen.contains(&from) {
            return false;
        }
        seen.push(from);
        self.hooks(from).any(|hook| hook == target || self.in_a_ring(hook, target, seen))
    }

    /// S2: a job leaves the catalog when its hooks are done. That is looked at in the very part of the step in which it
    /// does: what its hooks begin to do a moment later is no reason to have waited for them. One that will be heard
    /// again is not waited for until it is complete, which it may never be, but until it has done its work; and one
    /// that only checks something (W11) has none to do.
    pub(super) fn check_leaving(&mut self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let status = &after[job];
        let left = status.stop_stage > Some(StopStage::Hooks) || status.state == State::Complete;
        if !left || self.jobs[job].left {
            return Ok(());
        }
        let Some((stopping, _)) = self.jobs[job].stopping else { return Ok(()) };
        let (now, was) = (self.now, &self.between[job]);
        let in_catalog = was.desired != DesiredService::Absent;
        let model = &mut self.jobs[job];
        model.left = true;
        // Who was in the catalog waits for it to let go; an answer, or its time, ends that.
        model.free_at = if in_catalog { None } else { Some(now) };
        model.patience = now + MOST_PATIENCE.min(self.plan.stop_timeout / 4);
        let own = self.plan.jobs[job].stop.hook_timeout;
        let late = own.is_some_and(|timeout| stopping + timeout <= now) || self.is_late_for_reload(job);
        if late || !matches!(phase, Phase::Running | Phase::Stopping) {
            return Ok(());
        }
        let again = self.phase != Phase::Stopping && Self::comes_again(status);
        let outstanding = self.hooks(job).find(|hook| {
            is_at_work(&self.between[*hook], again) && !self.in_a_ring(*hook, job, &mut Vec::new())
        });
        match outstanding {
            Some(hook) => self.broken("S2", job, &format!("it does not wait for {}", self.name(hook))),
            None => Ok(()),
        }
    }

    /// S2: the order, for one job.
    pub(super) fn check_stop(&mut self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let status = &after[job];
        let Some((stopping, stopping_event)) = self.jobs[job].stopping else { return Ok(()) };
        let planned = &self.plan.jobs[job];
        let left = self.jobs[job].left;
        if !left {
            let again = phase == Phase::Running && Self::comes_again(status);
            let done = self.hooks(job).all(|hook| !is_at_work(&after[hook], again));
            let overdue = planned.stop.hook_timeout.is_some_and(|timeout| stopping + timeout < self.now);
            if done || (overdue && self.exact) {
                return self.broken("S2", job, "it waits for hooks, and need not");
            }
        }
        let Some(run) = &self.jobs[job].run else { return Ok(()) };
        let ran = |run: &RunModel| run.started.is_some_and(|started| started < self.now);
        let busy = |(planned, model): (&Job, &JobModel)| {
            planned.role != Role::Coprocess && model.run.as_ref().is_some_and(ran)
        };
        // In this very step and because of the shutdown: one that was stopped by hand before it is none of this.
        let begins = planned.role == Role::Coprocess
            && phase == Phase::Stopping
            && self.before[job].stop_stage.is_none()
            && self.shutdown.is_some_and(|(_, shutdown)| stopping_event > shutdown);
        if begins && self.plan.jobs.iter().zip(&self.jobs).any(busy) {
            return self.broken("C6", job, "a coprocess is stopped while others still run");
        }
        if !left {
            return Ok(());
        }
        let patience = self.jobs[job].patience;
        let free_at = self.jobs[job].free_at.map_or(patience, |free_at| free_at.min(patience));
        let drained = free_at + planned.stop.drain;
        if run.started.is_some() && self.exact && matches!(phase, Phase::Running | Phase::Stopping) {
            if run.stopped.is_none() && run.killed.is_none() && drained < self.now {
                return self.broken("S2", job, "it has drained, and is not asked to end");
            }
            if run.stopped == Some(self.now) && drained > self.now {
                return self.broken("S2", job, "it is asked to end before it has drained");
            }
        }
        Ok(())
    }

    /// S3: what waited for the end has run.
    pub(crate) fn at_the_end(&self, core: &Core) -> Check {
        if core.phase() != Phase::Exited {
            return Ok(());
        }
        let Some((_, shutdown)) = self.shutdown else { return Ok(()) };
        for (job, planned) in self.plan.jobs.iter().enumerate() {
            let Trigger::Event { event, .. } = &planned.when.trigger else { continue };
            let farewell = matches!(event.code, Code::Stopping | Code::Stopped | Code::Shutdown);
            let model = &self.jobs[job];
            let before = model.stopping.is_none_or(|(_, id)| id < shutdown);
            if !farewell || planned.exec.is_none() || before || self.killing.is_some() || model.runs > 0 {
                continue;
            }
            let fired = model.first_fire.zip(model.stopping).is_some_and(|(fire, (_, stop))| fire < stop);
            if fired && planned.role == Role::User {
                return self.broken("S3", job, "it waited for the end, and was not run");
            }
        }
        Ok(())
    }

    /// When nothing is left to happen, the supervisor has left, or somebody waits with good reason.
    pub(crate) fn quiet(&self, core: &Core) -> Check {
        match core.phase() {
            Phase::Starting => Err(self.says("E4", "nothing ever began")),
            Phase::Stopping | Phase::Killing => {
                Err(self.says("S4", "it is stopping, and nothing is left to happen"))
            }
            Phase::Running | Phase::Exited => Ok(()),
        }
    }
}

/// Whether a hook is waited for: until it is complete; or, if the job will be heard again, until it has done its work.
fn is_at_work(hook: &JobStatus, again: bool) -> bool {
    let idle = hook.run.is_none() && hook.state != State::Delaying && hook.stop_stage.is_none();
    hook.state != State::Complete && !(again && idle)
}
