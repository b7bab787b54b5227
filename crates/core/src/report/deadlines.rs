//! The timers of a job.

use alloc::vec::Vec;

use crate::ids::JobIx;
use crate::sort_by;
use crate::state::job::{State, StopStage};
use crate::state::timers::TimerId;
use crate::supervisor::Core;
use crate::time::Time;

/// A timer of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When it fires.
    pub at: Time,
    /// What happens then.
    pub what: DeadlineKind,
}

/// What happens when a timer of a job fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineKind {
    /// It gives up waiting for its trigger (W5).
    StartTimeout,
    /// Its next tick is due (W4).
    Tick,
    /// It is restarted (W8).
    Restart,
    /// Its start fails, because its program was not executed in time (P3).
    ExecTimeout,
    /// Its run reaches its timeout (P5).
    RunTimeout,
    /// It stops without waiting for its hooks any longer (S2).
    Hooks,
    /// It stops without waiting for its deregistration any longer (S2).
    Deregister,
    /// Its drain time has passed (S2).
    Drain,
    /// It gets the next signal of its escalation (S9).
    Escalate,
    /// It is killed because it has not exited after its stop signal.
    Kill,
}

impl DeadlineKind {
    const ALL: [Self; 10] = [
        Self::StartTimeout,
        Self::Tick,
        Self::Restart,
        Self::ExecTimeout,
        Self::RunTimeout,
        Self::Hooks,
        Self::Deregister,
        Self::Drain,
        Self::Escalate,
        Self::Kill,
    ];

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in the JSON of the control socket. These names are part of the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StartTimeout => "startTimeout",
            Self::Tick => "tick",
            Self::Restart => "restart",
            Self::ExecTimeout => "execTimeout",
            Self::RunTimeout => "timeout",
            Self::Hooks => "hooks",
            Self::Deregister => "deregistration",
            Self::Drain => "drain",
            Self::Escalate => "escalate",
            Self::Kill => "kill",
        }
    }
}

impl Core {
    pub(crate) fn deadlines_of(&self, job: JobIx) -> Vec<Deadline> {
        let state = self.job(job);
        let stage = match state.stop_stage() {
            Some(StopStage::Hooks) => DeadlineKind::Hooks,
            Some(StopStage::Deregister) => DeadlineKind::Deregister,
            Some(StopStage::Drain) => DeadlineKind::Drain,
            Some(StopStage::Requirers | StopStage::Terminate) | None => DeadlineKind::Kill,
        };
        let timeout = match state.state() {
            State::Starting => DeadlineKind::ExecTimeout,
            _ => DeadlineKind::RunTimeout,
        };
        let kill = state.run().map_or(DeadlineKind::Kill, |run| {
            let stop = &self.planned(job).stop;
            let killed_at = run.stop_signal_at.map(|at| at + stop.kill_timeout(self.plan().stop_timeout));
            let is_before = run.kill_timer.map(TimerId::at) < killed_at;
            match stop.escalation.get(run.escalated).filter(|_| is_before) {
                None => DeadlineKind::Kill,
                Some(_) => DeadlineKind::Escalate,
            }
        });
        let all = [
            (state.start_timeout, DeadlineKind::StartTimeout),
            (state.ticks.timer, DeadlineKind::Tick),
            (state.restart_timer(), DeadlineKind::Restart),
            (state.run().filter(|_| state.state() != State::Outlived).and_then(|run| run.timeout), timeout),
            (state.stop().and_then(|stop| stop.timer), stage),
            (state.run().and_then(|run| run.kill_timer), kill),
        ];
        let mut deadlines: Vec<Deadline> = all
            .into_iter()
            .filter_map(|(timer, what)| timer.map(|timer| Deadline { at: timer.at(), what }))
            .collect();
        sort_by(&mut deadlines, |one, other| one.at.cmp(&other.at));
        deadlines
    }
}
