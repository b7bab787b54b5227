//! Stopping: one job, all jobs, and everything that is left (S1–S5, W5, W9, W10).

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{Effect, Purpose, Wanted};
use crate::event::Code;
use crate::ids::{JobIx, RunId};
use crate::plan::{AtEnd, Level, Role, Signal};
use crate::rules::run::fmt_duration;
use crate::state::dependency_graph::is_stop_event;
use crate::state::job::{Aim, Ending, State};
use crate::state::journal::Origin;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::TimerKind;

/// How long the supervisor waits for what it has killed. A process that cannot be killed must not hold it for ever.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// How long a job waits at most for the catalog to let its service go; a quarter of the stop time where that is less,
/// so that a catalog that is away never costs a process the time it needs to end well.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

impl Core {
    /// A job begins to stop: it says so, and waits for the jobs that run at that (S2).
    pub(crate) fn begin_stop(&mut self, job: JobIx, why: Ending) {
        if !self.job(job).is_up() {
            return;
        }
        let state = &mut self.jobs[job.index()];
        state.ending = Some(why);
        self.timers.cancel(&mut state.give_up);
        self.timers.cancel(&mut state.turn);
        self.timers.cancel(&mut state.delay);
        self.timers.cancel(&mut state.stop_timer);
        (state.pending_event, state.pending_tick) = (None, false);
        let after = if state.state() == State::Delaying { State::Waiting } else { state.state() };
        self.change(job, after, Aim::Hooks);
        self.send(Origin::Job(job), Code::Stopping, None);
        self.enqueue_dependents(job);
        if self.graph.hooks(job).is_empty() {
            return self.leave_catalog(job);
        }
        if let Some(timeout) = self.planned(job).stop.timeout {
            let timer = self.timers.set(self.now + timeout, TimerKind::Hooks(job));
            self.job_mut(job).stop_timer = Some(timer);
        }
        self.enqueue_recheck(job);
    }

    /// Goes on with a job that waits for its hooks, if they are done. Only called when no event is queued.
    pub(crate) fn hooks_progress(&mut self, job: JobIx) {
        if self.job(job).aim() != Aim::Hooks || self.job(job).state() == State::Complete {
            return;
        }
        if !self.graph.hooks(job).iter().any(|hook| self.is_outstanding(*hook, job)) {
            self.leave_catalog(job);
        }
    }

    /// Whether a job waits for one of its hooks. A hook that itself waits for this job, directly or by others, would
    /// wait for ever.
    fn is_outstanding(&self, hook: JobIx, job: JobIx) -> bool {
        let state = self.job(hook);
        // A job that comes again will be heard again, so its hooks are not complete when they have done their work.
        let busy = state.has_process() || state.state() == State::Delaying || !state.is_up();
        let done = state.state() == State::Complete || (self.comes_again(job) && !busy);
        hook != job && !done && !self.waits_for(hook, job)
    }

    /// The hooks that a job waits for.
    pub(crate) fn outstanding_hooks(&self, job: JobIx) -> Vec<JobIx> {
        self.graph.hooks(job).iter().copied().filter(|hook| self.is_outstanding(*hook, job)).collect()
    }

    /// Whether a job that has nothing else to do waits for the end of another, as its hook or as a hook's hook.
    fn waits_for(&self, from: JobIx, target: JobIx) -> bool {
        let mut seen = vec![false; self.jobs.len()];
        let mut open = vec![from];
        while let Some(job) = open.pop() {
            if job == target {
                return true;
            }
            let state = self.job(job);
            let waits = state.aim() == Aim::Hooks && state.state() != State::Complete && !state.has_process();
            match seen.get_mut(job.index()) {
                Some(seen) if waits && !*seen => *seen = true,
                _ => continue,
            }
            open.extend(self.graph.hooks(job));
        }
        false
    }

    /// S4: no process is left, so nothing can happen any more that anybody waits for. Whoever still waits for an end
    /// waits in a ring; the first of them is let go. Says whether there was one.
    #[inline(never)]
    pub(crate) fn break_stop_cycle(&mut self) -> bool {
        let waiting = self.all_jobs().find(|job| self.job(*job).is_up());
        if let Some(job) = waiting {
            self.begin_stop(job, Ending::Shutdown);
        }
        waiting.is_some()
    }

    /// A job has waited long enough for its hooks.
    pub(crate) fn hooks_late(&mut self, job: JobIx) {
        self.job_mut(job).stop_timer = None;
        if self.job(job).aim() == Aim::Hooks {
            let waited = self.planned(job).stop.timeout.unwrap_or_default();
            self.log(
                Level::Warn,
                Some(job),
                format_args!(
                    "does not wait any longer for what runs before it stops ({})",
                    fmt_duration(waited)
                ),
            );
            self.leave_catalog(job);
        }
    }

