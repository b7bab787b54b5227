//! How one job stops, stage by stage (S2, W9).

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{DesiredService, Effect, KillReason};
use crate::event::Code;
use crate::ids::{CheckRunId, JobIx};
use crate::input::{CheckError, StartErrorKind};
use crate::log_entry::{Fields, LogEvent};
use crate::plan::{Level, Signal};
use crate::state::job::{Activity, Stage, State, StopReason, StopStage, Transition};
use crate::state::journal::Origin;
use crate::state::start_queue::NewProcess;
use crate::state::timers::JobTimer;
use crate::supervisor::Core;
use crate::time::fmt_duration;

impl Core {
    /// Starts to stop a job: sends `stopping` and waits for its stop hooks.
    pub(crate) fn begin_stop(&mut self, job: JobIx, reason: StopReason) {
        self.begin_stop_then(job, reason, false);
    }

    /// Like [`Core::begin_stop`]. With `then_start`, a new generation starts when the job is complete.
    pub(crate) fn begin_stop_then(&mut self, job: JobIx, reason: StopReason, then_start: bool) {
        if !self.job(job).is_up() {
            return;
        }
        self.enter_stop(job, reason, then_start);
        self.enqueue_recheck(job);
        self.continue_after_requirers(job);
    }

    /// S10: moves on if a job waits for no other job to end before it stops.
    pub(crate) fn continue_after_requirers(&mut self, job: JobIx) {
        if !self.job(job).is_stopping_in(StopStage::Requirers) || self.waits_for_requirers(job) {
            return;
        }
        self.begin_hooks(job);
        self.enqueue_dependents(job);
        if self.plan_state.graph.hooks(job).next().is_none() {
            return self.deregister(job);
        }
        if let Some(limit) = self.hooks_limit(job) {
            self.set_stage_timer(job, limit, JobTimer::Hooks);
        }
        self.enqueue_recheck(job);
    }

    /// S2: how long a job waits for its hooks. Without a limit, their own times bound it (S15). One whose source is
    /// gone has to stop soon: another supervisor may get its lock (D14).
    fn hooks_limit(&self, job: JobIx) -> Option<Duration> {
        let is_urgent = self.job(job).stop_reason() == Some(StopReason::SourceGone);
        let urgent = is_urgent.then_some(self.plan().stop_timeout);
        self.planned(job).stop.hook_timeout.or(urgent)
    }

    /// The job takes no more triggers.
    fn enter_stop(&mut self, job: JobIx, reason: StopReason, then_start: bool) {
        let (state, timers) = self.job_and_timers(job);
        timers.cancel(&mut state.start_timeout);
        timers.cancel(&mut state.ticks.timer);
        state.pending.clear();
        (state.deferred, state.ticks.pending) = (None, false);
        if state.state() == State::Delaying {
            self.change(job, Transition::To(Activity::Waiting));
        }
        self.leave_queue(job);
        self.change(job, Transition::Stop { reason, then_start });
        let by = self.acting.map(Origin::Job);
        if let Some(stop) = self.job_mut(job).stop_mut() {
            stop.by = by;
        }
    }

    /// Sends `stopping`. The stop hooks of the job run now.
    fn begin_hooks(&mut self, job: JobIx) {
        self.change_stage(job, Stage::Hooks);
        self.send(Origin::Job(job), Code::Stopping);
    }

    /// Moves on if a job waits for stop hooks that are done. Only called when no event is queued.
    pub(crate) fn continue_after_hooks(&mut self, job: JobIx) {
        if self.job(job).is_stopping_in(StopStage::Hooks) && self.outstanding_hooks(job).is_empty() {
            self.deregister(job);
        }
    }

    /// The stop hooks that a job waits for.
    pub(crate) fn outstanding_hooks(&self, job: JobIx) -> Vec<JobIx> {
        let hooks = self.plan_state.graph.hooks(job);
        let mut hooks: Vec<JobIx> = hooks.filter(|hook| self.is_outstanding(*hook, job)).collect();
        // One that waits for a replica and for its group is one hook.
        hooks.sort_unstable();
        hooks.dedup();
        hooks
    }

