//! Locks: who has them, and when their jobs stop (D14).
//!
//! A holder can rely on a lock until the TTL has passed since it sent the last request that Consul has answered with yes:
//!
//! ```text
//! sent                       give up               kill         until = sent + TTL
//!  |--------------------------|---------------------|-----------|---------------------------> time
//!    the lock is held          jobs stop: drain,     SIGKILL     another supervisor may have
//!                              stop signal                       the lock from here on
//! ```
//!
//! Each answer moves all three times. Without answers they pass, for any reason. A supervisor that was suspended
//! finds that they have passed before it handles anything else.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::effect::{Effect, KillReason};
use crate::event::Code;
use crate::ids::{JobIx, LockIx};
use crate::lock_report::{LockReport, LockWait};
use crate::log_entry::LogEvent;
use crate::plan::{Level, Lock};
use crate::state::job::StopReason;
use crate::state::journal::Origin;
use crate::state::lock::{Hold, LockState};
use crate::state::timers::TimerKind;
use crate::supervisor::{Core, Phase};
use crate::time::Time;

impl Core {
    pub(crate) fn lock_state(&self, lock: LockIx) -> Option<&LockState> {
        self.plan_state.locks.get(lock.index())
    }

    pub(crate) fn all_locks(&self) -> impl Iterator<Item = LockIx> + use<> {
        (0..self.plan_state.locks.len()).map(LockIx::at)
    }

    /// Acquires the locks of a plan that are not held yet, if they are local. Their fencing numbers start with the seconds
    /// since 1970, so that they also grow when the supervisor is restarted.
    pub(crate) fn acquire_local_locks(&mut self) {
        if self.plan().has_shared_locks() {
            return;
        }
        for lock in self.all_locks() {
            if self.lock_state(lock).is_some_and(|state| !state.is_held()) {
                let fencing = self.unix_now().as_secs().max(self.last_ids.fencing + 1);
                self.last_ids.fencing = fencing;
                self.acquired(lock, fencing, None);
            }
        }
    }

    /// Handles what Consul has answered.
    pub(crate) fn lock_reported(&mut self, lock: LockIx, report: LockReport) {
        let Some(state) = self.plan_state.locks.get_mut(lock.index()) else { return };
        match (report, state.hold) {
            (LockReport::Held { fencing, until }, hold) => {
                let is_running = self.phase == Phase::Running;
                if matches!(hold, Hold::Held { .. }) {
                    state.hold = Hold::Held { fencing, until: Some(until) };
                    self.set_lock_timer(lock);
                } else if is_running && self.give_up_at(lock, until) > self.now {
                    self.acquired(lock, fencing, Some(until));
                }
            }
            (LockReport::NotHeld(wait), hold) => {
                let is_taken = matches!(wait, LockWait::Taken(_));
                state.wait = wait;
                match hold {
                    Hold::Held { until, .. } => {
                        let until = if is_taken { Some(Time::ZERO) } else { until };
                        self.lost(lock, until.unwrap_or(Time::ZERO), "lost");
                    }
                    Hold::Ending { .. } if is_taken => {
                        state.hold = Hold::Ending { until: Time::ZERO };
                        self.expire_lock(lock);
                    }
                    Hold::Ending { .. } | Hold::Free => {}
                }
            }
        }
    }

    fn acquired(&mut self, lock: LockIx, fencing: u64, until: Option<Time>) {
        let now = self.now;
        let Some(state) = self.plan_state.locks.get_mut(lock.index()) else { return };
        state.hold = Hold::Held { fencing, until };
        state.since = Some(now);
        self.set_lock_timer(lock);
        self.set_lock_variable(lock);
        let name = self.origin_name(Origin::Lock(lock));
        let message = format_args!("{name} acquired, fencing number {fencing}");
        self.log(Level::Info, None, LogEvent::Event(Code::Acquired), message);
        self.send(Origin::Lock(lock), Code::Acquired);
        self.recheck_lock_requirers(lock);
    }

    /// The lock is lost, or given up before another supervisor can have it: its jobs stop.
    fn lost(&mut self, lock: LockIx, until: Time, how: &str) {
        let now = self.now;
        let Some(state) = self.plan_state.locks.get_mut(lock.index()) else { return };
        state.hold = Hold::Ending { until };
        state.since = Some(now);
        let why = state.wait.words();
        self.set_lock_variable(lock);
        let name = self.origin_name(Origin::Lock(lock));
        let fields = LogEvent::Event(Code::Lost).fields().cause(why.as_str());
        self.log(Level::Warn, None, fields, format_args!("{name} {how}: {why}"));
        self.send(Origin::Lock(lock), Code::Lost);
        self.recheck_lock_requirers(lock);
        self.set_lock_timer(lock);
        self.expire_lock(lock);
    }

    /// Gives up what is due: before the input of a step is handled, and when a timer has fired.
    pub(crate) fn expire_locks(&mut self) {
        for lock in self.all_locks() {
            self.expire_lock(lock);
        }
    }

