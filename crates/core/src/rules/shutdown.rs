//! The shutdown of the supervisor: by request, or because no work is left (S1, S3, S4, C6, W10). `plan/work.rs` lists
//! the jobs that count as work.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::effect::{Effect, Exit, KillReason};
use crate::event::Code;
use crate::ids::JobIx;
use crate::log_entry::{Fields, LogEvent, few};
use crate::outcome::{Outcome, SkipReason};
use crate::plan::{Level, Role, Signal};
use crate::request::Refusal;
use crate::rules::exit_code::ALL_ENDED;
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::state::shutdown_deadlines::ShutdownDeadlines;
use crate::state::timers::TimerKind;
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};

impl Core {
    /// Stops all jobs, and then the supervisor.
    pub(crate) fn shut_down(&mut self) {
        if !matches!(self.phase, Phase::Starting | Phase::Running) {
            return;
        }
        (self.phase, self.shutdown_due) = (Phase::Stopping, None);
        self.report_to_manager();
        self.refuse_reload();
        self.end_rolling_restart(Some(Refusal::ShuttingDown));
        self.tell(|parts, context| parts.files.stop(context));
        let deadlines = self.new_shutdown_deadlines();
        self.shutdown_deadlines = Some(deadlines);
        self.set_shutdown_timer(deadlines.signal_by, TimerKind::ShutdownSignals);
        self.send(Origin::Global, Code::Shutdown);
        for job in self.all_jobs() {
            if self.outlives_other_jobs(job) {
                continue;
            }
            if self.stays_for_shutdown(job) {
                let (state, timers) = self.job_and_timers(job);
                timers.cancel(&mut state.start_timeout);
                state.pending.retain_stop_events();
                state.deferred = None;
                let is_stop_event = state.cause_event().is_some_and(|event| event.code.is_stop_event());
                if state.state() == State::Queued && !is_stop_event {
                    self.leave_queue(job);
                    self.run_again_during_shutdown(job);
                } else if state.state() == State::Delaying {
                    // A stop event that waits for the delay (W14) has its run now.
                    self.run_again_during_shutdown(job);
                }
                self.enqueue_recheck(job);
            } else {
                self.begin_stop(job, StopReason::Shutdown);
            }
        }
    }

    /// C6: returns true for a running coprocess. Other jobs may need it until they have stopped, for example an agent
    /// through which they leave the catalog.
    fn outlives_other_jobs(&self, job: JobIx) -> bool {
        self.planned(job).role == Role::Coprocess && self.job(job).is_up() && self.job(job).has_process()
    }

    /// C6: stops the coprocesses once no other process runs. Returns true if there was one to stop.
    pub(crate) fn stop_coprocesses(&mut self) -> bool {
        if self.plan_state.runs.values().any(|job| self.planned(*job).role != Role::Coprocess) {
            return false;
        }
        let coprocesses: Vec<JobIx> = self.all_jobs().filter(|job| self.outlives_other_jobs(*job)).collect();
        for job in &coprocesses {
            self.begin_stop(*job, StopReason::Shutdown);
        }
        !coprocesses.is_empty()
    }

    /// S3: returns true if a hook waits for its stop event, or runs because of one. One that runs for another reason is
    /// stopped like any other job.
    fn stays_for_shutdown(&self, job: JobIx) -> bool {
        let state = self.job(job);
        state.is_up()
            && self.planned(job).is_stop_hook()
            && (!state.has_process() || state.cause_event().is_some_and(|event| event.code.is_stop_event()))
    }

    /// Returns true if no process will exit by itself: each one waits for other jobs to end (C6, S10).
    pub(crate) fn no_stop_continues(&self) -> bool {
        let waits = |job: &JobIx| {
            self.job(*job).is_stopping_in(StopStage::Requirers) || self.outlives_other_jobs(*job)
        };
        self.plan_state.runs.values().all(waits)
    }

    /// S4: no process is left, or all wait, so every job that still waits for a stop event waits in a cycle. Stops the
    /// first of them. Returns true if there was one. A coprocess is in a cycle if another job stops after it (C6, S10).
    pub(crate) fn break_stop_cycle(&mut self) -> bool {
        let stops_first = |job: JobIx| {
            let mut others = self.all_jobs();
            others.any(|other| {
                self.job(other).is_stopping_in(StopStage::Requirers)
                    && self.outstanding_requirers(other).any(|first| first == job)
            })
        };
        let waiting = || self.all_jobs().filter(|job| self.job(*job).is_up());
        let in_cycle = waiting().find(|job| !self.outlives_other_jobs(*job) || stops_first(*job));
        let waiting = in_cycle.or_else(|| waiting().next());
        if let Some(job) = waiting {
            self.begin_stop(job, StopReason::Shutdown);
        }
        waiting.is_some()
    }

