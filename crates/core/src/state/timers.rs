//! Timers. Each has an owner that can cancel it.

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{CheckIx, FileIx, JobIx, LockIx, RunId};
use crate::plan::diff::Moves;
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::{Fingerprint, Name, Order};
use crate::time::Time;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TimerKind {
    /// A timer of one job.
    Job(JobIx, JobTimer),
    /// A timer of one rendered file.
    File(FileIx, FileTimer),
    /// A lock is given up, or its jobs are killed (D14).
    Lock(LockIx),
    /// The orphans of a run have not exited after SIGTERM (P4).
    Orphans(RunId),
    /// The jobs that a reload replaces have not stopped (R3).
    ReloadTimeout,
    /// A rolling restart has waited long enough for a job (W20).
    RollingRestart,
    /// The hooks of a shutdown have used up their time (S4).
    ShutdownSignals,
    /// The processes have used up theirs (S4).
    ShutdownTimeout,
    /// Some processes have not exited after SIGKILL.
    KillTimeout,
}

/// What a timer of a rendered file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum FileTimer {
    /// The inputs have been calm for long enough (D15).
    Debounce,
    /// The next attempt after the system has refused one (D15).
    Retry,
    /// The timeout of the test program.
    TestTimeout,
}

/// What a timer of a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum JobTimer {
    /// `when.timeout` (W5).
    StartTimeout,
    /// The next tick of a periodic job (W4).
    Tick,
    /// The process of a run has not executed its program (P3).
    ExecTimeout,
    /// The timeout of a run (P5).
    RunTimeout,
    /// The restart delay (W8).
    Restart,
    /// The delay of a start that an action requested in a ring (W14).
    SpacedStart,
    /// The longest wait for stop hooks (S2).
    Hooks,
    /// The longest wait for the deregistration to be confirmed (S2).
    Deregister,
    /// The drain time (S2).
    Drain,
    /// The process has not exited after its stop signal and gets the next one (S9).
    Escalate,
    /// The process has not exited after its stop signal (S2, H8).
    Kill,
    /// The process has not exited after SIGKILL (P6).
    Abandon,
    /// Other processes of a run have not exited a moment after its own (S14).
    Outlived,
    /// A check is due (H3).
    Check(CheckIx),
    /// The timeout of a check (P5).
    CheckTimeout(CheckIx),
    /// No `WATCHDOG=1` came in time (H12).
    Watchdog,
    /// A heartbeat is due (H6).
    Heartbeat,
}

/// A timer that can be cancelled: when it fires, and its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TimerId(Time, u64);

impl TimerId {
    /// When it fires.
    pub(crate) const fn at(self) -> Time {
        self.0
    }

    /// A number by which timers are ordered as they fire.
    #[cfg(feature = "fingerprint")]
    fn order(self) -> u128 {
        u128::from(self.0.as_nanos()) << 64 | u128::from(self.1)
    }

    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(self, print: &mut Fingerprint) {
        print.order(Order::Timer, self.order());
    }
}

/// All timers. Of those with the same time, the one set first fires first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Timers {
    queue: BTreeMap<TimerId, TimerKind>,
    serial: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, kind: TimerKind) -> TimerId {
        self.serial += 1;
        let timer = TimerId(at, self.serial);
        self.queue.insert(timer, kind);
        timer
    }

    /// Cancels the timer of an owner, if there is one.
    pub(crate) fn cancel(&mut self, timer: &mut Option<TimerId>) {
        if let Some(timer) = timer.take() {
            self.remove(timer);
        }
    }

    /// Changes what happens when a timer fires, if it has not.
    pub(crate) fn replace(&mut self, timer: TimerId, kind: TimerKind) {
        if let Some(old) = self.queue.get_mut(&timer) {
            *old = kind;
        }
    }

    /// Removes a timer, if it has not fired.
    pub(crate) fn remove(&mut self, timer: TimerId) {
        self.queue.remove(&timer);
    }

    /// When the next timer fires.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.first_key_value().map(|(timer, _)| timer.at())
    }

    /// Takes the next timer that has fired.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<TimerKind> {
        if self.next()? > now {
            return None;
        }
        self.queue.pop_first().map(|(_, kind)| kind)
    }

    /// Translates indices after a reload, and cancels the timers of removed jobs and files.
    pub(crate) fn follow(&mut self, moves: &Moves) {
        self.queue.retain(|_, kind| match kind {
            TimerKind::Job(job, _) => moves.job(*job).map(|to| *job = to).is_some(),
            TimerKind::File(file, _) => moves.file(*file).map(|to| *file = to).is_some(),
            // They are set again for the new plan.
            TimerKind::Lock(_) => false,
            _ => true,
        });
    }

    /// Adds all timers in their order.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint) {
        print.list(&self.queue, |print, (timer, kind)| {
            timer.fingerprint(print);
            print.time(timer.at());
            print.add(core::mem::discriminant(kind));
            match kind {
                TimerKind::Job(job, timer) => print.add((job, timer)),
                TimerKind::File(file, timer) => print.add((file, timer)),
                TimerKind::Lock(lock) => print.add(lock),
                TimerKind::Orphans(run) => print.name(Name::Run, run.0),
                TimerKind::ReloadTimeout
                | TimerKind::ShutdownSignals
                | TimerKind::ShutdownTimeout
                | TimerKind::RollingRestart
                | TimerKind::KillTimeout => {}
            }
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}
