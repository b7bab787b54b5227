//! Locks: who has them, and when their jobs stop (D14).
//!
//! A holder can rely on a lock until the TTL has passed since it sent the last request that Consul has answered with
//! yes:
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

pub(crate) mod report;
mod state;

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::context::{Context, Decision};
use crate::effect::Effect;
use crate::event::Code;
use crate::ids::LockIx;
use crate::lock_report::{LockReport, LockWait};
use crate::locks::state::{Hold, LockState};
use crate::log_entry::LogEvent;
use crate::plan::diff::Moves;
use crate::plan::{Level, Plan};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::Fingerprint;
use crate::state::journal::Origin;
use crate::state::phase::Phase;
use crate::state::timers::TimerKind;
use crate::time::Time;

pub use report::LockOverview;

/// The locks of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Locks {
    states: Vec<LockState>,
}

impl Locks {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { states: plan.locks.iter().map(|_| LockState::default()).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = LockIx> + use<> {
        (0..self.states.len()).map(LockIx::at)
    }

    pub(crate) fn is_held(&self, lock: LockIx) -> bool {
        self.states.get(lock.index()).is_some_and(LockState::is_held)
    }

    /// The fencing number, while the lock is held.
    pub(crate) fn fencing(&self, lock: LockIx) -> Option<u64> {
        self.states.get(lock.index())?.fencing()
    }

    /// Returns true if an event of a lock has come and still describes its state.
    pub(crate) fn event_holds(&self, lock: LockIx, code: Code) -> bool {
        code == Code::Acquired && self.is_held(lock)
    }

    /// Acquires the locks that are not held yet, if they are local. Their fencing numbers start with the seconds since
    /// 1970, so that they also grow when the supervisor is restarted.
    pub(crate) fn acquire_local(&mut self, context: &mut Context<'_>) {
        if context.plan.has_shared_locks() {
            return;
        }
        for lock in self.all() {
            if !self.is_held(lock) {
                let fencing = context.unix_now.as_secs().max(context.ids.fencing + 1);
                context.ids.fencing = fencing;
                self.acquired(lock, fencing, None, context);
            }
        }
    }

    /// Handles what Consul has answered.
    pub(crate) fn reported(&mut self, lock: LockIx, report: LockReport, context: &mut Context<'_>) {
        let Some(state) = self.states.get_mut(lock.index()) else { return };
        match (report, state.hold) {
            (LockReport::Held { fencing, until }, Hold::Held { .. }) => {
                state.hold = Hold::Held { fencing, until: Some(until) };
                self.set_timer(lock, context);
            }
            (LockReport::Held { fencing, until }, Hold::Free | Hold::Ending { .. }) => {
                if context.phase == Phase::Running && give_up_at(lock, until, context) > context.now {
                    self.acquired(lock, fencing, Some(until), context);
                }
            }
            (LockReport::NotHeld(wait), hold) => {
                let is_taken = matches!(wait, LockWait::Taken(_));
                state.wait = wait;
                match hold {
                    Hold::Held { until, .. } => {
                        let until = if is_taken { Some(Time::ZERO) } else { until };
                        self.lost(lock, until.unwrap_or(Time::ZERO), "lost", context);
                    }
                    Hold::Ending { .. } if is_taken => {
                        state.hold = Hold::Ending { until: Time::ZERO };
                        self.expire_one(lock, context);
                    }
                    Hold::Ending { .. } | Hold::Free => {}
                }
            }
        }
    }

    fn acquired(&mut self, lock: LockIx, fencing: u64, until: Option<Time>, context: &mut Context<'_>) {
        let state = &mut self.states[lock.index()];
        (state.hold, state.since) = (Hold::Held { fencing, until }, Some(context.now));
        self.set_timer(lock, context);
        context.decide(Decision::SetLockVariable(lock));
        let name = context.name(Origin::Lock(lock));
        let message = format!("{name} acquired, fencing number {fencing}");
        context.log(Level::Info, LogEvent::Event(Code::Acquired), message);
        context.decide(Decision::Send(Origin::Lock(lock), Code::Acquired));
        context.decide(Decision::Recheck(Origin::Lock(lock)));
    }

