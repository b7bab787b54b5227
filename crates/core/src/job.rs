//! One job: what it is doing, and what is wanted of it.
//!
//! ```text
//! state       means                                         leaves it by
//! ---------   -------------------------------------------   ------------------------------------------------------
//! Waiting     no process; waits for its trigger             trigger → Starting (without `exec`: Running)
//!                                                           turn, remembered event → Starting
//!                                                           can never run again → stops
//! Starting    a process was asked for                       Started → Running
//!                                                           StartFailed → as after an exit
//! Running     has a process; without `exec`: has begun      exit → Waiting, Delaying or Starting, or stops
//! Delaying    no process; a restart is near                 delay over → Starting
//! Complete    will never run again                          never
//!
//! wanted      means                                         goes on when
//! ---------   -------------------------------------------   ------------------------------------------------------
//! Up          it runs as its rules say
//! Hooks       `stopping` was sent; the jobs that run at     all of them are complete, or `stopTimeout` has passed
//!             it are waited for
//! Drain       its service has left the catalog              `drain` has passed, or the process has ended
//! Term        its process was asked to end                  the process has ended; then it is Complete
//! ```
//!
//! Waiting, Starting, Running and Delaying go with Up; with Hooks a job is Waiting, Starting or Running; with Drain
//! and Term it is Starting or Running. What is wanted only moves down the list. A job is never brought back.
//!
//! Every change goes through [`JobState::transition`], which knows the table.

use alloc::vec::Vec;

use crate::health::HealthState;
use crate::ids::{EventId, RunId};
use crate::input::ExitStatus;
use crate::time::Time;
use crate::timers::TimerId;

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No process; it waits for its trigger.
    Waiting,
    /// A process was asked for.
    Starting,
    /// It has a process; without `exec`, it has begun.
    Running,
    /// No process; a restart is near.
    Delaying,
    /// It will never run again.
    Complete,
}

/// What is wanted of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aim {
    /// It runs as its rules say.
    Up,
    /// `stopping` was sent, and the jobs that run at it are waited for.
    Hooks,
    /// Its service has left the catalog, and it drains.
    Drain,
    /// Its process was asked to end.
    Term,
}

/// Everything the core knows about one job.
#[derive(Debug)]
pub(crate) struct JobState {
    pub(crate) state: State,
    pub(crate) aim: Aim,
    /// The run that goes on, in `Starting` and `Running`.
    pub(crate) run: Option<RunId>,
    pub(crate) pid: Option<i32>,
    pub(crate) started_at: Time,
    /// Whether it was ever started.
    pub(crate) has_run: bool,
    /// Whether its trigger has come: with `once`, it then counts no more.
    pub(crate) triggered: bool,
    /// An event or a turn that came while it ran (W7, W4).
    pub(crate) remembered: Option<EventId>,
    /// Which conditions of `all` hold (W12).
    pub(crate) holds: Vec<bool>,
    /// How often it was restarted.
    pub(crate) restarts: u64,
    /// How many runs in a row ended early (W8).
    pub(crate) early: u32,
    /// How many turns have come (W4).
    pub(crate) turns: u64,
    /// The event that led to the present run, or to the next one.
    pub(crate) cause: Option<EventId>,
    /// How its last run ended.
    pub(crate) last_exit: Option<ExitStatus>,
    /// The exit code of its last run if that failed.
    pub(crate) failure: Option<u8>,
    /// Whether the present run has met its timeout.
    pub(crate) timed_out: bool,
    /// Whether the present run is to be replaced because it is unhealthy (H8).
    pub(crate) replacing: bool,
    /// A signal that waits for the process to be there.
    pub(crate) signal_at_start: Option<crate::plan::Signal>,
    pub(crate) health: Option<HealthState>,
    /// What the catalog was last told to want.
    pub(crate) wanted: crate::effect::Wanted,
    /// Whether it was ever to be registered since it last left the catalog.
    pub(crate) give_up: Option<TimerId>,
    pub(crate) turn: Option<TimerId>,
    pub(crate) run_timeout: Option<TimerId>,
    pub(crate) delay: Option<TimerId>,
    pub(crate) stop_timer: Option<TimerId>,
    pub(crate) heartbeat: Option<TimerId>,
}