    /// Returns true if `job` must wait for `hook` before it stops. A hook that (transitively) waits for `job` does not
    /// count: waiting for it would deadlock.
    fn is_outstanding(&self, hook: JobIx, job: JobIx) -> bool {
        let state = self.job(hook);
        // If `job` may start again, its hooks stay for the next stop, so they are done as soon as they are idle.
        let busy =
            state.has_process() || matches!(state.state(), State::Delaying | State::Queued) || !state.is_up();
        let done = state.has_ended() || (self.may_start_again(job) && !busy);
        hook != job && !done && !self.waits_for_stop_of(hook, job)
    }

    /// Returns true if `from` has no process and waits, as a hook or as a hook of a hook, for `target` to stop.
    fn waits_for_stop_of(&self, from: JobIx, target: JobIx) -> bool {
        let mut seen = vec![false; self.plan_state.jobs.len()];
        let mut open = vec![from];
        while let Some(job) = open.pop() {
            if job == target {
                return true;
            }
            let state = self.job(job);
            let waits = state.is_stopping_in(StopStage::Hooks) && !state.has_process();
            match seen.get_mut(job.index()) {
                Some(seen) if waits && !*seen => *seen = true,
                _ => continue,
            }
            open.extend(self.plan_state.graph.hooks(job));
        }
        false
    }

    /// The longest wait for stop hooks has passed.
    pub(crate) fn hooks_timeout(&mut self, job: JobIx) {
        if self.job(job).stop_stage() == Some(StopStage::Hooks) {
            let timeout = self.hooks_limit(job).unwrap_or_default();
            let waited = fmt_duration(timeout);
            let message = format_args!("stop hooks not complete after {waited}, stopping anyway");
            let fields = LogEvent::Timeout.fields().duration(timeout).cause("stop hooks");
            self.log(Level::Warn, Some(job), fields, message);
            self.deregister(job);
        }
    }

    /// The stop hooks are done: the service leaves the catalog. The process keeps running until that is confirmed, so
    /// that clients do not connect to a process that is shutting down.
    fn deregister(&mut self, job: JobIx) {
        self.stop_checks(job);
        let registered = self.job(job).desired != DesiredService::Absent;
        self.advertise(job, DesiredService::Absent);
        if !self.job(job).has_process() {
            return self.finish(job);
        }
        if !registered {
            return self.drain(job);
        }
        self.change_stage(job, Stage::Deregister);
        self.set_stage_timer(job, self.plan().deregister_timeout(), JobTimer::Deregister);
    }

    /// The catalog has confirmed that a job's service is deregistered.
    pub(crate) fn deregistered(&mut self, job: JobIx) {
        let state = self.plan_state.jobs.get(job.index());
        if state.is_some_and(|state| state.is_stopping_in(StopStage::Deregister)) {
            self.drain(job);
        }
    }

    /// The catalog has not confirmed the deregistration in time.
    pub(crate) fn deregister_timeout(&mut self, job: JobIx) {
        if self.job(job).is_stopping_in(StopStage::Deregister) {
            let timeout = self.plan().deregister_timeout();
            let waited = fmt_duration(timeout);
            let message = format_args!("deregistration not confirmed after {waited}, stopping anyway");
            let fields = LogEvent::Timeout.fields().duration(timeout).cause("deregistration");
            self.log(Level::Warn, Some(job), fields, message);
            self.drain(job);
        }
    }

    fn drain(&mut self, job: JobIx) {
        let drain = &self.planned(job).stop.drain;
        let (longest, has_program) = (drain.longest(self.plan().stop_timeout), drain.program().is_some());
        if longest.is_zero() {
            return self.terminate(job);
        }
        let (fields, longest_text) = (LogEvent::Draining.fields().duration(longest), fmt_duration(longest));
        if has_program {
            let run = self.last_ids.new_program();
            self.change_stage(job, Stage::Drain(Some(run)));
            let message = format_args!("running its drain program, for at most {longest_text}");
            self.log(Level::Info, Some(job), fields, message);
            if self.starts.request(NewProcess::Program(run), self.now) {
                self.run_drain(job, run);
            }
        } else {
            self.change_stage(job, Stage::Drain(None));
            self.log(Level::Info, Some(job), fields, format_args!("draining for {longest_text}"));
        }
        self.set_stage_timer(job, longest, JobTimer::Drain);
    }