    /// The hooks are done: the service leaves the catalog. A process that was in it goes on until the catalog has let
    /// it go, so that nobody is sent to it who would meet it half gone.
    fn leave_catalog(&mut self, job: JobIx) {
        let state = &mut self.jobs[job.index()];
        self.timers.cancel(&mut state.stop_timer);
        self.stop_checks(job);
        let present = self.job(job).wanted != Wanted::Absent;
        self.advertise(job, Wanted::Absent);
        if !self.job(job).has_process() {
            return self.finish(job);
        }
        if !present {
            return self.drain_out(job);
        }
        let state = self.job(job).state();
        self.change(job, state, Aim::Withdraw);
        let patience = MOST_PATIENCE.min(self.plan.stop_timeout / 4);
        let timer = self.timers.set(self.now + patience, TimerKind::Withdrawn(job));
        self.job_mut(job).stop_timer = Some(timer);
    }

    /// The catalog has let a job's service go.
    pub(crate) fn withdrawn(&mut self, job: JobIx) {
        if self.jobs.get(job.index()).is_some_and(|state| state.is_withdrawing()) {
            let state = &mut self.jobs[job.index()];
            self.timers.cancel(&mut state.stop_timer);
            self.drain_out(job);
        }
    }

    /// The catalog has had its time, and has not answered.
    pub(crate) fn withdrawn_late(&mut self, job: JobIx) {
        self.job_mut(job).stop_timer = None;
        if self.job(job).is_withdrawing() {
            let message = "does not wait any longer for the catalog to let its service go";
            self.log(Level::Warn, Some(job), format_args!("{message}"));
            self.drain_out(job);
        }
    }

    /// Nobody is sent to it any more: the process drains, or is asked to end.
    fn drain_out(&mut self, job: JobIx) {
        let drain = self.planned(job).stop.drain;
        if drain.is_zero() {
            return self.terminate(job);
        }
        let state = self.job(job).state();
        self.change(job, state, Aim::Drain);
        self.log(Level::Info, Some(job), format_args!("drains for {}", fmt_duration(drain)));
        let timer = self.timers.set(self.now + drain, TimerKind::Drained(job));
        self.job_mut(job).stop_timer = Some(timer);
    }

    /// The process is asked to end.
    pub(crate) fn terminate(&mut self, job: JobIx) {
        self.job_mut(job).stop_timer = None;
        let state = self.job(job).state();
        if state == State::Complete {
            return;
        }
        self.change(job, state, Aim::Term);
        let signal = self.planned(job).stop.signal;
        self.signal_job(job, signal, Purpose::Stop);
        if state == State::Running {
            self.await_end(job);
        }
    }

    /// A single job that was asked to end is killed if it does not. Where everything stops, the whole has its time.
    pub(crate) fn await_end(&mut self, job: JobIx) {
        if self.phase == Phase::Running {
            let timer = self.timers.set(self.now + self.plan.stop_timeout, TimerKind::KillAfterTimeout(job));
            self.job_mut(job).stop_timer = Some(timer);
        }
    }

    /// Sends a signal to a job's process, or keeps it until there is one.
    fn signal_job(&mut self, job: JobIx, signal: Signal, purpose: Purpose) {
        let Some(run) = self.job(job).run else { return };
        if self.job(job).state() == State::Starting {
            // The stronger one wins: nothing comes beside SIGKILL.
            let waiting = &mut self.job_mut(job).signals_at_start;
            if signal == Signal::KILL {
                waiting.clear();
            }
            if !waiting.iter().any(|(waiting, _)| *waiting == Signal::KILL) {
                waiting.push((signal, purpose));
            }
            return;
        }
        match signal {
            Signal::KILL => {}
            // The usual one is not put together: somebody waits for it.
            Signal::TERM => self.log(Level::Info, Some(job), format_args!("is asked to end with signal 15")),
            _ => {
                self.log(Level::Info, Some(job), format_args!("is asked to end with signal {}", signal.0));
            }
        }
        self.send_signal(job, run, signal, purpose);
    }

    /// Sends a signal to a process that is there.
    pub(crate) fn send_signal(&mut self, job: JobIx, run: RunId, signal: Signal, purpose: Purpose) {
        self.job_mut(job).killed |= signal == Signal::KILL;
        self.effects.push(Effect::Kill { run, signal, purpose });
    }

    /// A single job was asked to end, and has not.
    pub(crate) fn kill_after_timeout(&mut self, job: JobIx) {
        self.job_mut(job).stop_timer = None;
        if self.job(job).has_process() {
            self.log(Level::Warn, Some(job), format_args!("does not end, and is killed"));
            self.signal_job(job, Signal::KILL, Purpose::KillAfterTimeout);
        }
    }

