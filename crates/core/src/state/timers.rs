//! Timers. Each has an owner that can cancel it.

use crate::ids::{CheckIx, JobIx, RunId};
use crate::state::timer_queue::{Place, TimerQueue};
use crate::time::Time;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// A timer of one job.
    Job(JobIx, JobTimer),
    /// The orphaned process group of a run has not exited after SIGTERM (P4).
    OrphanedGroup(RunId),
    /// The jobs that a reload replaces have not stopped (R3).
    ReloadTimeout,
    /// The global stop timeout (S4).
    ShutdownTimeout,
    /// Some processes have not exited after SIGKILL.
    KillTimeout,
}

/// What a timer of a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobTimer {
    /// `when.timeout` (W5).
    StartTimeout,
    /// The next tick of a periodic job (W4).
    Tick,
    /// The timeout of a run (P5).
    RunTimeout,
    /// The restart delay (W8).
    Restart,
    /// The longest wait for stop hooks (S2).
    Hooks,
    /// The longest wait for the deregistration to be confirmed (S2).
    Deregister,
    /// The drain time (S2).
    Drain,
    /// The process has not exited after its stop signal (S2, H8).
    Kill,
    /// A check is due (H3).
    Check(CheckIx),
    /// The timeout of a check (P5).
    CheckTimeout(CheckIx),
    /// A heartbeat is due (H6).
    Heartbeat,
}

/// A timer that can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId(Place);

impl TimerId {
    /// When it fires.
    pub(crate) const fn at(self) -> Time {
        self.0.0
    }
}

/// All timers. Of those with the same time, the one set first fires first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: TimerQueue<TimerKind>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, kind: TimerKind) -> TimerId {
        TimerId(self.queue.add(at, kind))
    }

    /// Cancels a timer, if it has not fired.
    pub(crate) fn cancel(&mut self, timer: &mut Option<TimerId>) {
        if let Some(TimerId(place)) = timer.take() {
            self.queue.remove(place);
        }
    }

    /// When the next timer fires.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.next()
    }

    /// Takes the next timer that has fired.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<TimerKind> {
        if self.next()? > now {
            return None;
        }
        self.queue.pop().map(|(_, kind)| kind)
    }

    /// Translates job indices after a reload, and cancels the timers of removed jobs.
    pub(crate) fn move_jobs(&mut self, moved: impl Fn(JobIx) -> Option<JobIx>) {
        self.queue.change(|kind| match kind {
            TimerKind::Job(job, timer) => Some(TimerKind::Job(moved(job)?, timer)),
            other => Some(other),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}
