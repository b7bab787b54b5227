//! One job: what it is doing, and what is wanted of it.
//!
//! ```text
//! state       means                                         leaves it by
//! ---------   -------------------------------------------   ------------------------------------------------------
//! Waiting     no process; waits for its trigger             trigger → Starting (without `exec`: Running)
//!                                                           turn, pending_event event → Starting
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
//! Withdraw    its service is to leave the catalog           the catalog says so, or has had its time
//! Drain       its service has left the catalog              `drain` has passed, or the process has ended
//! Term        its process was asked to end                  the process has ended; then it is Complete
//! ```
//!
//! Waiting, Starting, Running and Delaying go with Up; with Hooks a job is Waiting, Starting or Running; with
//! Withdraw, Drain and Term it is Starting or Running. A job is never Complete with Up. What is wanted only moves down
//! the list. A job that is Complete is never brought back; somebody who starts it by hand, and a reload that changes it,
//! give it a new life: a fresh state, with a higher `incarnation`, that has never run.
//!
//! Every change goes through [`JobState::transition`], which knows the table.

use alloc::vec;
use alloc::vec::Vec;

use crate::effect::{Purpose, Wanted};
use crate::ids::{EventId, RunId};
use crate::input::ExitStatus;
use crate::plan::{Job, Signal, Trigger};
use crate::rules::health::HealthState;
use crate::state::journal::Event;
use crate::state::timers::TimerId;
use crate::time::Time;

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
    /// Its service is to leave the catalog, which has not said yet that it has.
    Withdraw,
    /// Its service has left the catalog, and it drains.
    Drain,
    /// Its process was asked to end.
    Term,
}

/// Why a job stops, or has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has run, and can never run again (W9).
    Done,
    /// The same, and its last run failed.
    Failed,
    /// What it waits for cannot come any more (W10).
    Unreachable,
    /// It was not started in time (W5).
    GaveUp,
    /// There was nothing to run and nothing to check.
    Empty,
    /// Somebody has stopped it.
    ByHand,
    /// A reload replaces it, or takes it away.
    Reload,
    /// Everything is being stopped.
    Shutdown,
}

/// Everything the core knows about one job.
#[derive(Debug)]
pub(crate) struct JobState {
    state: State,
    aim: Aim,
    /// How often it was brought back after it was complete.
    pub(crate) incarnation: u64,
    /// The last event before this life began.
    pub(crate) born_after: EventId,
    /// Why it stops or is complete.
    pub(crate) ending: Option<Ending>,
    /// Whether it is to run again when it is complete, in a new life.
    pub(crate) again: bool,
    /// Whether the present run, or the last one, was started by hand.
    pub(crate) by_hand: bool,
    /// Which of all new lives this is, in their order; 0 for the first.
    pub(crate) born: u64,
    /// The last new life of any job before its trigger came.
    pub(crate) triggered_after: u64,
    /// The run that goes on, in `Starting` and `Running`.
    pub(crate) run: Option<RunId>,
    pub(crate) pid: Option<i32>,
    pub(crate) started_at: Time,
    /// When its last run ended.
    pub(crate) ended_at: Option<Time>,
    /// Whether it was ever started.
    pub(crate) has_run: bool,
    /// Whether its trigger has come: with `once`, it then counts no more.
    pub(crate) triggered: bool,
    /// Whether it was started for the shutdown (S3).
    pub(crate) ran_at_shutdown: bool,
    /// An event that came while it ran (W7).
    pub(crate) pending_event: Option<Event>,
    /// Whether a turn came while it ran, and follows (W4).
    pub(crate) pending_tick: bool,
    /// Which conditions of `all` hold (W12).
    pub(crate) holds: Vec<bool>,
    /// How often it was restarted since it was last started by an event; for a periodic job, how often its turn has
    /// come again.
    pub(crate) restarts: u64,
    /// How often it was restarted ever.
    pub(crate) restarts_ever: u64,
    /// How many runs in a row ended early (W8).
    pub(crate) early: u32,
    /// The event that led to the present run, or to the last one.
    pub(crate) cause: Option<Event>,
    /// How its last run ended.
    pub(crate) last_exit: Option<ExitStatus>,
    /// The exit code of its last run if that failed.
    pub(crate) failure: Option<u8>,
    /// Whether the present run has met its timeout.
    pub(crate) timed_out: bool,
    /// Whether the present run was sent SIGKILL from here.
    pub(crate) killed: bool,
    /// Whether memory had run out when its last run ended.
    pub(crate) out_of_memory: bool,
    /// Whether the present run was asked to make way for another (H8).
    pub(crate) replaced: bool,
    /// The signals that wait for the process to be there.
    pub(crate) signals_at_start: Vec<(Signal, Purpose)>,
    pub(crate) health: Option<HealthState>,
    /// What the catalog was last told to want.
    pub(crate) wanted: Wanted,
    /// The next turn of a periodic job.
    pub(crate) turn_at: Time,
    pub(crate) give_up: Option<TimerId>,
    pub(crate) turn: Option<TimerId>,
    pub(crate) run_timeout: Option<TimerId>,
    pub(crate) delay: Option<TimerId>,
    pub(crate) stop_timer: Option<TimerId>,
    pub(crate) heartbeat: Option<TimerId>,
}