    /// The lock is lost, or given up before another supervisor can have it: its jobs stop.
    fn lost(&mut self, lock: LockIx, until: Time, how: &str, context: &mut Context<'_>) {
        let state = &mut self.states[lock.index()];
        (state.hold, state.since) = (Hold::Ending { until }, Some(context.now));
        let (why, name) = (state.wait.words(), context.name(Origin::Lock(lock)));
        context.decide(Decision::SetLockVariable(lock));
        let fields = LogEvent::Event(Code::Lost).fields().cause(why.as_str());
        context.log(Level::Warn, fields, format!("{name} {how}: {why}"));
        context.decide(Decision::Send(Origin::Lock(lock), Code::Lost));
        context.decide(Decision::Recheck(Origin::Lock(lock)));
        self.set_timer(lock, context);
        self.expire_one(lock, context);
    }

    /// Gives up what is due: before the input of a step is handled, and when a timer has fired.
    pub(crate) fn expire(&mut self, context: &mut Context<'_>) {
        for lock in self.all() {
            self.expire_one(lock, context);
        }
    }

    pub(crate) fn expire_one(&mut self, lock: LockIx, context: &mut Context<'_>) {
        let Some(state) = self.states.get_mut(lock.index()) else { return };
        match state.hold {
            Hold::Held { until: Some(until), .. } if give_up_at(lock, until, context) <= context.now => {
                state.wait = LockWait::NotRenewed;
                // The timer fires again, to kill the processes.
                self.lost(lock, until, "given up", context);
            }
            Hold::Ending { until } if kill_at(lock, until, context) <= context.now => {
                context.timers.cancel(&mut state.timer);
                state.hold = Hold::Free;
                context.decide(Decision::KillRequirers(lock));
            }
            Hold::Free | Hold::Held { .. } | Hold::Ending { .. } => {}
        }
    }

    /// S4: the jobs that require a lock have ended in a shutdown: it is released, once.
    pub(crate) fn release(&mut self, lock: LockIx, context: &mut Context<'_>) {
        let Some(state) = self.states.get_mut(lock.index()) else { return };
        if !core::mem::replace(&mut state.released, true) {
            state.hold = Hold::Free;
            context.timers.cancel(&mut state.timer);
            context.effect(Effect::ReleaseLock { lock });
        }
    }

    /// Sets all timers again: the clock or the stop times of jobs have changed.
    pub(crate) fn renew_timers(&mut self, context: &mut Context<'_>) {
        for lock in self.all() {
            self.set_timer(lock, context);
        }
    }

    fn set_timer(&mut self, lock: LockIx, context: &mut Context<'_>) {
        let state = &mut self.states[lock.index()];
        let at = match state.hold {
            Hold::Held { until: Some(until), .. } => Some(give_up_at(lock, until, context)),
            Hold::Ending { until } => Some(kill_at(lock, until, context)),
            Hold::Free | Hold::Held { until: None, .. } => None,
        };
        context.timers.cancel(&mut state.timer);
        state.timer = at.map(|at| context.timers.set(at, TimerKind::Lock(lock)));
    }

    /// A reload has replaced the plan: unchanged locks stay as they are. Their timers are set again.
    pub(crate) fn continue_from(&mut self, old: Self, moves: &Moves) {
        for (state, to) in old.states.into_iter().zip(&moves.locks) {
            if let Some(to) = to.and_then(|to| self.states.get_mut(to.index())) {
                *to = state;
            }
        }
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint) {
        print.list(&self.states, |print, state| print.add(state.fingerprint()));
    }
}

/// When the jobs that require a lock begin to stop.
fn give_up_at(lock: LockIx, until: Time, context: &Context<'_>) -> Time {
    let before = context.plan.locks[lock.index()].give_up_before(context.graph.lock_stop_time(lock));
    awake_time(until, before, context)
}

/// When their processes get SIGKILL.
fn kill_at(lock: LockIx, until: Time, context: &Context<'_>) -> Time {
    awake_time(until, context.plan.locks[lock.index()].margin(), context)
}

/// A time so long before another one, which is on the clock that counts while the machine is asleep, on the clock of
/// the core.
fn awake_time(time: Time, before: Duration, context: &Context<'_>) -> Time {
    let before = u64::try_from((before + context.asleep).as_nanos()).unwrap_or(u64::MAX);
    Time::from_nanos(time.as_nanos().saturating_sub(before))
}