    /// W9: a job is complete.
    pub(crate) fn finish(&mut self, job: JobIx) {
        // A job without a process (W11) has been checked until now.
        self.end_checks(job);
        let aim = self.job(job).aim();
        self.change(job, State::Complete, aim);
        self.advertise(job, Wanted::Absent);
        self.send(Origin::Job(job), Code::Stopped, None);
        self.count_complete(job);
        self.enqueue_dependents(job);
        if matches!(self.phase, Phase::Beginning | Phase::Running) {
            let by_hand = self.job(job).comes_again();
            let message = if by_hand { "is stopped" } else { "is complete" };
            self.log(Level::Info, Some(job), format_args!("{message}"));
            if self.job(job).again {
                self.pending_restarts.push_back(job);
            } else if !by_hand {
                self.consequences(job);
            }
        } else if self.exit_code.is_none()
            && !self.job(job).comes_again()
            && self.planned(job).role != Role::Coprocess
        {
            // What runs for the end of work that has ended by itself may still fail.
            self.note_failure(job, false);
        }
    }

    /// Remembers a failure that may be the exit code. Work goes first: what only reacts to an end must not speak for the
    /// work that has ended; and whatever happens to a coprocess or a sensor says nothing about the whole (C6).
    fn note_failure(&mut self, job: JobIx, work: bool) {
        let failure = self.job(job).failure;
        let first = match self.planned(job).role {
            Role::Coprocess | Role::Sensor(_) => return,
            _ if work => &mut self.first_failure,
            _ => &mut self.first_hook_failure,
        };
        *first = first.or(failure);
    }

    /// S5, S7: what the end of a job means for the container.
    fn consequences(&mut self, job: JobIx) {
        let planned = self.planned(job);
        let (on_failure, on_success) = (planned.on_failure, planned.on_success);
        let state = self.job(job);
        let (failure, has_run) = (state.failure, state.has_run);
        self.note_failure(job, self.graph.holds_open(job));
        let ends = match failure {
            Some(_) => on_failure == AtEnd::Shutdown,
            None => has_run && on_success == AtEnd::Shutdown,
        };
        if ends {
            self.exit_code = Some(failure.unwrap_or(0));
            let how = if failure.is_some() { "failure" } else { "success" };
            self.log(
                Level::Info,
                Some(job),
                format_args!("has ended in {how}, and with it everything is stopped"),
            );
            self.shut_down();
        }
    }

    /// W5: a job has waited long enough to be started.
    pub(crate) fn give_up(&mut self, job: JobIx) {
        self.job_mut(job).give_up = None;
        if self.job(job).has_run || !self.job(job).is_up() {
            return;
        }
        let waited = self.planned(job).when.timeout.unwrap_or_default();
        self.log(
            Level::Warn,
            Some(job),
            format_args!("gives up: it was not started within {}", fmt_duration(waited)),
        );
        self.send(Origin::Job(job), Code::TimerExpired, None);
        self.begin_stop(job, Ending::GaveUp);
    }

    /// W10: nothing that could start this job can come any more.
    pub(crate) fn mark_unreachable(&mut self, job: JobIx) {
        let waited = !self.job(job).triggered && self.phase == Phase::Running;
        if waited {
            let sources: Vec<_> = self
                .planned(job)
                .when
                .patterns()
                .iter()
                .map(|event| format!("`{} {}`", event.source, event.code))
                .collect();
            let what = if sources.is_empty() { "any event".into() } else { sources.join(", ") };
            self.log(
                Level::Warn,
                Some(job),
                format_args!("will never run: it waits for {what}, which cannot come any more"),
            );
        }
        let why = match (waited, self.phase, self.job(job).failure) {
            (true, ..) => Ending::Unreachable,
            (_, Phase::Running, None) => Ending::Done,
            (_, Phase::Running, Some(_)) => Ending::Failed,
            _ => Ending::Shutdown,
        };
        self.begin_stop(job, why);
    }

    /// S1: everything is stopped.
    pub(crate) fn shut_down(&mut self) {
        if matches!(self.phase, Phase::Stopping | Phase::Killing | Phase::Left) {
            return;
        }
        self.phase = Phase::Stopping;
        self.refuse_reload();
        self.stop_time = Some(self.timers.set(self.now + self.plan.stop_timeout, TimerKind::StopTime));
        self.send(Origin::Global, Code::Shutdown, None);
        for job in self.all_jobs() {
            if self.outlives_the_others(job) {
                continue;
            }
            if self.stays_for_the_end(job) {
                let state = &mut self.jobs[job.index()];
                self.timers.cancel(&mut state.give_up);
                self.timers.cancel(&mut state.delay);
                state.pending_event = state.pending_event.filter(|event| is_stop_event(event.code));
                if self.job(job).state() == State::Delaying {
                    self.change(job, State::Waiting, Aim::Up);
                }
                self.enqueue_recheck(job);
            } else {
                self.begin_stop(job, Ending::Shutdown);
            }
        }
    }