impl JobState {
    pub(crate) fn new(job: &Job) -> Self {
        let conditions = match &job.when.trigger {
            Trigger::All { conditions, .. } => conditions.len(),
            _ => 0,
        };
        Self {
            state: State::Waiting,
            aim: Aim::Up,
            incarnation: 0,
            born_after: EventId(0),
            ending: None,
            again: false,
            by_hand: false,
            born: 0,
            triggered_after: 0,
            run: None,
            pid: None,
            started_at: Time::ZERO,
            ended_at: None,
            has_run: false,
            triggered: false,
            ran_at_shutdown: false,
            pending_event: None,
            pending_tick: false,
            holds: vec![false; conditions],
            restarts: 0,
            restarts_ever: 0,
            early: 0,
            cause: None,
            last_exit: None,
            failure: None,
            timed_out: false,
            killed: false,
            out_of_memory: false,
            replaced: false,
            signals_at_start: Vec::new(),
            health: job.health.as_ref().map(HealthState::new),
            wanted: Wanted::Absent,
            turn_at: Time::ZERO,
            give_up: None,
            turn: None,
            run_timeout: None,
            delay: None,
            stop_timer: None,
            heartbeat: None,
        }
    }

    /// The same job in a new life. What others may want to know of the last one is kept, and checks that still go on
    /// are not forgotten: there must not be two of the same (H4).
    pub(crate) fn reborn(&mut self, job: &Job, after: EventId) -> Self {
        let mut new = Self::new(job);
        (new.incarnation, new.born_after) = (self.incarnation + 1, after);
        new.restarts_ever = self.restarts_ever;
        (new.last_exit, new.ended_at) = (self.last_exit, self.ended_at);
        if let (Some(new), Some(old)) = (&mut new.health, self.health.take()) {
            new.take_over(old);
        }
        new
    }

    /// What it is doing.
    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// What is wanted of it.
    pub(crate) const fn aim(&self) -> Aim {
        self.aim
    }

    /// Whether it is to run as its rules say.
    pub(crate) fn is_up(&self) -> bool {
        self.aim == Aim::Up && self.state != State::Complete
    }

    /// Whether it may run again although it is complete, or will soon be: somebody has stopped it by hand, or a reload
    /// is going to replace it.
    pub(crate) fn comes_again(&self) -> bool {
        matches!(self.ending, Some(Ending::ByHand | Ending::Reload))
    }

    /// Whether it waits for the catalog to let its service go.
    pub(crate) fn is_withdrawing(&self) -> bool {
        self.aim == Aim::Withdraw && self.state != State::Complete
    }

    /// Whether it has a process, or has asked for one.
    pub(crate) const fn has_process(&self) -> bool {
        self.run.is_some()
    }

    /// The one door through which a job changes. The table above is kept here: a change that is not in it is a defect
    /// of the core, which is not carried out and is told to the caller.
    #[must_use]
    pub(crate) fn transition(&mut self, state: State, aim: Aim) -> bool {
        let allowed = aim >= self.aim && possible(state, aim) && follows(self.state, state);
        if allowed {
            self.state = state;
            self.aim = aim;
        }
        allowed
    }
}

/// Whether a job may be in a state with an aim.
const fn possible(state: State, aim: Aim) -> bool {
    match (state, aim) {
        (State::Waiting | State::Starting | State::Running, Aim::Up | Aim::Hooks) => true,
        (State::Delaying, aim) => matches!(aim, Aim::Up),
        (State::Waiting, Aim::Withdraw | Aim::Drain | Aim::Term) => false,
        (State::Starting | State::Running, Aim::Withdraw | Aim::Drain | Aim::Term) => true,
        (State::Complete, aim) => !matches!(aim, Aim::Up),
    }
}

/// Whether a state may follow another.
const fn follows(from: State, to: State) -> bool {
    match (from, to) {
        (State::Complete, _) => false,
        (State::Waiting, to) => !matches!(to, State::Delaying),
        (State::Starting, _) => true,
        (State::Running, to) => !matches!(to, State::Starting),
        (State::Delaying, to) => matches!(to, State::Starting | State::Waiting | State::Running),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 5] =
        [State::Waiting, State::Starting, State::Running, State::Delaying, State::Complete];
    const AIMS: [Aim; 5] = [Aim::Up, Aim::Hooks, Aim::Withdraw, Aim::Drain, Aim::Term];

    #[test]
    fn w9_nothing_follows_complete() {
        for state in STATES {
            assert!(!follows(State::Complete, state));
        }
    }

    #[test]
    fn s2_a_job_is_complete_only_after_it_was_to_stop() {
        assert!(!possible(State::Complete, Aim::Up));
        for aim in AIMS.into_iter().skip(1) {
            assert!(possible(State::Complete, aim));
            assert!(!possible(State::Delaying, aim), "a job that stops is not restarted");
        }
    }
}
