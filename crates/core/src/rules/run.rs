//! Runs: how a job is started, how it ends, and whether it runs again.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::effect::{Effect, Purpose, Wanted};
use crate::event::Code;
use crate::ids::{JobIx, RunId};
use crate::input::{ExitStatus, StartError};
use crate::plan::{Level, Restarts, Role, Signal, Status, Trigger};
use crate::state::job::{Aim, Ending, State};
use crate::state::journal::{Event, Origin};
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::TimerKind;

impl Core {
    /// Starts a run of a job that has no process.
    pub(crate) fn start(&mut self, job: JobIx, cause: Option<Event>) {
        let periodic = matches!(self.planned(job).when.trigger, Trigger::Interval(_));
        let state = &mut self.jobs[job.index()];
        // Who waits for it to give up waits in vain now.
        self.reachability_dirty |= state.give_up.is_some();
        self.timers.cancel(&mut state.give_up);
        self.timers.cancel(&mut state.delay);
        state.by_hand &= cause.is_none();
        if cause.is_some() && !periodic {
            // W6, W8: each event starts it anew, with all its restarts, the first of them at once.
            (state.restarts, state.early) = (0, 0);
        }
        state.cause = cause.or(state.cause);
        state.has_run = true;
        (state.timed_out, state.replaced, state.killed) = (false, false, false);
        let aim = state.aim();
        if self.planned(job).exec.is_none() {
            return self.begin_without_process(job);
        }
        self.change(job, State::Starting, aim);
        let run = self.new_run(job);
        self.job_mut(job).run = Some(run);
        let environment = self.environment(job);
        self.effects.push(Effect::Spawn { job, run, environment });
    }

    /// W11: a job without `exec` only advertises and checks. One that does not even that has nothing to do.
    fn begin_without_process(&mut self, job: JobIx) {
        if self.phase != Phase::Running {
            // There is nothing to run for the end (S3), and this is no time to enter the catalog.
            return self.begin_stop(job, Ending::Shutdown);
        }
        let aim = self.job(job).aim();
        self.change(job, State::Running, aim);
        self.job_mut(job).started_at = self.now;
        if self.planned(job).health.is_none() {
            self.log(Level::Info, Some(job), format_args!("has nothing to run and nothing to check"));
            self.change(job, State::Waiting, aim);
            return self.begin_stop(job, Ending::Empty);
        }
        self.begin_service(job);
    }

    /// D4, H3: what begins with a process: the first registration, and the checks. A process that was asked to end
    /// before it was there (S2) begins nothing.
    fn begin_service(&mut self, job: JobIx) {
        if self.job(job).aim() > Aim::Hooks {
            return;
        }
        let status = self.planned(job).service.as_ref().and_then(|service| service.initial_status);
        if let Some(status) = status
            && self.job(job).wanted == Wanted::Absent
        {
            self.advertise(job, Wanted::Present(status));
        }
        self.begin_checks(job);
    }

    /// A process is there.
    #[inline(never)]
    pub(crate) fn started(&mut self, run: RunId, pid: i32) {
        let Some(job) = self.runs.get(&run).copied().filter(|job| self.job(*job).state() == State::Starting)
        else {
            return;
        };
        let aim = self.job(job).aim();
        self.change(job, State::Running, aim);
        self.set_process(job, Some(pid));
        let signals = core::mem::take(&mut self.job_mut(job).signals_at_start);
        let now = self.now;
        self.job_mut(job).started_at = now;
        self.log(Level::Info, Some(job), format_args!("started, pid {pid}{}", self.because(job)));
        let is_killed = signals.iter().any(|(signal, _)| *signal == Signal::KILL);
        for (signal, purpose) in signals {
            self.send_signal(job, run, signal, purpose);
        }
        if aim == Aim::Term && !is_killed {
            // It was to stop before it was there, and is asked only now.
            self.await_end(job);
        }
        if let Some(timeout) = self.planned(job).timeout.filter(|_| self.phase != Phase::Killing) {
            let timer = self.timers.set(self.now + timeout, TimerKind::RunTimeout(job));
            self.job_mut(job).run_timeout = Some(timer);
        }
        self.begin_service(job);
    }

    fn because(&self, job: JobIx) -> String {
        match self.job(job).cause {
            _ if self.job(job).by_hand => ", by hand".into(),
            Some(event) if event.code != Code::Startup => {
                format!(", because of {} {}", self.origin_name(event.origin), event.code)
            }
            _ => String::new(),
        }
    }

