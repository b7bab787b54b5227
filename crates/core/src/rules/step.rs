//! A step: one input and everything that follows from it.
//!
//! The input comes first, then the timers that have fired: a supervisor that was delayed must not kill a process whose
//! exit it is about to read. Both may queue events, and the queue is emptied before anything else. When it is empty,
//! unreachable jobs are completed (W10), jobs continue after their stop hooks (S2), a reload replaces the plan (R3),
//! and the supervisor exits when the last job is complete. Starts that wait get their turn last (P14). Nothing waits
//! for anything outside.
//!
//! A step consists of parts, so that the simulator can observe the state between them.

use alloc::vec::Vec;

use crate::effect::Effect;
use crate::health::state::JobHealth;
use crate::ids::JobIx;
use crate::input::Input;
use crate::request::Request;
use crate::rules::signals;
use crate::state::phase::Phase;
use crate::state::start_queue::NewProcess;
use crate::state::timers::{JobTimer, TimerKind};
use crate::supervisor::Core;
use crate::supervisor::plan_state::Parts;
use crate::time::Time;

impl Core {
    /// Handles an input at the time `now`, and appends what is to be done to `effects`.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.begin(now, input, effects);
        while self.advance(effects) {}
        self.name_waiting_jobs(effects);
    }

    /// The first part of a step: the input. [`Core::advance`] must follow until it returns false.
    pub fn begin(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Exited {
            return;
        }
        // Effects of an earlier step that a panic interrupted must not be lost.
        effects.append(&mut self.effects);
        core::mem::swap(&mut self.effects, effects);
        self.now = self.now.max(now);
        self.current_event = None;
        // D14: a supervisor that was suspended stops the jobs of locks that others may have by now, before anything
        // else.
        self.expire_locks();
        if self.phase == Phase::Starting && self.waits_for_startup(&input) {
            self.early_inputs.push_back(input);
        } else {
            self.input(input);
        }
        core::mem::swap(&mut self.effects, effects);
    }

    /// The next part of a step. Returns false if the step is finished.
    pub fn advance(&mut self, effects: &mut Vec<Effect>) -> bool {
        core::mem::swap(&mut self.effects, effects);
        let more = self.phase != Phase::Exited && self.part();
        core::mem::swap(&mut self.effects, effects);
        more
    }

    fn part(&mut self) -> bool {
        if let Some(cause) = self.shutdown_due.take() {
            self.current_event = cause;
            self.shut_down();
            self.current_event = None;
        } else if let Some(job) = self.plan_state.unhealthy.pop_front() {
            self.replace_unhealthy_run(job);
        } else if let Some(job) = self.plan_state.actions.pop_front() {
            self.perform_action(job);
        } else if !self.queue.is_empty() {
            self.dispatch_events();
        } else if self.phase != Phase::Starting
            && let Some(input) = self.early_inputs.pop_front()
        {
            self.current_event = None;
            self.input(input);
        } else if let Some(job) = self.plan_state.start_again.pop_front() {
            self.start_again(job);
        } else if let Some(job) = self.plan_state.recheck.pop_first() {
            self.recheck(job);
        } else if self.on_empty_queue() {
            return true;
        } else if self.phase != Phase::Exited
            && let Some(timer) = self.timers.pop_due(self.now)
        {
            self.current_event = None;
            self.timer(timer);
        } else if let Some(process) = self.starts.next(self.now) {
            self.current_event = None;
            self.begin_turn(process);
        } else {
            self.report_to_manager();
            return false;
        }
        true
    }

    /// Returns true if an input has a meaning only after startup.
    fn waits_for_startup(&self, input: &Input) -> bool {
        match input {
            Input::Watched { .. } | Input::Lock { .. } => true,
            Input::Request { request, .. } => {
                !matches!(request, Request::Maintenance(_) | Request::SetVariables(_))
            }
            Input::Signal(signal) => signals::waits_for_startup(self.plan(), *signal),
            Input::Ready
            | Input::Started { .. }
            | Input::StartFailed { .. }
            | Input::StartPending { .. }
            | Input::StartDelayed { .. }
            | Input::Exited { .. }
            | Input::OrphansFound { .. }
            | Input::OrphansGone { .. }
            | Input::OutOfMemory { .. }
            | Input::CheckStarted { .. }
            | Input::CheckDone { .. }
            | Input::Notified { .. }
            | Input::FileRendered { .. }
            | Input::FileInstalled { .. }
            | Input::Deregistered { .. }
            | Input::TelemetryListens(_)
            | Input::Clock { .. }
            | Input::Tick => false,
        }
    }

    fn input(&mut self, input: Input) {
        match input {
            Input::Ready => self.startup(),
            Input::Started { run, pid } => self.started(run, pid),
            Input::StartFailed { run, why } => self.start_failed(run, &why),
            Input::StartPending { run } => self.start_pending(run),
            Input::StartDelayed { run } => self.start_delayed(run),
            Input::Exited { run, status, remains } => self.exited(run, status, &remains),
            Input::OrphansFound { run } => self.orphans_found(run),
            Input::OrphansGone { run } => self.orphans_gone(run),
            Input::OutOfMemory { processes } => {
                self.oom_kills = Some(self.oom_kills.unwrap_or(0).saturating_add(processes));
            }
            Input::CheckStarted { check } => self.starts.end(NewProcess::Program(check)),
            Input::CheckDone { check, result } => self.program_done(check, result),
            Input::Notified { run, notice } => self.notified(run, notice),
            Input::Watched { watch, answer } => {
                self.tell(|parts, context| parts.watches.answered(watch, answer, context))
            }
            Input::FileRendered { render, result } => {
                self.tell(|Parts { files, watches, .. }, context| {
                    files.rendered(render, result, watches, context);
                });
            }
            Input::FileInstalled { render, result } => {
                self.tell(|Parts { files, watches, .. }, context| {
                    files.installed(render, result, watches, context);
                });
            }
            Input::Lock { lock, report } => {
                self.tell(|parts, context| parts.locks.reported(lock, report, context));
            }
            Input::Signal(signal) => self.signal(signal),
            Input::Deregistered { job } => self.deregistered(job),
            Input::Request { id, request } => self.request(id, request),
            Input::TelemetryListens(result) => self.telemetry_listens(result),
            Input::Clock { unix, asleep } => {
                self.set_asleep(asleep);
                self.set_clock(unix);
            }
            Input::Tick => {}
        }
    }

    fn timer(&mut self, timer: TimerKind) {
        match timer {
            TimerKind::Job(job, timer) => self.job_timer(job, timer),
            TimerKind::File(file, timer) => {
                self.tell(|Parts { files, watches, .. }, context| files.timer(file, timer, watches, context));
            }
            TimerKind::Lock(lock) => self.tell(|parts, context| parts.locks.expire_one(lock, context)),
            TimerKind::Orphans(run) => self.kill_orphans(run),
            TimerKind::ReloadTimeout => self.reload_timeout(),
            TimerKind::RollingRestart => self.rolling_restart_timeout(),
            TimerKind::ShutdownSignals => self.signal_all(),
            TimerKind::ShutdownTimeout => self.shutdown_timeout(),
            TimerKind::KillTimeout => self.exit_supervisor(),
        }
    }

    fn job_timer(&mut self, job: JobIx, timer: JobTimer) {
        match timer {
            JobTimer::StartTimeout => self.start_timeout(job),
            JobTimer::Tick => self.tick(job),
            JobTimer::ExecTimeout => self.exec_timeout(job),
            JobTimer::RunTimeout => self.run_timeout(job),
            JobTimer::Restart => self.restart_now(job),
            JobTimer::SpacedStart => self.start_after_delay(job),
            JobTimer::Hooks => self.hooks_timeout(job),
            JobTimer::Deregister => self.deregister_timeout(job),
            JobTimer::Drain => self.drain_timeout(job),
            JobTimer::Escalate => self.escalate(job),
            JobTimer::Kill => self.kill_after_timeout(job),
            JobTimer::Abandon => self.abandon(job),
            JobTimer::Outlived => self.report_rest(job),
            JobTimer::Check(check) => {
                self.tell_health(job, |health, context| health.check_due(check, context))
            }
            JobTimer::CheckTimeout(check) => {
                self.tell_health(job, |health, context| health.check_timeout(check, context));
            }
            JobTimer::Watchdog => self.tell_health(job, JobHealth::watchdog_missed),
            JobTimer::Heartbeat => self.heartbeat_due(job),
        }
    }

    fn recheck(&mut self, job: JobIx) {
        if self.is_unreachable(job) {
            self.complete_unreachable(job);
        }
        self.continue_after_requirers(job);
        self.continue_after_hooks(job);
        self.recheck_requirements(job);
    }

    /// Continues a reload or a shutdown, and completes unreachable jobs, when nothing is queued. Returns true if
    /// something follows.
    fn on_empty_queue(&mut self) -> bool {
        if self.phase == Phase::Running && self.reload.is_none() && self.continue_rolling_restart() {
            return true;
        }
        if !self.is_before_shutdown() {
            self.release_locks();
        }
        match self.phase {
            Phase::Running if self.reload.is_some() => self.continue_reload(),
            Phase::Running if self.is_work_complete() => self.shut_down_by_itself(),
            Phase::Stopping | Phase::Terminating | Phase::Killing if self.plan_state.incomplete == 0 => {
                self.exit_supervisor();
                false
            }
            Phase::Running if core::mem::take(&mut self.plan_state.reachability_dirty) => {
                let more = self.complete_unreachable_cycles();
                if !more {
                    self.report_deadlock();
                }
                more
            }
            Phase::Stopping | Phase::Terminating => {
                self.stop_coprocesses() || (self.no_stop_continues() && self.break_stop_cycle())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn p1_effects_of_an_interrupted_step_come_with_the_next_step() {
        let mut core = Core::new(Plan::single_program("x".into(), Vec::new()));
        let effect = Effect::Heartbeat { job: JobIx(0) };
        core.effects.push(effect.clone());
        let mut effects = Vec::new();
        core.step(Time::ZERO, Input::Tick, &mut effects);
        assert_eq!(effects, [effect]);
    }
}
