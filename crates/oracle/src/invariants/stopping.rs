//! S1–S5: the stop of a job, and the shutdown.

use std::time::Duration;

use containerpilot_core::effect::{DesiredService, Exit};
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::CheckRunId;
use containerpilot_core::input::Input;
use containerpilot_core::plan::{Job, Level, OnCompletion, OnStartLimit, RequiredSource, Role, Trigger};
use containerpilot_core::{Core, JobStatus, Outcome, Phase, State, StopReason, StopStage, Time};

use super::fixed_times::{DEREGISTER_TIMEOUT, KILL_TIMEOUT, MARGIN};
use super::model::{JobModel, RunModel};
use super::oracle::{Check, Oracle};
use super::replicas::is_named;
use super::waiting::{does_work, is_server};

/// The log gets at least this long (S6).
const MIN_LOG: Duration = Duration::from_millis(200);

/// The deadlines of a shutdown (S4).
#[derive(Clone, Copy)]
pub(super) struct ShutdownDeadlines {
    /// Every process is sent its stop signal, except those of hooks.
    pub(super) signal_by: Time,
    /// Every process is sent SIGKILL.
    pub(super) kill_by: Time,
}

impl Oracle<'_> {
    /// S5: the exit code, as far as it is known when the shutdown starts.
    pub(super) fn see_shutdown(&mut self, input: Option<&Input>) {
        let by_signal = input.is_some_and(|input| self.is_stop_signal(input)) && !self.plan.pass_signals;
        if by_signal && (self.exact || self.expected_code.is_none()) {
            self.expected_code = Some(0);
        }
    }

    /// S8: returns true if an input is a signal that requests a shutdown.
    pub(super) fn is_stop_signal(&self, input: &Input) -> bool {
        matches!(input, Input::Signal(signal) if self.stop_on.contains(signal))
    }

    /// A job without a program and without checks completes as soon as it starts, without a run. It does not start during a
    /// shutdown, or after its start timeout.
    pub(super) fn see_empty(&mut self, job: usize) {
        let planned = &self.plan.jobs[job];
        let periodic = matches!(planned.when.trigger, Trigger::Interval { .. }) && self.startup.is_some();
        // W19: its events come before that of the action which starts it.
        let by_action = self.is_started_by_action(job);
        // W20: a reload with fewer replicas may have started it in this part of the step.
        let by_reload =
            self.reloading.changing
                && planned.when.patterns().iter().any(
                    |event| matches!(&event.source, Source::Job(name) if self.needs_all(name, event.code)),
                );
        let is_rolling = self.rolling.iter().any(|(_, jobs)| jobs.iter().any(|one| one.index() == job));
        let by_hand = self.seen[job].by_hand || by_action || is_rolling;
        let begun = periodic || self.jobs[job].fires > 0 || by_hand || by_reload;
        let stopping = self.jobs[job].stopping;
        let in_shutdown =
            self.shutdown.is_some_and(|(_, shutdown)| stopping.is_none_or(|(_, id)| id > shutdown));
        if planned.exec.is_none()
            && planned.health.is_none()
            && begun
            && !in_shutdown
            && !self.jobs[job].gave_up
        {
            self.jobs[job].has_begun = true;
            self.see_work(job);
        }
    }

    /// S5: what the completion of a job means for the exit code.
    pub(super) fn see_complete(&mut self, job: usize, status: &JobStatus) {
        // A job that is stopped by hand or for a reload may start again.
        let was = !self.seen[job].is_new && Self::will_start_again(&self.previous[job]);
        if was || Self::will_start_again(status) {
            return;
        }
        // W19: one that an action has stopped does not end the container.
        if status.stop_reason == Some(StopReason::ByAction) && self.shutdown.is_none() {
            return;
        }
        let planned = &self.plan.jobs[job];
        let model = &self.jobs[job];
        let failure = model.last_failure.filter(|_| !model.was_terminated);
        let working = !self.plan.jobs.iter().any(does_work) || does_work(planned);
        // During the shutdown only hooks can still fail.
        if matches!(planned.role, Role::Coprocess | Role::Sensor(_)) || planned.when.is_manual() {
            // C6, W17: it does not affect the exit code.
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
            Some(code) if model.crash_looped => match planned.start_limit.map(|limit| limit.then) {
                Some(OnStartLimit::Shutdown) => (OnCompletion::Shutdown, code),
                _ => (planned.on_failure, code),
            },
            Some(code) => (planned.on_failure, code),
            None if has_run => (planned.on_success, 0),
            None => (OnCompletion::Continue, 0),
        };
        if at_end == OnCompletion::Shutdown && self.expected_code.is_none() {
            self.expected_code = Some(code);
        }
    }

    /// S4: the deadlines of the shutdown.
    pub(super) fn shutdown_deadlines(&self) -> Option<ShutdownDeadlines> {
        let (start, _) = self.shutdown?;
        let timeout = self.plan.stop_timeout;
        let is_ordered = |job: &Job| {
            let requires_job = job.requires.iter().any(|one| matches!(one.source, RequiredSource::Job(_)));
            job.role == Role::Coprocess || is_hook(job) || requires_job || !job.stop_after.is_empty()
        };
        let has_hooks = self.plan.jobs.iter().any(is_ordered);
        let (signal, kill) =
            if has_hooks { (timeout, timeout * 2) } else { (timeout - timeout / 4, timeout) };
        // S15: hooks have a time of their own.
        let start = start + self.hook_time();
        Some(ShutdownDeadlines { signal_by: start + signal, kill_by: start + kill })
    }

    /// A run of a job has begun.
    pub(super) fn see_work(&mut self, job: usize) {
        let planned = &self.plan.jobs[job];
        let is_work = does_work(planned) || !self.plan.jobs.iter().any(does_work);
        self.has_worked |= is_work && !planned.role.is_secondary();
    }

    /// How long the longest chain of hooks takes.
    pub(super) fn hook_time(&self) -> Duration {
        self.hook_times[self.version]
    }

    pub(super) fn see_exit(&mut self, exit: &Exit, after: &[JobStatus]) -> Check {
        let Some(shutdown) = self.shutdown_deadlines() else {
            return Err(self.violation("S1", "the supervisor exits without a shutdown"));
        };
        let Exit { code, deadlines, entry } = exit;
        let expected = self.expected_code.or(self.first_failure).or(self.first_hook_failure);
        // A container whose work was skipped has failed, unless some of it has run.
        let is_work = |job: &Job| does_work(job) || !self.plan.jobs.iter().any(does_work);
        let is_skipped = |(job, status): (&Job, &JobStatus)| {
            is_work(job)
                && !job.role.is_secondary()
                && matches!(status.state, State::Ended(Outcome::Skipped(_)))
        };
        let never_ran = !self.has_worked && self.plan.jobs.iter().zip(after).any(is_skipped);
        let expected = expected.unwrap_or(u8::from(never_ran));
        if self.exact && expected != *code {
            return Err(self.violation("S5", format!("the exit code is {code} instead of {expected}")));
        }
        let says_code = entry.message.starts_with(&format!("exiting with code {code}: "));
        if !says_code || entry.fields.code != Some(*code) {
            return Err(self.violation("S12", format!("the last entry is `{}`", entry.message)));
        }
        if (entry.level == Level::Error) != (*code != 0 && !self.plan.pass_signals) {
            return Err(self.violation("S12", format!("the last entry has the level {:?}", entry.level)));
        }
        let waited = self.killing.is_some_and(|killing| killing + KILL_TIMEOUT <= self.now);
        let alive = self.jobs.iter().position(|job| job.run.is_some());
        if let Some(job) = alive {
            if !waited {
                return self.job_violation("S4", job, "its process is left behind");
            }
            let killed = self.jobs[job].run.as_ref().is_some_and(|run| run.killed.is_some());
            if !killed {
                return self.job_violation("S4", job, "its process is left behind and was not killed");
            }
        }
        if !self.orphans.is_empty() {
            return Err(self.violation("P4", "orphans are left behind"));
        }
        let ordered = deadlines.deregister <= deadlines.log && deadlines.log <= deadlines.connections;
        let kill_by = self.killing.unwrap_or(shutdown.kill_by);
        if !ordered || self.exact && deadlines.connections > kill_by + MARGIN {
            return Err(self.violation("S4", "the shutdown takes too long"));
        }
        if deadlines.log < self.now + MIN_LOG {
            return Err(self.violation("S6", "the log has no time"));
        }
        Ok(())
    }

    /// S1, S4: the shutdown.
    pub(super) fn check_shutdown(&mut self, input: &Input, phase: Phase, after: &[JobStatus]) -> Check {
        let is_stop = self.is_stop_signal(input) && !self.plan.pass_signals;
        let request = match input {
            Input::Signal(signal) if is_stop => Some(*signal),
            _ => None,
        };
        let first = self.stop_signal;
        if let Some(signal) = request {
            self.stop_signal = self.stop_signal.or(Some((signal, self.now)));
        }
        // One request may arrive as two signals; a shutdown by itself is not a request.
        let counts = first.is_some_and(|(signal, at)| {
            request != Some(signal) || self.now.since(at) >= Duration::from_millis(100)
        });
        let deadlines = self.shutdown_deadlines();
        let hooks_over = deadlines.is_some_and(|deadlines| deadlines.signal_by <= self.now);
        let timeout_passed = deadlines.is_some_and(|deadlines| deadlines.kill_by <= self.now);
        match self.phase_before {
            Phase::Starting | Phase::Running if is_stop && self.shutdown.is_none() => {
                return Err(self.violation("S1", "a stop request does not start a shutdown"));
            }
            Phase::Stopping | Phase::Terminating
                if is_stop && counts && matches!(phase, Phase::Stopping | Phase::Terminating) =>
            {
                return Err(self.violation("S1", "the second stop request does not kill"));
            }
            Phase::Stopping | Phase::Terminating
                if phase == Phase::Killing && !(is_stop && counts) && !timeout_passed =>
            {
                return Err(self.violation("S1", "all jobs are killed without a reason"));
            }
            Phase::Stopping if phase == Phase::Terminating && !hooks_over => {
                return Err(self.violation("S4", "the hooks have less than their time"));
            }
            _ => {}
        }
        if matches!(phase, Phase::Terminating | Phase::Killing) {
            for (job, status) in after.iter().enumerate() {
                let alive = self.jobs[job].run.as_ref();
                // S15: hooks go on, and start, until everything is killed.
                if phase == Phase::Terminating && is_hook(&self.plan.jobs[job]) {
                    continue;
                }
                if !status.state.has_ended() && alive.is_none() {
                    return self.job_violation("S4", job, "it has no process, and is not complete");
                }
                let was_asked =
                    |run: &RunModel| run.stopped.is_some() || run.killed.is_some() || run.outlived;
                if alive.is_some_and(|run| !was_asked(run)) {
                    return self.job_violation("S4", job, "it was not sent its stop signal");
                }
                if phase == Phase::Killing && alive.is_some_and(|run| run.killed.is_none()) {
                    return self.job_violation("S4", job, "it was not killed");
                }
            }
        }
        if let (Some(deadlines), true) = (deadlines, self.exact) {
            if phase == Phase::Stopping && deadlines.signal_by < self.now {
                return Err(self.violation(
                    "S4",
                    "the time of the order has passed, and not every process was asked to stop",
                ));
            }
            if phase == Phase::Terminating && deadlines.kill_by < self.now {
                return Err(self.violation("S4", "the stop timeout has passed, and nothing is killed"));
            }
            if self
                .killing
                .is_some_and(|killing| phase == Phase::Killing && killing + KILL_TIMEOUT < self.now)
            {
                return Err(self.violation("S4", "the supervisor does not exit"));
            }
        }
        let ending = matches!(phase, Phase::Stopping | Phase::Terminating | Phase::Killing);
        let is_left = |job: &usize| {
            let planned = &self.plan.jobs[*job];
            planned.role != Role::Coprocess && !is_hook(planned) && after[*job].stop_stage.is_none()
        };
        if let Some(job) = (0..after.len()).find(is_left).filter(|_| ending) {
            return self.job_violation("S13", job, "it is no hook, and does not stop with the others");
        }
        if ending && after.iter().all(|status| status.state.has_ended()) {
            return Err(self.violation("S4", "all jobs are complete, and the supervisor does not exit"));
        }
        if phase == Phase::Stopping && self.jobs.iter().all(|job| job.run.is_none()) {
            return Err(
                self.violation("S4", "no process is left, and the supervisor waits for the stop timeout")
            );
        }
        Ok(())
    }

    /// The deregistration of a service is confirmed.
    pub(super) fn see_deregistered(&mut self, job: usize) {
        let now = self.now;
        let model = &mut self.jobs[job];
        if model.left && model.free_at.is_none() {
            model.free_at = Some(now);
        }
    }

    /// The jobs that run at the `stopping` of another.
    fn hooks(&self, job: usize) -> impl Iterator<Item = usize> + '_ {
        self.plan
            .jobs
            .iter()
            .enumerate()
            .filter(move |(nth, hook)| {
                let mut patterns = hook.when.patterns().iter();
                *nth != job
                    && patterns.any(|event| {
                        event.code == Code::Stopping
                            && matches!(&event.source, Source::Job(source) if is_named(&self.plan.jobs[job], source))
                    })
            })
            .map(|(nth, _)| nth)
    }

    /// Returns true if a hook of a job waits for that job, directly or through others (S2).
    fn is_in_cycle(&self, from: usize, target: usize, seen: &mut Vec<usize>) -> bool {
        let status = &self.previous[from];
        let waits =
            status.stop_stage == Some(StopStage::Hooks) && status.run.is_none() && !status.state.has_ended();
        if !waits || seen.contains(&from) {
            return false;
        }
        seen.push(from);
        self.hooks(from).any(|hook| hook == target || self.is_in_cycle(hook, target, seen))
    }

    /// S2: a job leaves the catalog when its hooks are done. This is checked in the part of the step in which it leaves:
    /// a hook that starts later need not have been waited for. If the job will start again, a hook is waited for only
    /// until it is idle, because it may never complete; a hook without a program (W11) is always idle.
    pub(super) fn check_leaving(&mut self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let status = &after[job];
        let left = status.stop_stage > Some(StopStage::Hooks) || status.state.has_ended();
        if !left || self.jobs[job].left {
            return Ok(());
        }
        let Some((stopping, _)) = self.jobs[job].stopping else { return Ok(()) };
        let (now, was) = (self.now, &self.previous[job]);
        // D8: in maintenance mode it is not there, also if that began in this part.
        let was_there = was.desired != DesiredService::Absent || self.seen[job].leaves_catalog_now;
        let in_catalog = was_there && !self.maintenance;
        let model = &mut self.jobs[job];
        model.left = true;
        // A registered job waits for the confirmation of its deregistration, or for the timeout.
        model.free_at = if in_catalog { None } else { Some(now) };
        model.deregister_deadline = now + DEREGISTER_TIMEOUT.min(self.plan.stop_timeout / 4);
        let limit = self.jobs[job].hook_limit;
        let late = limit.is_some_and(|limit| stopping + limit <= now) || self.is_late_for_reload(job);
        if late || !matches!(phase, Phase::Running | Phase::Stopping) {
            return Ok(());
        }
        let again = self.phase != Phase::Stopping && Self::will_start_again(status);
        let outstanding = self.hooks(job).find(|hook| {
            is_at_work(&self.previous[*hook], again) && !self.is_in_cycle(*hook, job, &mut Vec::new())
        });
        match outstanding {
            Some(hook) => self.job_violation("S2", job, &format!("it does not wait for {}", self.name(hook))),
            None => Ok(()),
        }
    }

    /// S2: the order of one job's stop.
    pub(super) fn check_stop(&mut self, job: usize, after: &[JobStatus], phase: Phase) -> Check {
        let status = &after[job];
        let Some((stopping, stopping_event)) = self.jobs[job].stopping else { return Ok(()) };
        let planned = &self.plan.jobs[job];
        let left = self.jobs[job].left;
        if !left {
            let again = phase == Phase::Running && Self::will_start_again(status);
            let done = self.hooks(job).all(|hook| !is_at_work(&after[hook], again));
            let overdue = self.jobs[job].hook_limit.is_some_and(|limit| stopping + limit < self.now);
            if done || (overdue && self.exact) {
                return self.job_violation("S2", job, "it waits for hooks that are done or late");
            }
        }
        let Some(run) = &self.jobs[job].run else { return Ok(()) };
        let ran = |run: &RunModel| run.started.is_some_and(|started| started < self.now);
        let busy = |(planned, model): (&Job, &JobModel)| {
            planned.role != Role::Coprocess && model.run.as_ref().is_some_and(ran)
        };
        // In this step and because of the shutdown, not because it was stopped by hand before.
        let starts_to_stop = planned.role == Role::Coprocess
            && phase == Phase::Stopping
            && self.before[job].stop_stage.is_none()
            && self.shutdown.is_some_and(|(_, shutdown)| stopping_event > shutdown);
        // S10: one that stops after the coprocess is in a ring with it, which is broken.
        let is_in_ring = |other: usize| self.may_wait_for(other, job, &mut Vec::new());
        let mut others = self.plan.jobs.iter().zip(&self.jobs).enumerate();
        if starts_to_stop && others.any(|(nth, other)| busy(other) && !is_in_ring(nth)) {
            return self.job_violation("C6", job, "a coprocess is stopped while others still run");
        }
        if !left {
            return Ok(());
        }
        let deregister_deadline = self.jobs[job].deregister_deadline;
        let free_at =
            self.jobs[job].free_at.map_or(deregister_deadline, |free_at| free_at.min(deregister_deadline));
        let drain =
            self.jobs[job].drain.unwrap_or_else(|| planned.stop.drain.longest(self.plan.stop_timeout));
        // S11: the exit of a drain program, or its timeout.
        let drained = self.jobs[job].drain_done.map_or(free_at + drain, |done| done.min(free_at + drain));
        if self.exact && matches!(phase, Phase::Running | Phase::Stopping) {
            let has_signal = run.stopped.is_some() || run.killed.is_some() || run.outlived;
            if !has_signal && drained < self.now {
                return self.job_violation("S2", job, "it has drained, but gets no stop signal");
            }
            if run.stopped == Some(self.now) && !run.outlived && drained > self.now {
                return self.job_violation("S2", job, "it gets its stop signal before it has drained");
            }
        }
        Ok(())
    }

    /// S11: a drain program runs once, after the service has left the catalog and before the stop signal.
    pub(super) fn see_drain(&mut self, job: usize, run: CheckRunId) -> Check {
        let model = &self.jobs[job];
        let signalled = model.run.as_ref().is_none_or(|run| run.stopped.is_some());
        if self.plan.jobs[job].stop.drain.program().is_none() || signalled {
            return self.job_violation("S11", job, "a drain program runs without need");
        }
        if model.drain_run.is_some() || model.drain_done.is_some() {
            return self.job_violation("S11", job, "its drain program runs twice");
        }
        self.jobs[job].drain_run = Some(run);
        Ok(())
    }

    /// S3: every job that waits for the shutdown has run.
    pub(crate) fn check_end(&self, core: &Core) -> Check {
        if core.phase() != Phase::Exited {
            return Ok(());
        }
        let Some((_, shutdown)) = self.shutdown else { return Ok(()) };
        for (job, planned) in self.plan.jobs.iter().enumerate() {
            let Trigger::Event { .. } = &planned.when.trigger else { continue };
            let model = &self.jobs[job];
            let before = model.stopping.is_none_or(|(_, id)| id < shutdown);
            let cut_short = self.killing.is_some();
            // W18: without what it requires it does not run.
            let excused = planned.exec.is_none() || !planned.requires.is_empty();
            // W14: an action that was started by hand, and waits for its back-off, is not triggered any more.
            let excused = excused || (planned.exec.action().is_some() && model.by_hand > 0);
            if !is_hook(planned) || excused || before || cut_short || model.runs > 0 {
                continue;
            }
            let fired = model.first_fire.zip(model.stopping).is_some_and(|(fire, (_, stop))| fire < stop);
            if fired && planned.role == Role::User {
                return self.job_violation("S3", job, "it waits for the shutdown, and did not run");
            }
        }
        Ok(())
    }

    /// When nothing is left to happen, the supervisor has exited, or jobs wait for events from outside.
    pub(crate) fn check_idle(&self, core: &Core) -> Check {
        match core.phase() {
            Phase::Starting => Err(self.violation("E4", "there was no startup")),
            Phase::Stopping | Phase::Terminating | Phase::Killing => {
                Err(self.violation("S4", "the shutdown waits for something that never happens"))
            }
            Phase::Running | Phase::Exited => Ok(()),
        }
    }
}

/// Returns true if a stop event starts a job, also during a shutdown (S3). A server is stopped in order (S13).
pub(super) fn is_hook(job: &Job) -> bool {
    let waits_for = |codes: &[Code]| job.when.patterns().iter().any(|event| codes.contains(&event.code));
    waits_for(&[Code::Shutdown]) || (waits_for(&[Code::Stopping, Code::Stopped]) && !is_server(job))
}

/// Returns true if a hook is waited for: until it is complete, or, if the job will start again, until it is idle.
fn is_at_work(hook: &JobStatus, again: bool) -> bool {
    let idle = hook.run.is_none() && hook.state != State::Delaying && hook.stop_stage.is_none();
    !(hook.state.has_ended() || again && idle)
}