    #[inline(never)]
    pub(crate) fn start_failed(&mut self, run: RunId, why: &StartError) {
        let Some(job) = self.forget(run) else { return };
        let level = self.unless_told(job, ExitStatus::Code(why.kind.code()), Level::Error);
        self.log(level, Some(job), format_args!("could not be started: {}", why.message));
        let now = self.now;
        let state = self.job_mut(job);
        state.failure = Some(why.kind.code());
        state.last_exit = Some(ExitStatus::Code(why.kind.code()));
        state.started_at = now;
        self.ended(job, Code::ExitFailed, ExitStatus::Code(why.kind.code()));
    }

    #[inline(never)]
    pub(crate) fn exited(&mut self, run: RunId, status: ExitStatus, orphans: bool) {
        let Some(job) = self.forget(run) else { return };
        if orphans {
            let timer = self.timers.set(self.now + self.plan.stop_timeout, TimerKind::OrphanedGroup(run));
            self.orphaned_groups.insert(run, timer);
        }
        let timed_out = self.job(job).timed_out;
        let success = status.is_success() && !timed_out;
        let state = self.job_mut(job);
        // What ends because it was asked to has not failed.
        let asked = state.aim() == Aim::Term;
        state.failure = if success || asked { None } else { Some(status.code().max(1)) };
        self.log_exit(job, status, success || asked);
        self.job_mut(job).last_exit = Some(status);
        self.ended(job, if success { Code::ExitSuccess } else { Code::ExitFailed }, status);
    }

    fn log_exit(&mut self, job: JobIx, status: ExitStatus, expected: bool) {
        let memory = self.memory_words(job, status);
        let ran = fmt_duration(self.now.since(self.job(job).started_at));
        let (how, number) = match status {
            ExitStatus::Code(code) => ("exited with code", code),
            ExitStatus::Signal(Signal(number)) => ("was ended by signal", number),
        };
        let message = format_args!("{how} {number} after {ran}{memory}");
        if expected {
            return self.log(Level::Info, Some(job), message);
        }
        let loud = if self.job(job).out_of_memory { Level::Warn } else { Level::Info };
        let level = self.unless_told(job, status, loud);
        self.log_entry(level, Some(job), message, true);
    }

    /// What there is to say about memory when a run has ended by a SIGKILL that was not sent from here, or with the code by
    /// which a shell tells of one.
    fn memory_words(&mut self, job: JobIx, status: ExitStatus) -> String {
        let by_itself = match status {
            ExitStatus::Signal(signal) => signal == Signal::KILL && !self.job(job).killed,
            ExitStatus::Code(code) => code == ExitStatus::Signal(Signal::KILL).code(),
        };
        let counted = if by_itself { self.out_of_memory } else { Some(0) };
        self.job_mut(job).out_of_memory = counted.is_some_and(|count| count > 0);
        match (counted, status) {
            (Some(0), _) | (None, ExitStatus::Code(_)) => String::new(),
            (None, ExitStatus::Signal(_)) => ", which was not sent from here: perhaps memory ran out".into(),
            (Some(count), _) => {
                // One of them was this one; the others may explain other ends.
                self.out_of_memory = Some(count - 1);
                let these = if count == 1 { "a process" } else { "processes" };
                format!(": memory ran out, and the kernel ended {these} of this container")
            }
        }
    }

    /// How loudly the failure of a run is told. A sensor that is broken fails every few seconds: that is told when it
    /// begins, or is another failure than before.
    fn unless_told(&self, job: JobIx, how: ExitStatus, level: Level) -> Level {
        let sensor = matches!(self.planned(job).role, Role::Sensor(_));
        if sensor && self.job(job).last_exit == Some(how) { Level::Debug } else { level }
    }

    /// Takes note that a run is over; which job's it was.
    fn forget(&mut self, run: RunId) -> Option<JobIx> {
        let job = self.runs.remove(&run)?;
        self.set_process(job, None);
        let now = self.now;
        let state = &mut self.jobs[job.index()];
        state.ended_at = Some(now);
        state.run = None;
        state.signals_at_start.clear();
        self.timers.cancel(&mut state.run_timeout);
        Some(job)
    }

    /// What follows the end of a run.
    fn ended(&mut self, job: JobIx, code: Code, status: ExitStatus) {
        // The run was caused by what triggered it, and so is its end.
        self.handling = self.job(job).cause.map(|event| event.id);
        self.send(Origin::Job(job), code, Some(status));
        let aim = self.job(job).aim();
        self.end_checks(job);
        match aim {
            Aim::Withdraw | Aim::Drain | Aim::Term => {
                let state = &mut self.jobs[job.index()];
                self.timers.cancel(&mut state.stop_timer);
                return self.finish(job);
            }
            Aim::Hooks => {
                self.change(job, State::Waiting, aim);
                return self.enqueue_recheck(job);
            }
            Aim::Up => {}
        }
        let state = &mut self.jobs[job.index()];
        self.timers.cancel(&mut state.stop_timer);
        if self.phase != Phase::Running {
            return self.run_again_at_the_end(job);
        }
        self.run_again(job);
    }