    /// C6: the others may need a coprocess to the last (an agent through which they leave the catalog), so that one that
    /// runs goes on until they are done.
    fn outlives_the_others(&self, job: JobIx) -> bool {
        self.planned(job).role == Role::Coprocess && self.job(job).is_up() && self.job(job).has_process()
    }

    /// C6: once nothing but coprocesses runs, they are stopped too. Says whether there was one to stop.
    #[inline(never)]
    pub(crate) fn stop_coprocesses(&mut self) -> bool {
        if self.runs.values().any(|job| self.planned(*job).role != Role::Coprocess) {
            return false;
        }
        let up: Vec<JobIx> = self.all_jobs().filter(|job| self.outlives_the_others(*job)).collect();
        for job in &up {
            self.begin_stop(*job, Ending::Shutdown);
        }
        !up.is_empty()
    }

    /// S3: a job that is triggered by an end still runs; one that runs for another reason is stopped as any.
    fn stays_for_the_end(&self, job: JobIx) -> bool {
        let state = self.job(job);
        if !state.is_up() || !self.planned(job).when.patterns().iter().any(|event| is_stop_event(event.code))
        {
            return false;
        }
        !state.has_process() || state.cause.is_some_and(|event| is_stop_event(event.code))
    }

    /// S4: whatever is left is killed, hooks included.
    pub(crate) fn kill_everything(&mut self, why: &str) {
        if matches!(self.phase, Phase::Killing | Phase::Left) {
            return;
        }
        let left = self.jobs.iter().filter(|state| state.state() != State::Complete).count();
        let jobs = if left == 1 { "job" } else { "jobs" };
        self.log(Level::Warn, None, format_args!("{why}: what is left is killed ({left} {jobs})"));
        self.phase = Phase::Killing;
        self.timers.cancel(&mut self.stop_time);
        for job in self.all_jobs() {
            self.kill(job, Purpose::Everything);
        }
        self.kill_all_orphans();
        let timer = self.timers.set(self.now + LAST_WAIT, TimerKind::LastWait);
        self.stop_time = Some(timer);
    }

    /// P4: what is left of a run's process group has had its time.
    pub(crate) fn kill_orphans(&mut self, run: RunId) {
        let mut timer = self.orphaned_groups.remove(&run);
        if timer.is_some() {
            self.timers.cancel(&mut timer);
            self.effects.push(Effect::KillRemains { run });
        }
    }

    /// P4, S4: nothing outlives the supervisor.
    pub(crate) fn kill_all_orphans(&mut self) {
        let runs: Vec<RunId> = self.orphaned_groups.keys().copied().collect();
        for run in runs {
            self.kill_orphans(run);
        }
    }

    pub(crate) fn kill(&mut self, job: JobIx, purpose: Purpose) {
        if self.job(job).state() == State::Complete {
            return;
        }
        if self.job(job).is_up() {
            let state = &mut self.jobs[job.index()];
            state.ending = Some(Ending::Shutdown);
            state.pending_event = None;
            self.timers.cancel(&mut state.give_up);
            self.timers.cancel(&mut state.turn);
            self.timers.cancel(&mut state.delay);
            let after = if state.state() == State::Delaying { State::Waiting } else { state.state() };
            self.change(job, after, Aim::Hooks);
            self.send(Origin::Job(job), Code::Stopping, None);
        }
        let state = &mut self.jobs[job.index()];
        self.timers.cancel(&mut state.stop_timer);
        self.timers.cancel(&mut state.run_timeout);
        self.stop_checks(job);
        self.advertise(job, Wanted::Absent);
        if !self.job(job).has_process() {
            return self.finish(job);
        }
        let state = self.job(job).state();
        self.change(job, state, Aim::Term);
        self.signal_job(job, Signal::KILL, purpose);
    }

    /// S7: a signal goes on to the main program; one that comes before there is a process waits for it.
    pub(crate) fn pass_on(&mut self, signal: Signal) {
        let main = self.all_jobs().find(|job| self.planned(*job).role == Role::Main);
        let Some(job) = main else { return };
        match self.job(job).run {
            Some(run) if self.job(job).state() == State::Running => {
                self.send_signal(job, run, signal, Purpose::PassedOn);
            }
            _ if self.job(job).state() == State::Complete => {}
            _ => self.job_mut(job).signals_at_start.push((signal, Purpose::PassedOn)),
        }
    }
}
