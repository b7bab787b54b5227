//! Deadlines. Each has an owner that can take it back; nothing is left behind when it does.

use crate::ids::{CheckIx, JobIx, RunId};
use crate::state::timer_queue::{Place, TimerQueue};
use crate::time::Time;

/// What happens at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// A job's `when.timeout` has passed (W5).
    GiveUp(JobIx),
    /// A periodic job's turn has come (W4).
    Turn(JobIx),
    /// A run has used up its time (P5).
    RunTimeout(JobIx),
    /// A job's delay before a restart is over (W8).
    Restart(JobIx),
    /// A job has waited long enough for the jobs that run at its `stopping` (S2).
    Hooks(JobIx),
    /// The catalog has had its time to let a job's service go (S2).
    Withdrawn(JobIx),
    /// A job has drained (S2).
    Drained(JobIx),
    /// A job was asked to end and did not (H8, and single jobs that are stopped).
    KillAfterTimeout(JobIx),
    /// A check is due (H3).
    Check(JobIx, CheckIx),
    /// A check has used up its time (P5).
    CheckTimeout(JobIx, CheckIx),
    /// A heartbeat is due (H6).
    Heartbeat(JobIx),
    /// What is left of a run's process group has had its time (P4).
    OrphanedGroup(RunId),
    /// What a reload replaces has had its time to stop (R3).
    Reload,
    /// The global stop time has passed (S4).
    StopTime,
    /// Everything was killed, and something is still there.
    LastWait,
}

/// A deadline that can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId(Place);

impl TimerId {
    /// When it comes.
    pub(crate) const fn at(self) -> Time {
        self.0.0
    }
}

/// All deadlines, the nearest first; of equal ones, the one set first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    alarms: TimerQueue<TimerKind>,
}

impl Timers {
    /// Sets a deadline.
    pub(crate) fn set(&mut self, at: Time, alarm: TimerKind) -> TimerId {
        TimerId(self.alarms.add(at, alarm))
    }

    /// Takes a deadline back, if it is still ahead.
    pub(crate) fn cancel(&mut self, timer: &mut Option<TimerId>) {
        if let Some(TimerId(place)) = timer.take() {
            self.alarms.remove(place);
        }
    }

    /// The nearest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.alarms.next()
    }

    /// Takes out the nearest deadline, if it has come.
    pub(crate) fn due(&mut self, now: Time) -> Option<TimerKind> {
        if self.next()? > now {
            return None;
        }
        self.alarms.pop().map(|(_, alarm)| alarm)
    }

    /// Jobs are in other places now; deadlines of those that are nowhere are taken back.
    pub(crate) fn rename(&mut self, place: impl Fn(JobIx) -> Option<JobIx>) {
        self.alarms.change(|alarm| {
            Some(match alarm {
                TimerKind::GiveUp(job) => TimerKind::GiveUp(place(job)?),
                TimerKind::Turn(job) => TimerKind::Turn(place(job)?),
                TimerKind::RunTimeout(job) => TimerKind::RunTimeout(place(job)?),
                TimerKind::Restart(job) => TimerKind::Restart(place(job)?),
                TimerKind::Hooks(job) => TimerKind::Hooks(place(job)?),
                TimerKind::Withdrawn(job) => TimerKind::Withdrawn(place(job)?),
                TimerKind::Drained(job) => TimerKind::Drained(place(job)?),
                TimerKind::KillAfterTimeout(job) => TimerKind::KillAfterTimeout(place(job)?),
                TimerKind::Check(job, check) => TimerKind::Check(place(job)?, check),
                TimerKind::CheckTimeout(job, check) => TimerKind::CheckTimeout(place(job)?, check),
                TimerKind::Heartbeat(job) => TimerKind::Heartbeat(place(job)?),
                alarm @ (TimerKind::OrphanedGroup(_)
                | TimerKind::Reload
                | TimerKind::StopTime
                | TimerKind::LastWait) => alarm,
            })
        });
    }

    /// How many deadlines are ahead.
    pub(crate) fn len(&self) -> usize {
        self.alarms.len()
    }
}
