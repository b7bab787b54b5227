//! One run of a job, and the record of the last one.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::RunId;
use crate::input::ExitStatus;
use crate::plan::Job;
use crate::state::journal::{EndReason, Event, Origin};
use crate::state::timers::TimerId;
use crate::time::{Time, fmt_duration};
use crate::variables::Overrides;

/// A run: its process was requested, or has executed its program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// The variables of `putenv` that it was started with.
    #[serde(skip)]
    pub(crate) overrides: Arc<Overrides>,
    /// The timeout of the start (P3), from then on that of the run (P5), and after the exit of its process the time
    /// until it is logged who is left (S14).
    pub(crate) timeout: Option<TimerId>,
    /// The next signal of the escalation, or SIGKILL, follows if the process has not exited after its stop signal by
    /// then.
    pub(crate) kill_timer: Option<TimerId>,
    /// It is abandoned if it has not exited after SIGKILL by then (P6).
    pub(crate) abandon_timer: Option<TimerId>,
    /// True if it has reached its timeout.
    pub(crate) timed_out: bool,
    /// True if the supervisor has sent it SIGKILL.
    pub(crate) killed: bool,
    /// True if the supervisor has sent it any signal.
    pub(crate) signalled: bool,
    /// True if it was unhealthy and was sent its stop signal for a restart (H8).
    pub(crate) replaced: bool,
    /// How many signals of the escalation were sent (S9).
    pub(crate) escalated: usize,
    /// When it was last sent its stop signal.
    pub(crate) stop_signal_at: Option<Time>,
    /// What its process has reported about itself; `None` if nothing.
    pub(crate) notified: Option<Box<Notified>>,
}

/// What a process has reported about itself (H11).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Notified {
    pub(crate) readiness: Readiness,
    /// Its last `STATUS=`.
    pub(crate) status: Option<String>,
    /// When the current second of `ready` events began, and how many there were in it.
    pub(crate) announced: (Time, u8),
}

/// How many `ready` events one process causes per second. A process that sends READY in a loop must not fill the
/// log and start other jobs all the time.
pub(crate) const MAX_READY_PER_SECOND: u8 = 5;

impl Notified {
    /// Returns true if the job may send another `ready` now.
    pub(crate) fn may_announce(&mut self, now: Time) -> bool {
        let (since, count) = self.announced;
        let count = if now.since(since) >= Duration::from_secs(1) { 0 } else { count };
        if count == 0 {
            self.announced.0 = now;
        }
        self.announced.1 = count.saturating_add(1);
        count < MAX_READY_PER_SECOND
    }
}

/// The readiness that a process has reported (H11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Readiness {
    /// It has not said so yet.
    Starting,
    /// It is ready.
    Ready,
    /// It was ready, and reloads its configuration. It still counts as ready.
    Reloading,
    /// It stops by itself.
    Stopping,
}

impl Readiness {
    /// Returns true if its job can be healthy.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Reloading)
    }

    /// The word in `status` and in the JSON of the control socket. These words are part of the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Reloading => "reloading",
            Self::Stopping => "stopping",
        }
    }
}

impl Run {
    /// A run whose process is being started; `timeout` is the timeout of the start.
    pub(crate) const fn new(id: RunId, overrides: Arc<Overrides>, timeout: TimerId) -> Self {
        Self {
            id,
            overrides,
            timeout: Some(timeout),
            kill_timer: None,
            abandon_timer: None,
            timed_out: false,
            killed: false,
            signalled: false,
            replaced: false,
            notified: None,
            escalated: 0,
            stop_signal_at: None,
        }
    }

    /// The same run, once its program was executed. What it was sent before still counts.
    pub(crate) fn executed(&mut self) -> Self {
        Self {
            id: self.id,
            overrides: Arc::clone(&self.overrides),
            timeout: None,
            kill_timer: self.kill_timer.take(),
            abandon_timer: self.abandon_timer.take(),
            timed_out: self.timed_out,
            killed: self.killed,
            signalled: self.signalled,
            replaced: self.replaced,
            notified: self.notified.take(),
            escalated: self.escalated,
            stop_signal_at: self.stop_signal_at,
        }
    }

    /// The same run after the exit of its process, while other processes of it run (S14). Their timeout stays.
    pub(crate) fn outlived(&mut self) -> Self {
        Self { notified: None, ..self.executed() }
    }