    /// S11: it is the turn of a drain program.
    pub(crate) fn run_drain(&mut self, job: JobIx, run: CheckRunId) {
        let environment = self.check_environment(job);
        self.effects.push(Effect::RunDrain { job, run, environment });
    }

    /// The drain time has passed. A program that still runs is killed (S11).
    pub(crate) fn drain_timeout(&mut self, job: JobIx) {
        if self.job(job).drain_run().is_some() {
            let timeout = self.planned(job).stop.drain.longest(self.plan().stop_timeout);
            let message = format_args!("drain program timeout after {}, stopping", fmt_duration(timeout));
            let fields = LogEvent::Timeout.fields().duration(timeout).cause("drain program");
            self.log(Level::Warn, Some(job), fields, message);
        }
        self.terminate(job);
    }

    /// The job whose drain program has this run.
    pub(crate) fn job_of_drain(&self, run: CheckRunId) -> Option<JobIx> {
        self.all_jobs().find(|job| self.job(*job).drain_run() == Some(run))
    }

    /// S11: a drain program has exited, or could not be started. Returns false if the run is not one, or was cancelled.
    pub(crate) fn drain_done(&mut self, run: CheckRunId, result: &Result<(), CheckError>) -> bool {
        let Some(job) = self.job_of_drain(run) else { return false };
        if let Err(error) = result {
            let why = error.why();
            let fields = LogEvent::Draining.fields().cause(why);
            self.log(Level::Warn, Some(job), fields, format_args!("drain program failed: {why}; stopping"));
        }
        self.job_mut(job).end_drain_run();
        self.terminate(job);
        true
    }

    /// Sends the stop signal.
    fn terminate(&mut self, job: JobIx) {
        if self.job(job).has_ended() {
            return;
        }
        self.change_stage(job, Stage::Terminate);
        if self.job(job).state() == State::Outlived {
            // The other processes of its run have been sent the signal, and have a timeout (S14).
            return;
        }
        let signal = self.planned(job).stop.signal;
        if signal != Signal::KILL {
            let fields = Fields::from(Code::Stopping).pid(self.job(job).pid()).signal(signal);
            self.log(Level::Info, Some(job), fields, format_args!("stopping: sent {signal}"));
        }
        self.send_stop_signal(job, signal, KillReason::Stop);
        self.begin_escalation(job);
    }

    /// The stop signal was sent: further signals follow if the process does not exit (S2, S4, S9).
    pub(crate) fn begin_escalation(&mut self, job: JobIx) {
        let now = self.now;
        if let Some(run) = self.job_mut(job).run_mut() {
            (run.escalated, run.stop_signal_at) = (0, Some(now));
            self.set_kill_timer(job);
        }
    }

    /// Sets the timer of the next signal to a process that has not exited after its stop signal.
    fn set_kill_timer(&mut self, job: JobIx) {
        let Some(run) = self.job(job).run() else { return };
        let elapsed = self.now.since(run.stop_signal_at.unwrap_or(self.now));
        let stop = &self.planned(job).stop;
        let (delay, next) = stop.next_signal(run.escalated, elapsed, self.plan().stop_timeout);
        let timer = if next == Signal::KILL { JobTimer::Kill } else { JobTimer::Escalate };
        let due = self.now + delay;
        if self.shutdown_deadlines.is_some_and(|deadlines| deadlines.kill_by <= due) {
            return;
        }
        let timer = self.set_timer(job, delay, timer);
        if let Some(run) = self.job_mut(job).run_mut() {
            run.kill_timer = Some(timer);
        }
    }