    /// S3: a job that stays for the end runs once for it, also if it was busy when that came (W7).
    fn run_again_at_the_end(&mut self, job: JobIx) {
        self.change(job, State::Waiting, Aim::Up);
        let state = self.job_mut(job);
        match state.pending_event.take() {
            Some(event) => {
                state.ran_at_shutdown = true;
                self.start(job, Some(event));
            }
            None if state.ran_at_shutdown => self.begin_stop(job, Ending::Shutdown),
            None => self.enqueue_recheck(job),
        }
    }

    /// Whether, when and why a job that has ended runs again (W4, W6, W7, W8, W9).
    fn run_again(&mut self, job: JobIx) {
        let periodic = matches!(self.planned(job).when.trigger, Trigger::Interval(_));
        if let Some(event) = self.job_mut(job).pending_event.take() {
            self.change(job, State::Waiting, Aim::Up);
            return self.start(job, Some(event));
        }
        if periodic {
            self.change(job, State::Waiting, Aim::Up);
            if core::mem::take(&mut self.job_mut(job).pending_tick) {
                return self.start(job, None);
            }
            if self.job(job).turn.is_none() {
                let failed = self.job(job).failure.is_some();
                self.begin_stop(job, if failed { Ending::Failed } else { Ending::Done });
            }
            return;
        }
        if self.may_restart(job) {
            return self.restart(job);
        }
        self.change(job, State::Waiting, Aim::Up);
        self.enqueue_recheck(job);
    }

    fn may_restart(&self, job: JobIx) -> bool {
        match self.planned(job).restarts {
            Restarts::Unlimited => true,
            Restarts::Limited(most) => self.job(job).restarts < most,
        }
    }

    /// W8: the first restart is at once; while runs keep ending early, the delay doubles.
    fn restart(&mut self, job: JobIx) {
        let delay = self.next_delay(job);
        if delay.is_zero() {
            self.log(Level::Info, Some(job), format_args!("is restarted"));
            self.change(job, State::Delaying, Aim::Up);
            self.count_restart(job);
            return self.start(job, None);
        }
        self.log(Level::Info, Some(job), format_args!("is restarted in {}", fmt_duration(delay)));
        self.change(job, State::Delaying, Aim::Up);
        let timer = self.timers.set(self.now + delay, TimerKind::Restart(job));
        self.job_mut(job).delay = Some(timer);
    }