    /// The readiness that its process has reported.
    pub(crate) fn readiness(&self) -> Readiness {
        self.notified.as_ref().map_or(Readiness::Starting, |notified| notified.readiness)
    }

    pub(crate) fn notified_mut(&mut self) -> &mut Notified {
        self.notified.get_or_insert_with(|| {
            Box::new(Notified { readiness: Readiness::Starting, status: None, announced: (Time::ZERO, 0) })
        })
    }
}

/// How the last run ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LastExit {
    pub(crate) run: RunId,
    pub(crate) status: ExitStatus,
    pub(crate) at: Time,
    /// Its process; `None` if it could not be started.
    pub(crate) pid: Option<i32>,
    /// True if the job counts the exit status as a success (W13).
    pub(crate) successful: bool,
    pub(crate) timed_out: bool,
    /// True if the OOM killer has probably killed it.
    pub(crate) out_of_memory: bool,
    /// Why the supervisor ended it; `None` if it exited by itself.
    pub(crate) ended_by: Option<EndReason>,
    /// How long its job had been healthy, if that is suspicious (H9).
    pub(crate) just_healthy: Option<Duration>,
}

impl LastExit {
    /// The record of a run that ended now. The caller sets why, if it did not end by itself.
    pub(crate) fn new(run: RunId, job: &Job, status: ExitStatus, at: Time, pid: Option<i32>) -> Self {
        let successful = job.is_success(status);
        let (timed_out, out_of_memory, ended_by, just_healthy) = (false, false, None, None);
        Self { run, status, at, pid, successful, timed_out, out_of_memory, ended_by, just_healthy }
    }

    /// H9: a suffix for sentences about the exit of a process that had just become healthy: another process may have
    /// answered its check, while this one could not listen.
    pub(crate) fn suspicion(&self) -> String {
        self.just_healthy.map_or_else(String::new, |time| {
            let time = fmt_duration(time);
            format!(", {time} after it became healthy (does another process answer its check?)")
        })
    }

    /// Returns true if the supervisor ended the run because its checks failed (H8).
    pub(crate) fn was_unhealthy(&self) -> bool {
        self.ended_by == Some(EndReason::Unhealthy)
    }

    /// Returns true if the run counts as `exitSuccess`. A run that reached its timeout does not (P5).
    pub(crate) const fn is_success(&self) -> bool {
        self.successful && !self.timed_out
    }
}

/// How many runs have ended, by their result (T4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// The program exited successfully.
    pub success: u64,
    /// The program failed or could not be started, or the supervisor ended the run because its checks failed (H8).
    pub failure: u64,
    /// The run reached its timeout (P5).
    pub timeout: u64,
    /// The supervisor stopped the job, and the program ended in another way than successfully.
    pub stopped: u64,
}

impl RunCounts {
    /// Each result and its number.
    #[must_use]
    pub const fn by_result(&self) -> [(&'static str, u64); 4] {
        let Self { success, failure, timeout, stopped } = *self;
        [("success", success), ("failure", failure), ("timeout", timeout), ("stopped", stopped)]
    }

    /// Counts a run. `failed` is whether it counts as a failure of the job.
    pub(crate) const fn count(&mut self, exit: &LastExit, failed: bool) {
        let count = match (exit.timed_out, failed, exit.is_success()) {
            (true, ..) => &mut self.timeout,
            (_, true, _) => &mut self.failure,
            (.., true) => &mut self.success,
            (.., false) => &mut self.stopped,
        };
        *count += 1;
    }
}

/// What a run was started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// An event.
    Event(Event),
    /// A request of a user.
    ByHand,
    /// The action of a job (W19).
    Action(Origin),
    /// A tick after the first (W4), and the event that started the ticks: processes get its variables (P7).
    Tick(Option<Event>),
}

impl Cause {
    /// The event that started the run.
    #[must_use]
    pub const fn event(&self) -> Option<&Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::ByHand | Self::Action(_) | Self::Tick(_) => None,
        }
    }

    /// The event that started the run or, for a tick, the ticks.
    pub(crate) const fn first_event(&self) -> Option<&Event> {
        match self {
            Self::Event(event) | Self::Tick(Some(event)) => Some(event),
            Self::ByHand | Self::Action(_) | Self::Tick(None) => None,
        }
    }
}
