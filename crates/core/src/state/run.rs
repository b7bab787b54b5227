//! One run of a job, and the record of the last one.

use crate::ids::RunId;
use crate::input::ExitStatus;
use crate::state::journal::Event;
use crate::state::timers::TimerId;
use crate::time::Time;

/// A run: its process was requested, or has executed its program.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// The timeout of the start (P3), and from then on that of the run (P5).
    pub(crate) timeout: Option<TimerId>,
    /// SIGKILL follows if the process has not exited after its stop signal by then.
    pub(crate) kill_timer: Option<TimerId>,
    /// It is abandoned if it has not exited after SIGKILL by then (P6).
    pub(crate) abandon_timer: Option<TimerId>,
    /// True if it has reached its timeout.
    pub(crate) timed_out: bool,
    /// True if the supervisor has sent it SIGKILL.
    pub(crate) killed: bool,
    /// True if it was unhealthy and was sent its stop signal for a restart (H8).
    pub(crate) replaced: bool,
}

impl Run {
    /// A run whose process is being started; `timeout` is the timeout of the start.
    pub(crate) const fn new(id: RunId, timeout: TimerId) -> Self {
        Self {
            id,
            timeout: Some(timeout),
            kill_timer: None,
            abandon_timer: None,
            timed_out: false,
            killed: false,
            replaced: false,
        }
    }

    /// The same run, once its program was executed. What it was sent before still counts.
    pub(crate) const fn executed(&mut self) -> Self {
        Self {
            id: self.id,
            timeout: None,
            kill_timer: self.kill_timer.take(),
            abandon_timer: self.abandon_timer.take(),
            timed_out: self.timed_out,
            killed: self.killed,
            replaced: self.replaced,
        }
    }
}

/// How the last run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastExit {
    pub(crate) run: RunId,
    pub(crate) status: ExitStatus,
    pub(crate) at: Time,
    pub(crate) timed_out: bool,
    /// True if the OOM killer has probably killed it.
    pub(crate) out_of_memory: bool,
}

impl LastExit {
    /// Returns true if the run counts as `exitSuccess`. A run that reached its timeout does not (P5).
    pub(crate) const fn is_success(&self) -> bool {
        self.status.is_success() && !self.timed_out
    }
}

/// What a run was started by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    Event(Event),
    /// A request of a user.
    ByHand,
}

impl Cause {
    pub(crate) const fn event(&self) -> Option<&Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::ByHand => None,
        }
    }
}