    fn next_delay(&mut self, job: JobIx) -> Duration {
        let Some(backoff) = self.planned(job).backoff else { return Duration::ZERO };
        let ran = self.now.since(self.job(job).started_at);
        let state = self.job_mut(job);
        if ran > backoff.reset {
            state.early = 0;
        }
        let delay = match state.early.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                backoff.initial.saturating_mul(factor).min(backoff.max)
            }
        };
        state.early = state.early.saturating_add(1);
        delay
    }

    pub(crate) fn restart_now(&mut self, job: JobIx) {
        self.job_mut(job).delay = None;
        if self.job(job).state() == State::Delaying {
            self.count_restart(job);
            self.start(job, None);
        }
    }

    fn count_restart(&mut self, job: JobIx) {
        let state = self.job_mut(job);
        state.restarts += 1;
        state.restarts_ever += 1;
    }

    /// P5: a run has used up its time.
    pub(crate) fn run_timeout(&mut self, job: JobIx) {
        self.job_mut(job).run_timeout = None;
        let Some(run) = self.job(job).run else { return };
        if self.job(job).timed_out {
            return;
        }
        let timeout = self.planned(job).timeout.unwrap_or_default();
        let name = self.planned(job).name.clone();
        let level = self.unless_told(job, ExitStatus::Signal(Signal::KILL), Level::Warn);
        self.log(level, Some(job), format_args!("{name} timeout after {}", fmt_duration(timeout)));
        self.job_mut(job).timed_out = true;
        self.send_signal(job, run, Signal::KILL, Purpose::Timeout);
    }

    /// W4: a periodic job runs at startup, and from then on its turns are counted.
    pub(crate) fn first_turn(&mut self, job: JobIx, event: Event) {
        if !self.job(job).is_up() {
            return;
        }
        self.begin_turns(job);
        self.start(job, Some(event));
    }

    /// From now on the turns of a periodic job are counted.
    pub(crate) fn begin_turns(&mut self, job: JobIx) {
        let now = self.now;
        self.job_mut(job).turn_at = now;
        self.job_mut(job).triggered = true;
        self.set_turn(job);
    }

    /// Sets the next turn, if there is one; missed ones are not made up, and nothing drifts.
    fn set_turn(&mut self, job: JobIx) {
        let Trigger::Interval(interval) = self.planned(job).when.trigger else { return };
        if !self.may_restart(job) {
            return;
        }
        let mut at = self.job(job).turn_at + interval;
        if at <= self.now {
            // After a long pause (a stopped supervisor) the next turn is the next multiple that is ahead.
            let behind = self.now.since(at).as_nanos() / interval.as_nanos().max(1);
            let turns = u32::try_from(behind).unwrap_or(u32::MAX).saturating_add(1);
            at = at + interval.saturating_mul(turns);
        }
        let timer = self.timers.set(at, TimerKind::Turn(job));
        let state = self.job_mut(job);
        state.turn_at = at;
        state.turn = Some(timer);
    }

    /// A periodic job's turn has come.
    pub(crate) fn turn(&mut self, job: JobIx) {
        self.job_mut(job).turn = None;
        if !self.job(job).is_up() || self.phase != Phase::Running {
            return;
        }
        let Trigger::Interval(interval) = self.planned(job).when.trigger else { return };
        match self.job(job).state() {
            State::Waiting => {
                self.count_restart(job);
                self.set_turn(job);
                self.start(job, None);
            }
            State::Starting | State::Running => {
                // A run that may take no longer than its interval has met its timeout, and this turn follows it. A run
                // that may take longer goes on, and the turn is skipped.
                // One that began after the turn was due, because this is told late, has met nothing.
                let due = self.job(job).turn_at;
                let met = self.planned(job).timeout.is_some_and(|timeout| timeout <= interval)
                    && self.job(job).started_at < due;
                // Of several turns that come while it dies, one is kept (W7) and counted.
                let kept = self.job(job).pending_tick;
                if met && !kept && self.job(job).state() == State::Running {
                    self.count_restart(job);
                    self.job_mut(job).pending_tick = true;
                    let state = &mut self.jobs[job.index()];
                    self.timers.cancel(&mut state.run_timeout);
                    self.run_timeout(job);
                }
                self.set_turn(job);
            }
            State::Delaying | State::Complete => {}
        }
    }

    /// H8: a run that has become unhealthy makes way for another.
    pub(crate) fn replace(&mut self, job: JobIx) {
        let Some(run) = self.job(job).run else { return };
        // One that flaps while it ends was asked already, and gains no time by it.
        if core::mem::replace(&mut self.job_mut(job).replaced, true) {
            return;
        }
        if !self.may_restart(job) {
            // To end it for good would make a bad thing worse.
            let message = "is unhealthy, and is not restarted: it has no restarts left";
            return self.log(Level::Warn, Some(job), format_args!("{message}"));
        }
        let signal = self.planned(job).stop.signal;
        self.log(Level::Info, Some(job), format_args!("is unhealthy, and is restarted"));
        self.send_signal(job, run, signal, Purpose::Replace);
        let timer = self.timers.set(self.now + self.plan.stop_timeout, TimerKind::KillAfterTimeout(job));
        self.job_mut(job).stop_timer = Some(timer);
    }

    /// The wanted status while a job is not healthy: critical, if it is in the catalog at all (H6, H7).
    pub(crate) fn advertise_critical(&mut self, job: JobIx) {
        if matches!(self.job(job).wanted, Wanted::Present(_)) {
            self.advertise(job, Wanted::Present(Status::Critical));
        }
    }
}

/// A duration in words.
pub(crate) fn fmt_duration(duration: Duration) -> Spoken {
    Spoken(duration)
}

/// See [`fmt_duration`].
pub(crate) struct Spoken(Duration);

impl fmt::Display for Spoken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.0.as_secs(), self.0.subsec_nanos());
        match (seconds, nanoseconds) {
            (0, 0) => out.write_str("0s"),
            (0, nanoseconds) if nanoseconds < 1_000_000 => write!(out, "{}µs", nanoseconds / 1_000),
            (0, nanoseconds) => write!(out, "{}ms", nanoseconds / 1_000_000),
            (seconds, nanoseconds) if seconds < 60 && nanoseconds >= 1_000_000 => {
                let fraction = format!("{:03}", nanoseconds / 1_000_000);
                write!(out, "{seconds}.{}s", fraction.trim_end_matches('0'))
            }
            (seconds, _) if seconds < 60 => write!(out, "{seconds}s"),
            (seconds, _) if seconds < 3_600 => write!(out, "{}m{}s", seconds / 60, seconds % 60),
            (seconds, _) => write!(out, "{}h{}m{}s", seconds / 3_600, seconds / 60 % 60, seconds % 60),
        }
    }
}