    fn new_shutdown_deadlines(&self) -> ShutdownDeadlines {
        ShutdownDeadlines::new(self.plan(), &self.plan_state.graph, self.now)
    }

    /// S4: the time for the order, deregistration and drain has passed. Every process gets its stop signal, except for
    /// hooks, which have a timeout of their own (S15).
    pub(crate) fn signal_all(&mut self) {
        let Some(mut deadlines) = self.shutdown_deadlines else { return };
        self.phase = Phase::Terminating;
        let mut signalled = false;
        for job in self.all_jobs() {
            if !self.stays_for_shutdown(job) {
                signalled |= self.terminate_now(job);
            }
        }
        if signalled {
            deadlines.signalled(self.plan(), self.now);
        }
        self.shutdown_deadlines = Some(deadlines);
        self.set_shutdown_timer(deadlines.kill_by, TimerKind::ShutdownTimeout);
    }

    /// S4: the timeout of the whole shutdown has passed.
    pub(crate) fn shutdown_timeout(&mut self) {
        let stop_timeout = self.plan().stop_timeout;
        let longest = self.shutdown_deadlines.map_or(stop_timeout, |deadlines| deadlines.longest);
        let time = fmt_duration(longest);
        if longest == stop_timeout {
            self.kill_all(format_args!("stop timeout of {time} passed"));
        } else {
            self.kill_all(format_args!("the shutdown took longer than {time}"));
        }
    }

    /// Sets the timer that ends the current phase of the shutdown.
    fn set_shutdown_timer(&mut self, at: Time, timer: TimerKind) {
        self.timers.cancel(&mut self.shutdown_timer);
        self.shutdown_timer = Some(self.timers.set(at, timer));
    }

    /// S1, S4: kills every remaining process, hooks included.
    pub(crate) fn kill_all(&mut self, why: fmt::Arguments<'_>) {
        if matches!(self.phase, Phase::Killing | Phase::Exited) {
            return;
        }
        let count = self.plan_state.incomplete;
        let jobs = if count == 1 { "job" } else { "jobs" };
        let fields = LogEvent::Killing.fields().signal(Signal::KILL);
        self.log(Level::Warn, None, fields, format_args!("{why}, killing {count} {jobs}"));
        self.phase = Phase::Killing;
        for job in self.all_jobs() {
            let state = self.job(job);
            if self.planned(job).is_stop_hook() && state.waits() && !state.ran_at_shutdown {
                let message = format_args!("not run: everything is killed");
                self.log(
                    Level::Warn,
                    Some(job),
                    LogEvent::Ended(Outcome::Skipped(SkipReason::Shutdown)),
                    message,
                );
            }
        }
        for job in self.all_jobs() {
            self.kill(job, KillReason::KillAll);
        }
        self.kill_all_orphans();
        let now = self.now;
        if let Some(deadlines) = &mut self.shutdown_deadlines {
            deadlines.killed(now);
            let reap_by = deadlines.reap_by();
            self.set_shutdown_timer(reap_by, TimerKind::KillTimeout);
        }
    }

    /// Exits. No orphaned process outlives the supervisor (P4, S4).
    pub(crate) fn exit_supervisor(&mut self) {
        self.kill_all_orphans();
        self.phase = Phase::Exited;
        let deadlines = self.shutdown_deadlines.unwrap_or_else(|| self.new_shutdown_deadlines());
        let deadlines = deadlines.exit_deadlines(self.plan(), self.now);
        let reason = self.exit_reason();
        if reason.code != 0 {
            self.name_recording(None);
        }
        let entry = reason.entry(self.exit_level(reason.code));
        self.effects.push(Effect::Exit(Exit { code: reason.code, entry, deadlines }));
    }

    /// Returns true if every job that does work has ended (W10), and no user's run is in progress (W17).
    pub(crate) fn is_work_complete(&self) -> bool {
        let is_started = |job| self.planned(job).when.is_manual() && self.is_started(job);
        self.plan_state.holding_open == 0 && !self.all_jobs().any(is_started)
    }

    /// Returns true if a job runs, or will be restarted.
    fn is_started(&self, job: JobIx) -> bool {
        self.job(job).is_active() || self.job(job).state() == State::Delaying
    }

    /// Shuts down because there is no work left. Returns true, because events follow.
    pub(crate) fn shut_down_by_itself(&mut self) -> bool {
        let fields = Fields::from(Code::Shutdown).cause(ALL_ENDED);
        let left = match self.served_without_work() {
            left if left.is_empty() => String::new(),
            left => format!(" (this does not keep the container running: {})", few(left)),
        };
        let why = self.nothing_to_do();
        self.log(Level::Info, None, fields, format_args!("{why}, shutting down{left}"));
        self.shut_down();
        true
    }
}
