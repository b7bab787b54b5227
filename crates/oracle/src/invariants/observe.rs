//! What the inputs and effects of a step mean for the model.

use containerpilot_core::effect::{Effect, KillReason};
use containerpilot_core::ids::RunId;
use containerpilot_core::input::{Answer, ExitStatus, Input, Remains};
use containerpilot_core::log_entry::LogEvent;
use containerpilot_core::plan::{Level, Signal};
use containerpilot_core::request::Request;
use containerpilot_core::{JobStatus, Phase, StopStage};

use super::fixed_times::EXEC_TIMEOUT;
use super::model::{Pending, RunModel};
use super::oracle::{Check, Oracle};

impl Oracle<'_> {
    pub(super) fn see_input(&mut self, input: &Input) {
        if let Input::Request { id, request: command } = input {
            match command {
                Request::Reload(plan) => self.see_reload(*id, plan),
                Request::Scale(name, count) if self.see_scale(*id, name, *count) => {}
                // It is answered when it is done.
                Request::RollingRestart(jobs) => self.rolling.push((*id, jobs.clone())),
                _ => self.open_requests.push(*id),
            }
            if let Request::Start(job) | Request::Restart(job) = command {
                self.early_starts.extend(Some(job.index()).filter(|job| *job < self.jobs.len()));
            }
        }
        match input {
            Input::Started { run, .. } => {
                let now = self.now;
                if let Some(job) = self.job_of(*run) {
                    self.jobs[job].begun = now;
                    if let Some(run) = &mut self.jobs[job].run {
                        run.started = Some(now);
                    }
                    self.see_started(job);
                }
            }
            Input::StartFailed { run, why } => {
                self.see_end(*run, why.kind.status(), &Remains::Nothing, false);
            }
            Input::Exited { run, status, remains } => self.see_end(*run, *status, remains, true),
            Input::OrphansGone { run } => {
                self.orphans.remove(run);
                self.see_gone(*run);
            }
            Input::OrphansFound { run } if self.job_of(*run).is_none() => {
                let ending = self.phase_before == Phase::Killing;
                let due = if ending { self.now } else { self.now + self.plan.stop_timeout };
                self.orphans.entry(*run).or_insert(due);
            }
            Input::CheckDone { check, result } => self.see_check_done(*check, result),
            Input::Request { request: Request::Maintenance(on), .. }
                if self.phase_before == Phase::Starting =>
            {
                self.maintenance = *on;
            }
            Input::Signal(Signal::USR1)
                if self.phase_before == Phase::Starting
                    && self.plan.legacy_maintenance
                    && !self.plan.pass_signals =>
            {
                self.maintenance = !self.maintenance;
            }
            Input::Watched { watch, answer: Ok(Answer::Instances(instances)) } => {
                self.see_instances(watch.index(), instances);
            }
            // The schedules have no other answers.
            Input::Watched { .. } | Input::Lock { .. } => {}
            Input::Notified { run, notice } => self.see_notice(*run, notice),
            Input::StartPending { run } => self.start_pending = Some(*run),
            Input::StartDelayed { run } => {
                let exec_by = self.now + EXEC_TIMEOUT;
                let job = self.job_of(*run);
                if let Some(run) = job.and_then(|job| self.jobs[job].run.as_mut()) {
                    run.exec_by = exec_by;
                }
            }
            Input::Deregistered { job } => self.see_deregistered(job.index()),
            Input::Clock { unix, asleep: _ } => self.clock = (self.now, *unix),
            Input::Request { .. }
            | Input::Ready
            | Input::OrphansFound { .. }
            | Input::OutOfMemory { .. }
            | Input::CheckStarted { .. }
            | Input::Signal(_)
            | Input::TelemetryListens(_)
            | Input::FileRendered { .. }
            | Input::FileInstalled { .. }
            | Input::Tick => {}
        }
    }

    /// Requests from before the startup take effect with it.
    pub(super) fn see_early_requests(&mut self) {
        for job in std::mem::take(&mut self.early_starts) {
            self.seen[job].by_hand = true;
        }
        self.begin_reload();
    }

    pub(super) fn job_of(&self, run: RunId) -> Option<usize> {
        self.jobs.iter().position(|job| job.run.as_ref().is_some_and(|model| model.run == run))
    }

    pub(super) fn see_end(&mut self, run: RunId, status: ExitStatus, remains: &Remains, started: bool) {
        let job = self.job_of(run);
        // S14: a run that the supervisor has ended is over when nothing is left of it.
        let was_ended = job.is_some_and(|job| {
            let was_asked = |run: &RunModel| run.stopped.or(run.replaced).or(run.killed).is_some();
            self.previous[job].stop_stage > Some(StopStage::Hooks)
                || self.jobs[job].run.as_ref().is_some_and(was_asked)
        });
        let is_outlived = was_ended && *remains != Remains::Nothing;
        if matches!(remains, Remains::Group(_)) && !is_outlived {
            self.orphans.insert(run, self.now + self.plan.stop_timeout);
        }
        let Some(job) = job else { return };
        let now = self.now;
        let model = &mut self.jobs[job];
        let ended = model.run.as_ref();
        let timed_out = ended.is_some_and(|run| run.timed_out);
        // W13: `successCodes` replaces code 0; a program that was not started never succeeds.
        let codes = &self.plan.jobs[job].success_codes;
        let default = [ExitStatus::Code(0)];
        let codes = if codes.is_empty() { &default } else { codes.as_slice() };
        let failed = !started || !codes.contains(&status) || timed_out;
        model.last_failure = if failed { Some(status.code().max(1)) } else { None };
        model.last_code = status.code().max(1);
        model.run_failed = failed || ended.is_some_and(|run| run.replaced.is_some());
        model.ended_at = Some(now);
        model.was_terminated = self.previous[job].stop_stage == Some(StopStage::Terminate);
        self.seen[job].ends_now = true;
        self.seen[job].ends += 1;
        match &mut model.run {
            Some(run) if is_outlived => {
                run.outlived = true;
                // The rest has its time, although nobody has asked the process.
                if run.stopped.or(run.replaced).or(run.killed).is_none() {
                    let own = self.plan.jobs[job].stop.kill_after.unwrap_or(self.plan.stop_timeout);
                    (run.stopped, run.stop_timeout) = (Some(now), own.min(self.plan.stop_timeout));
                }
            }
            _ => self.see_gone(run),
        }
    }

    /// Nothing is left of a run.
    pub(super) fn see_gone(&mut self, run: RunId) {
        let Some(job) = self.job_of(run) else { return };
        let (now, model) = (self.now, &mut self.jobs[job]);
        model.ended_at = Some(now);
        let began = model.run.take().and_then(|run| run.started).unwrap_or(now);
        let seen = &mut self.seen[job];
        if seen.had_run && !seen.ended && seen.fired > 0 {
            // A timer ends the run: the events before it, in the same step, came during the run.
            seen.fired = 0;
            model.pending = Pending::Yes;
        }
        seen.ended = true;
        seen.ended_started = Some(began);
    }

    pub(super) fn see_effect(&mut self, effect: &Effect, phase: Phase, after: &[JobStatus]) -> Check {
        match effect {
            Effect::Spawn { job, run, environment } => {
                let has_event = environment.iter().any(|(name, _)| name == "CONTAINERPILOT_EVENT");
                if !has_event && self.is_started_by_rolling_restart(job.index(), after) {
                    self.seen[job.index()].by_hand = true;
                }
                self.check_required(job.index(), self.seen[job.index()].by_hand, after)?;
                self.see_spawn(job.index(), *run, environment)
            }
            Effect::Kill { run, signal, scope, reason } => {
                if let Some(job) = self.job_of(*run).filter(|_| *reason == KillReason::Stop)
                    && phase == Phase::Stopping
                {
                    self.check_stop_order(job, after)?;
                }
                self.see_scope(*run, *signal, *scope, *reason)?;
                self.see_signal(*run, *signal, *reason, phase)
            }
            Effect::KillOrphans { run } => self.see_kill_orphans(*run, phase),
            Effect::RunCheck { job, check, run, .. } => self.see_check(job.index(), check.index(), *run),
            Effect::RunDrain { job, run, .. } => self.see_drain(job.index(), *run),
            Effect::CancelCheck { run } => self.see_cancel(*run),
            Effect::Advertise { job, desired } => self.see_advertise(job.index(), *desired),
            Effect::Heartbeat { job } => self.see_heartbeat(job.index()),
            Effect::Reply { id, reply: answer } if self.is_reload(*id) => {
                self.see_reload_answer(*id, answer, phase)
            }
            Effect::Reply { id, .. } if self.rolling.iter().any(|(open, _)| open == id) => {
                self.rolling.retain(|(open, _)| open != id);
                Ok(())
            }
            Effect::Reply { id, .. } => match self.open_requests.iter().position(|open| open == id) {
                Some(place) => {
                    self.open_requests.remove(place);
                    Ok(())
                }
                None => Err(self.violation("X1", "an answer without a request")),
            },
            Effect::Log(entry) => {
                if entry.fields.event == LogEvent::Bug {
                    return Err(self.violation("core", entry.message.clone()));
                }
                let job = entry.job.filter(|_| entry.with_output);
                if let Some(seen) = job.and_then(|job| self.seen.get_mut(job.index())) {
                    seen.failed_finally = entry.level == Level::Error;
                }
                Ok(())
            }
            // Seen before the events of the same part.
            Effect::PlanReplaced { .. }
            | Effect::Abandon { .. }
            | Effect::InspectStart { .. }
            | Effect::CancelStart { .. }
            | Effect::ReleaseLock { .. }
            | Effect::NotifyManager(_)
            // These schedules have no files; see `files.rs`.
            | Effect::RenderFile { .. }
            | Effect::TestFile { .. }
            | Effect::InstallFile { .. }
            | Effect::DiscardFile { .. } => Ok(()),
            // The world requests it.
            Effect::Reload => Ok(()),
            Effect::Exit(exit) => self.see_exit(exit, after),
        }
    }
}