    /// S9: the process has not exited after the last signal, and gets the next one.
    pub(crate) fn escalate(&mut self, job: JobIx) {
        let Some(run) = self.job_mut(job).run_mut() else { return };
        run.kill_timer = None;
        let nth = run.escalated;
        run.escalated += 1;
        // A reload may have shortened the list (R5); then SIGKILL is next.
        let Some(next) = self.planned(job).stop.escalation.get(nth).copied() else {
            return self.set_kill_timer(job);
        };
        let fields = LogEvent::Timeout.fields().pid(self.job(job).pid());
        let fields = fields.signal(next.signal).duration(next.after).cause("stop signal");
        let (after, signal, who) = (fmt_duration(next.after), next.signal, self.awaited_processes(job));
        let message = format_args!("{who}did not exit within {after}, sending {signal}");
        self.log(Level::Warn, Some(job), fields, message);
        self.send_stop_signal(job, signal, KillReason::Escalation);
        self.set_kill_timer(job);
    }

    /// The process has not exited after its stop signal.
    pub(crate) fn kill_after_timeout(&mut self, job: JobIx) {
        let Some(run) = self.job_mut(job).run_mut() else { return };
        run.kill_timer = None;
        let timeout = self.planned(job).stop.kill_timeout(self.plan().stop_timeout);
        let fields = self.killing(job, timeout);
        let (timeout, who) = (fmt_duration(timeout), self.awaited_processes(job));
        let message = format_args!("{who}did not exit within {timeout}, sending SIGKILL");
        self.log(Level::Warn, Some(job), fields, message);
        self.kill_run(job, KillReason::StopTimeout);
    }

    /// The subject of a sentence about a job that has not exited.
    fn awaited_processes(&self, job: JobIx) -> &'static str {
        if self.job(job).state() == State::Outlived { "other processes " } else { "" }
    }

    /// S4: sends the stop signal of a shutdown without waiting any longer for hooks, the catalog, `drain` or, for a
    /// coprocess, other jobs. Returns true if a process was signalled.
    pub(crate) fn terminate_now(&mut self, job: JobIx) -> bool {
        let awaited = match self.job(job).stop_stage() {
            Some(StopStage::Requirers) | None => "other jobs",
            Some(StopStage::Hooks) => "its stop hooks",
            Some(StopStage::Deregister) => "its deregistration",
            Some(StopStage::Drain) if self.job(job).drain_run().is_some() => "its drain program",
            Some(StopStage::Drain) => "its drain time",
            Some(StopStage::Terminate) => return false,
        };
        let has_process = self.skip_to_terminate(job);
        if has_process {
            let message = format_args!("not waiting any longer for {awaited}, stopping");
            self.log(Level::Warn, Some(job), LogEvent::Timeout.fields().cause(awaited), message);
            self.terminate(job);
        }
        has_process
    }

    /// Ends every stop stage before the stop signal. Returns true if there is a process to signal; if not, the job is
    /// complete.
    fn skip_to_terminate(&mut self, job: JobIx) -> bool {
        if self.job(job).has_ended() {
            return false;
        }
        if self.job(job).is_up() {
            self.enter_stop(job, StopReason::Shutdown, false);
        }
        if self.job(job).stop_stage() == Some(StopStage::Requirers) {
            self.begin_hooks(job);
        }
        self.stop_checks(job);
        self.advertise(job, DesiredService::Absent);
        if !self.job(job).has_process() {
            self.finish(job);
            return false;
        }
        self.change_stage(job, Stage::Terminate);
        true
    }

    /// Kills a job without waiting for hooks, the catalog or its stop signal.
    pub(crate) fn kill(&mut self, job: JobIx, reason: KillReason) {
        if !self.skip_to_terminate(job) {
            return;
        }
        let (state, timers) = self.job_and_timers(job);
        if let Some(run) = state.run_mut() {
            timers.cancel(&mut run.timeout);
            timers.cancel(&mut run.kill_timer);
        }
        self.kill_run(job, reason);
    }

    /// Kills a run. A process that has not executed its program is not waited for (P3).
    fn kill_run(&mut self, job: JobIx, reason: KillReason) {
        match self.job(job).state() {
            State::Starting => {
                let why = format_args!("killed before it reached exec");
                self.cancel_start(job, StartErrorKind::Killed(Signal::KILL), why);
            }
            _ => self.send_signal(job, Signal::KILL, reason),
        }
    }
}