    pub(crate) fn expire_lock(&mut self, lock: LockIx) {
        if let Some(Hold::Held { until: Some(until), .. }) = self.lock_state(lock).map(|state| state.hold)
            && self.give_up_at(lock, until) <= self.now
        {
            if let Some(state) = self.plan_state.locks.get_mut(lock.index()) {
                state.wait = LockWait::NotRenewed;
            }
            // It looks for processes to kill, too.
            return self.lost(lock, until, "given up");
        }
        if let Some(Hold::Ending { until }) = self.lock_state(lock).map(|state| state.hold)
            && self.kill_at(lock, until) <= self.now
        {
            let (state, timers) = (self.plan_state.locks.get_mut(lock.index()), &mut self.timers);
            if let Some(state) = state {
                timers.cancel(&mut state.timer);
                state.hold = Hold::Free;
            }
            self.kill_lock_requirers(lock);
        }
    }

    /// Kills the processes of the jobs that require a lock, also during hooks and drain times.
    fn kill_lock_requirers(&mut self, lock: LockIx) {
        let jobs: Vec<JobIx> = self.plan_state.graph.lock_requirers(lock).to_vec();
        let jobs: Vec<JobIx> = jobs.into_iter().filter(|job| self.job(*job).has_process()).collect();
        for job in &jobs {
            let fields = self.killing(*job, Duration::ZERO);
            let name = self.origin_name(Origin::Lock(lock));
            let message = format_args!("sending SIGKILL: another supervisor may get {name}");
            self.log(Level::Warn, Some(*job), fields, message);
            let then_start = self.is_before_shutdown();
            self.begin_stop_then(*job, StopReason::SourceGone, then_start);
            self.kill(*job, KillReason::LockLost);
        }
        // Processes that a run has left behind have got SIGTERM.
        self.kill_all_orphans();
    }

    /// S4: releases each lock in a shutdown when the jobs that require it have ended. A lock that no job requires is released
    /// at the exit.
    pub(crate) fn release_locks(&mut self) {
        for lock in self.all_locks() {
            let jobs = self.plan_state.graph.lock_requirers(lock);
            let is_idle = !jobs.is_empty() && jobs.iter().all(|job| self.job(*job).has_ended());
            let (state, timers) = (self.plan_state.locks.get_mut(lock.index()), &mut self.timers);
            if let Some(state) = state.filter(|state| !state.released && is_idle && self.orphans.is_empty()) {
                state.released = true;
                state.hold = Hold::Free;
                timers.cancel(&mut state.timer);
                self.effects.push(Effect::ReleaseLock { lock });
            }
        }
    }

    /// The machine was asleep for this long since the supervisor started.
    pub(crate) fn set_asleep(&mut self, asleep: Duration) {
        if self.asleep != asleep {
            self.asleep = asleep;
            self.renew_lock_timers();
            self.expire_locks();
        }
    }

    /// Sets all timers again: the clock or the stop times of jobs have changed.
    pub(crate) fn renew_lock_timers(&mut self) {
        for lock in self.all_locks() {
            self.set_lock_timer(lock);
        }
    }

    fn set_lock_timer(&mut self, lock: LockIx) {
        let at = match self.lock_state(lock).map(|state| state.hold) {
            Some(Hold::Held { until: Some(until), .. }) => Some(self.give_up_at(lock, until)),
            Some(Hold::Ending { until }) => Some(self.kill_at(lock, until)),
            _ => None,
        };
        let (state, timers) = (self.plan_state.locks.get_mut(lock.index()), &mut self.timers);
        if let Some(state) = state {
            timers.cancel(&mut state.timer);
            state.timer = at.map(|at| timers.set(at, TimerKind::Lock(lock)));
        }
    }

    /// When the jobs that require a lock begin to stop.
    fn give_up_at(&self, lock: LockIx, until: Time) -> Time {
        let stop_time = self.plan_state.graph.lock_stop_time(lock);
        let before = self.plan().locks.get(lock.index()).map(|lock| lock.give_up_before(stop_time));
        self.awake_time(until, before.unwrap_or_default())
    }

    /// When their processes get SIGKILL.
    fn kill_at(&self, lock: LockIx, until: Time) -> Time {
        let before = self.plan().locks.get(lock.index()).map(Lock::margin);
        self.awake_time(until, before.unwrap_or_default())
    }

    /// A time so long before another one, which is on the clock that counts while the machine is asleep, on the clock of the
    /// core.
    fn awake_time(&self, time: Time, before: Duration) -> Time {
        let before = u64::try_from((before + self.asleep).as_nanos()).unwrap_or(u64::MAX);
        Time::from_nanos(time.as_nanos().saturating_sub(before))
    }

    fn recheck_lock_requirers(&mut self, lock: LockIx) {
        let state = &mut self.plan_state;
        state.recheck.extend(state.graph.lock_requirers(lock));
        state.reachability_dirty = true;
    }

    fn set_lock_variable(&mut self, lock: LockIx) {
        let fencing = self.lock_state(lock).and_then(LockState::fencing);
        Arc::make_mut(&mut self.plan_state.variables).set_lock(lock, fencing);
    }

    /// What a required lock is doing, as a clause after "which".
    pub(crate) fn lock_words(&self, lock: LockIx) -> String {
        match self.lock_state(lock) {
            None => "does not exist".into(),
            Some(state) if state.is_held() => "is held".into(),
            Some(state) => format!("is not held: {}", state.wait.words()),
        }
    }
}
