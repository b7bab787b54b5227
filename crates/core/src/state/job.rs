//! The state of one job.
//!
//! ```text
//! state       meaning                                       next
//! ---------   -------------------------------------------   ------------------------------------------------------
//! Waiting     no process; waits for its trigger             trigger, tick or pending event → Starting or Queued
//!                                                           (without `exec`: Running; by itself: Delaying)
//!                                                           can never run again → stops
//! Queued      no process; its start was decided, and        its turn → Starting
//!             waits for its turn (P14)                      stops → Waiting
//! Starting    a process was requested, and has not yet      Started → Running
//!             executed its program                          StartFailed, start timeout → as after an exit
//! Running     has a process; without `exec`: is active      exit → Waiting, Delaying, Queued or Starting, or stops
//!             with `do`: its action is performed next       performed → as after an exit
//! Outlived    was ended; its process has exited, others     all of them are gone → as after an exit
//!             of the run have not (S14)
//! Delaying    no process; waits for its restart delay       delay passed → Starting or Queued
//! Ended       will not run again, with its outcome          none
//!
//! stop stage  meaning                                       next stage
//! ---------   -------------------------------------------   ------------------------------------------------------
//! (none)      the job runs normally
//! Requirers   the job waits for the jobs that require it    all of them have ended
//! Hooks       `stopping` was sent; the job waits for its    all hooks are complete, or `stopTimeout` has passed
//!             stop hooks
//! Deregister  its service is being deregistered             deregistration confirmed, or its time has passed
//! Drain       its service has left the catalog              `drain` has passed, its program or the process has exited
//! Terminate   its process was sent the stop signal          all processes of the run are gone; the job is Ended
//! ```
//!
//! Without a stop stage a job is Waiting, Queued, Starting, Running, Outlived or Delaying. In Requirers and Hooks it is
//! Waiting, Starting, Running or Outlived. In Deregister, Drain and Terminate it is Starting, Running or Outlived. An
//! Ended job keeps the stage in which it ended.
//!
//! The stop stage only moves down this list. A job that has ended is never resumed. A start by hand, or a reload that
//! changes the job, creates a new generation with a fresh state.
//!
//! Every change goes through [`JobState::transition`], which enforces both tables.

#[cfg(feature = "fingerprint")]
mod fingerprint;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::effect::DesiredService;
use crate::ids::{CheckRunId, EventId, RunId};
use crate::outcome::{Outcome, SkipReason};
use crate::plan::{Exec, Job, Trigger};
use crate::state::journal::{Event, Origin};
use crate::state::pending::PendingEvents;
use crate::state::run::{Cause, LastExit, Run, RunCounts};
use crate::state::timers::TimerId;
use crate::time::Time;
use crate::variables::JobVariables;

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No process; it waits for its trigger.
    Waiting,
    /// No process; its start was decided, and waits for its turn (P14).
    Queued,
    /// A process was requested.
    Starting,
    /// It has a process; without `exec`, it is active.
    Running,
    /// The supervisor has ended its run and its process has exited, but others of the run have not (S14).
    Outlived,
    /// No process; it waits for its restart delay.
    Delaying,
    /// It will not run again.
    Ended(Outcome),
}

impl State {
    /// Returns true if it will not run again (W9).
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// How far a job has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopStage {
    /// It waits for the jobs that require it to end (S10).
    Requirers,
    /// `stopping` was sent; the job waits for its stop hooks.
    Hooks,
    /// Its service is being deregistered.
    Deregister,
    /// Its service has left the catalog; the process drains its connections.
    Drain,
    /// Its process was sent the stop signal.
    Terminate,
}

/// Why a job stops, or has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StopReason {
    /// It has run and can never run again (W9).
    Completed,
    /// The same, and its last run failed.
    Failed,
    /// It has reached its start limit (W14).
    CrashLoop,
    /// The events it waits for can never come (W10).
    Unreachable,
    /// It was not started within `when.timeout` (W5).
    StartTimeout,
    /// It has nothing to run and nothing to check.
    NothingToRun,
    /// A user stopped it.
    ByHand,
    /// The action of a job stopped it (W19).
    ByAction,
    /// A reload replaces or removes it.
    Reload,
    /// A source that it is bound to is gone (W18).
    SourceGone,
    /// The supervisor shuts down.
    Shutdown,
}

/// [`State`] with the data that exists only in that state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Activity {
    Waiting,
    /// The run whose process is created when it is its turn, and the variables that it was to have when that was
    /// decided, unless a reload has replaced them.
    Queued(RunId, #[serde(with = "crate::fields_in_checkpoints::presence")] Option<Arc<JobVariables>>),
    Starting(Run),
    /// The process has this pid.
    Running(Run, i32),
    /// Running without a process of its own (W11).
    RunningWithoutProcess,
    /// Its action is performed in this step (W19).
    Acting(RunId),
    /// The run whose process has exited.
    Outlived(Run, Rest),
    /// The timer ends the restart delay.
    Delaying(TimerId),
    Ended(Outcome),
}

/// The other processes of a run whose process has exited (S14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// The names of the processes in its group at the exit, until they are logged.
    pub(crate) names: Option<String>,
    /// True if daemons were found.
    pub(crate) has_daemons: bool,
}

impl Activity {
    const fn state(&self) -> State {
        match self {
            Self::Waiting => State::Waiting,
            Self::Queued(..) => State::Queued,
            Self::Starting(_) => State::Starting,
            Self::Running(..) | Self::RunningWithoutProcess | Self::Acting(_) => State::Running,
            Self::Outlived(..) => State::Outlived,
            Self::Delaying(_) => State::Delaying,
            Self::Ended(outcome) => State::Ended(*outcome),
        }
    }
}

/// The stop of a job, from its first stage until a new generation starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StopState {
    pub(crate) reason: StopReason,
    /// True if a new generation starts as soon as the job has ended.
    pub(crate) then_start: bool,
    /// The job whose action stops it or starts it again (W19); `None` for a user.
    pub(crate) by: Option<Origin>,
    /// Ends the current stage.
    pub(crate) timer: Option<TimerId>,
    stage: Stage,
}

/// [`StopStage`] with the data that exists only in that stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Requirers,
    Hooks,
    Deregister,
    /// With the run of its drain program, while that runs (S11).
    Drain(Option<CheckRunId>),
    Terminate,
}

impl Stage {
    const fn name(self) -> StopStage {
        match self {
            Self::Requirers => StopStage::Requirers,
            Self::Hooks => StopStage::Hooks,
            Self::Deregister => StopStage::Deregister,
            Self::Drain(_) => StopStage::Drain,
            Self::Terminate => StopStage::Terminate,
        }
    }
}

/// Which generation of a job this is. Each start after completion, and each reload that changes a job, creates one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// Counts the generations of this job, from 0.
    pub(crate) number: u64,
    /// Counts the generations of all jobs; 0 for those of the first plan.
    pub(crate) serial: u64,
    /// The last event before it was created.
    pub(crate) created_after: EventId,
}

/// The times of a job with `cron` (W15), in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CronTimes {
    /// When the schedule started. All of its times since then, up to `next`, have come.
    pub(crate) since: u64,
    /// The next time; the last one if there is no further tick.
    pub(crate) next: u64,
}

/// The ticks of a periodic job (W4, W15).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ticks {
    /// When the next tick is due; the last one if there is no further tick.
    pub(crate) due: Time,
    pub(crate) timer: Option<TimerId>,
    /// True if a tick came while the last run was being killed or a requirement was missing, and starts the next run.
    pub(crate) pending: bool,
    /// True if the current run started between two ticks: no tick ends it before its own timeout.
    pub(crate) off_schedule: bool,
    pub(crate) cron: Option<CronTimes>,
}

/// A start that has no event and waits for a requirement (W18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Deferred {
    /// A restart after a run (W6).
    Restart,
    /// The first run after a bound source was gone.
    Resume,
}

/// The state of one job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobState {
    activity: Activity,
    stop: Option<StopState>,
    pub(crate) generation: Generation,
    /// Set once its trigger has come, to the serial of the newest generation at that time. With `once`, later
    /// events do not trigger it.
    pub(crate) triggered_at: Option<u64>,
    /// Which conditions of `all` hold (W12).
    pub(crate) conditions: Vec<bool>,
    /// Events that came while it ran, in its restart delay or while a requirement was missing, and start the next runs
    /// (W7, W14, W18, W21).
    pub(crate) pending: PendingEvents,
    /// A start without an event that waits for a requirement.
    pub(crate) deferred: Option<Deferred>,
    /// True if it was started for the shutdown (S3).
    pub(crate) ran_at_shutdown: bool,
    pub(crate) ticks: Ticks,
    /// Restarts since it was last started by an event; for a periodic job, the number of ticks.
    pub(crate) restarts: u64,
    /// Restarts in all generations, without ticks.
    pub(crate) restarts_total: u64,
    /// Ended runs in all generations.
    pub(crate) runs: RunCounts,
    /// Runs in a row that ended within `restartBackoff.reset` (W8).
    pub(crate) early_exits: u32,
    /// The starts that count for `startLimit`, oldest first (W14). Empty without one.
    pub(crate) starts: VecDeque<Time>,
    /// True if it was ever started in this generation.
    pub(crate) has_run: bool,
    /// What started the current or last run.
    pub(crate) cause: Option<Cause>,
    /// When the current or last run started.
    pub(crate) started_at: Option<Time>,
    pub(crate) last_exit: Option<LastExit>,
    /// Why the last run has no process; `None` if it had one.
    pub(crate) start_error: Option<String>,
    /// The exit code of the last run of this generation, if it failed.
    pub(crate) failure: Option<u8>,
    /// Failed runs in a row, up to the last one (X9).
    pub(crate) failed_runs: u64,
    /// The desired state of its service, as last sent in `Effect::Advertise`.
    pub(crate) desired: DesiredService,
    /// The timer of `when.timeout` (W5).
    pub(crate) start_timeout: Option<TimerId>,
}

/// A change of a job's state.
#[derive(Debug)]
pub(crate) enum Transition {
    /// The job does something else.
    To(Activity),
    /// The job starts to stop.
    Stop {
        /// Why.
        reason: StopReason,
        /// True if a new generation starts as soon as the job has ended.
        then_start: bool,
    },
    /// The stop moves on to this stage.
    Stage(Stage),
}

/// A change that the tables do not allow: the state and stage before and after.
pub(crate) type Forbidden = [(State, Option<StopStage>); 2];

impl JobState {
    /// Returns true if a start was deferred.
    pub(crate) fn is_deferred(&self) -> bool {
        matches!(self.state(), State::Waiting)
            && self.is_up()
            && (!self.pending.is_empty() || self.ticks.pending || self.deferred.is_some())
    }

    /// Returns true if it has a process, is active without one, or is about to have one (P14).
    pub(crate) const fn is_active(&self) -> bool {
        matches!(self.state(), State::Queued | State::Starting | State::Running | State::Outlived)
    }

    pub(crate) fn new(job: &Job) -> Self {
        let conditions = match &job.when.trigger {
            Trigger::All { conditions, .. } => conditions.len(),
            _ => 0,
        };
        Self {
            activity: Activity::Waiting,
            stop: None,
            generation: Generation { number: 0, serial: 0, created_after: EventId(0) },
            triggered_at: None,
            conditions: vec![false; conditions],
            pending: PendingEvents::new(job.when.queues_events()),
            deferred: None,
            ran_at_shutdown: false,
            ticks: Ticks::default(),
            restarts: 0,
            restarts_total: 0,
            runs: RunCounts::default(),
            early_exits: 0,
            starts: VecDeque::new(),
            has_run: false,
            cause: None,
            started_at: None,
            last_exit: None,
            start_error: None,
            failure: None,
            failed_runs: 0,
            desired: DesiredService::Absent,
            start_timeout: None,
        }
    }

    /// The next generation of this job. It keeps the record of the last exit and the totals.
    pub(crate) fn next_generation(&mut self, job: &Job, serial: u64, created_after: EventId) -> Self {
        let mut new = Self::new(job);
        new.generation = Generation { number: self.generation.number + 1, serial, created_after };
        (new.restarts_total, new.runs) = (self.restarts_total, self.runs);
        (new.last_exit, new.start_error) = (self.last_exit, self.start_error.take());
        new.failed_runs = self.failed_runs;
        new.pending.continue_from(&self.pending);
        if matches!(job.exec, Exec::Action(_)) {
            // W14: an action may start its own job again, in no time.
            (new.started_at, new.early_exits) = (self.started_at, self.early_exits);
        }
        new
    }

    pub(crate) const fn state(&self) -> State {
        self.activity.state()
    }

    pub(crate) fn stop_stage(&self) -> Option<StopStage> {
        self.stop.as_ref().map(|stop| stop.stage.name())
    }

    /// Why it stops or has ended.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.stop.as_ref().map(|stop| stop.reason)
    }

    /// The stop, if the job stops or has ended.
    pub(crate) const fn stop(&self) -> Option<&StopState> {
        self.stop.as_ref()
    }

    pub(crate) const fn stop_mut(&mut self) -> Option<&mut StopState> {
        self.stop.as_mut()
    }

    /// Returns true if the job runs normally: it neither stops nor has ended.
    pub(crate) const fn is_up(&self) -> bool {
        self.stop.is_none()
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.state().has_ended()
    }

    /// Returns true if it waits for its trigger, and does not stop.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self.activity, Activity::Waiting) && self.is_up()
    }

    /// Returns true if it is in this stop stage and has not ended.
    pub(crate) fn is_stopping_in(&self, stage: StopStage) -> bool {
        self.stop_stage() == Some(stage) && !self.has_ended()
    }

    /// The run of its drain program, while that runs (S11).
    pub(crate) fn drain_run(&self) -> Option<CheckRunId> {
        match self.stop.as_ref()?.stage {
            Stage::Drain(run) => run.filter(|_| !self.has_ended()),
            _ => None,
        }
    }

    /// Its drain program has exited, so that it need not be cancelled.
    pub(crate) const fn end_drain_run(&mut self) {
        if let Some(StopState { stage: Stage::Drain(run), .. }) = &mut self.stop {
            *run = None;
        }
    }

    /// Returns true if it is past the hooks of its stop: it is neither checked nor advertised any more.
    pub(crate) fn is_past_hooks(&self) -> bool {
        self.stop_stage() > Some(StopStage::Hooks)
    }

    /// Records how the last run ended: with this exit code if it failed. A run that was ended because it was unhealthy
    /// has failed, too, but has no code of its own.
    pub(crate) const fn set_failure(&mut self, failure: Option<u8>, unhealthy: bool) {
        self.failure = failure;
        self.failed_runs =
            if unhealthy || failure.is_some() { self.failed_runs.saturating_add(1) } else { 0 };
    }

    /// How a job that stops ends when its process has exited; `None` if it does not stop.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        Some(match (self.stop_reason()?, self.failure) {
            (StopReason::ByHand | StopReason::ByAction | StopReason::Reload | StopReason::SourceGone, _) => {
                Outcome::Stopped
            }
            (StopReason::Completed | StopReason::NothingToRun, _) => Outcome::Complete,
            (StopReason::Failed | StopReason::CrashLoop, _) => Outcome::Failed,
            (StopReason::Unreachable, _) => Outcome::Skipped(SkipReason::Unreachable),
            (StopReason::StartTimeout, _) => Outcome::Skipped(SkipReason::StartTimeout),
            (StopReason::Shutdown, _) if !self.has_run => Outcome::Skipped(SkipReason::Shutdown),
            (StopReason::Shutdown, None) => Outcome::Stopped,
            (StopReason::Shutdown, Some(_)) => Outcome::Failed,
        })
    }

    /// Returns true if it may run again although it has ended or stops: a user has stopped it, a reload is about to
    /// replace it, or a source is gone that may come back.
    pub(crate) fn may_start_again(&self) -> bool {
        matches!(self.stop_reason(), Some(StopReason::ByHand | StopReason::Reload | StopReason::SourceGone))
    }

    pub(crate) fn run_id(&self) -> Option<RunId> {
        self.run().map(|run| run.id)
    }

    /// The current run, also one whose process was only requested, and one whose process has exited before others of
    /// it.
    pub(crate) const fn run(&self) -> Option<&Run> {
        match &self.activity {
            Activity::Starting(run) | Activity::Running(run, _) | Activity::Outlived(run, _) => Some(run),
            _ => None,
        }
    }

    pub(crate) const fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.activity {
            Activity::Starting(run) | Activity::Running(run, _) | Activity::Outlived(run, _) => Some(run),
            _ => None,
        }
    }

    /// The pid of the current run, once its program was executed.
    pub(crate) const fn pid(&self) -> Option<i32> {
        match self.activity {
            Activity::Running(_, pid) => Some(pid),
            _ => None,
        }
    }

    /// The run whose action is about to be performed (W19).
    pub(crate) const fn action_run(&self) -> Option<RunId> {
        match self.activity {
            Activity::Acting(run) => Some(run),
            _ => None,
        }
    }

    /// The run that waits for its turn (P14).
    pub(crate) const fn queued_run(&self) -> Option<RunId> {
        match self.activity {
            Activity::Queued(run, _) => Some(run),
            _ => None,
        }
    }

    /// The variables of jobs when the start that waits for its turn was decided.
    pub(crate) const fn queued_variables(&self) -> Option<&Arc<JobVariables>> {
        match &self.activity {
            Activity::Queued(_, variables) => variables.as_ref(),
            _ => None,
        }
    }

    pub(crate) const fn queued_variables_mut(&mut self) -> Option<&mut Arc<JobVariables>> {
        match &mut self.activity {
            Activity::Queued(_, variables) => variables.as_mut(),
            _ => None,
        }
    }

    /// A reload has replaced the variables of all jobs.
    pub(crate) fn forget_queued_variables(&mut self) {
        if let Activity::Queued(_, variables) = &mut self.activity {
            *variables = None;
        }
    }

    /// Returns true if a start was decided in this generation, also one that waits for its turn.
    pub(crate) const fn was_started(&self) -> bool {
        self.has_run || self.queued_run().is_some()
    }

    /// The other processes of the current run, if its process has exited.
    pub(crate) const fn rest_mut(&mut self) -> Option<&mut Rest> {
        match &mut self.activity {
            Activity::Outlived(_, rest) => Some(rest),
            _ => None,
        }
    }

    /// Returns true if it has a process or has requested one.
    pub(crate) const fn has_process(&self) -> bool {
        self.run().is_some()
    }

    /// The end of the restart delay.
    pub(crate) const fn restart_timer(&self) -> Option<TimerId> {
        match self.activity {
            Activity::Delaying(timer) => Some(timer),
            _ => None,
        }
    }

    /// The event that started the current or last run.
    pub(crate) fn cause_event(&self) -> Option<&Event> {
        self.cause.as_ref().and_then(Cause::event)
    }

    /// The event whose variables the current or last run got (P7).
    pub(crate) fn first_event(&self) -> Option<&Event> {
        self.cause.as_ref().and_then(Cause::first_event)
    }

    /// The sources of events that the state refers to.
    pub(crate) fn origins_mut(&mut self) -> impl Iterator<Item = &mut Origin> {
        let cause = match &mut self.cause {
            Some(Cause::Event(event) | Cause::Tick(Some(event))) => Some(&mut event.origin),
            Some(Cause::Action(job)) => Some(job),
            Some(Cause::ByHand | Cause::Tick(None)) | None => None,
        };
        let by = self.stop.as_mut().and_then(|stop| stop.by.as_mut());
        let pending = self.pending.iter_mut().map(|event| &mut event.origin);
        cause.into_iter().chain(by).chain(pending)
    }

    /// The only way to change the state and the stop stage. A change that the tables do not allow is a bug in the
    /// rules; it is not applied. Returns the timers of the state and the stage that were left.
    pub(crate) fn transition(&mut self, change: Transition) -> Result<[Option<TimerId>; 4], Forbidden> {
        let from = (self.state(), self.stop_stage());
        let to = match &change {
            Transition::To(activity) => (activity.state(), from.1),
            Transition::Stop { .. } => (from.0, Some(StopStage::Requirers)),
            Transition::Stage(stage) => (from.0, Some(stage.name())),
        };
        if to.1 < from.1 || !is_possible(to.0, to.1) || !may_follow(from.0, to.0) {
            return Err([from, to]);
        }
        match (change, &mut self.stop) {
            (Transition::To(activity), stop) => {
                let stop_timer = stop.as_mut().filter(|_| to.0.has_ended());
                let stop_timer = stop_timer.and_then(|stop| stop.timer.take());
                Ok(match core::mem::replace(&mut self.activity, activity) {
                    Activity::Starting(run) | Activity::Running(run, _) | Activity::Outlived(run, _) => {
                        [run.timeout, run.kill_timer, run.abandon_timer, stop_timer]
                    }
                    Activity::Delaying(timer) => [Some(timer), stop_timer, None, None],
                    _ => [stop_timer, None, None, None],
                })
            }
            (Transition::Stop { reason, then_start }, stop @ None) => {
                let stage = Stage::Requirers;
                *stop = Some(StopState { reason, then_start, by: None, timer: None, stage });
                // The other processes of a run have been sent the signal, and keep their timeout (S14).
                let run = if from.0 == State::Outlived { None } else { self.run_mut() };
                Ok([run.and_then(|run| run.kill_timer.take()), None, None, None])
            }
            (Transition::Stage(stage), Some(stop)) => {
                stop.stage = stage;
                Ok([stop.timer.take(), None, None, None])
            }
            (Transition::Stop { .. }, Some(_)) | (Transition::Stage(_), None) => Err([from, to]),
        }
    }
}

/// Returns true if a job may be in this state and stop stage.
const fn is_possible(state: State, stage: Option<StopStage>) -> bool {
    match (state, stage) {
        (
            State::Waiting | State::Starting | State::Running,
            None | Some(StopStage::Requirers | StopStage::Hooks),
        ) => true,
        (State::Delaying | State::Queued, stage) => stage.is_none(),
        (State::Waiting, Some(_)) => false,
        (State::Outlived, _) | (State::Starting | State::Running, Some(_)) => true,
        (State::Ended(_), stage) => stage.is_some(),
    }
}

/// Returns true if a state may follow another.
const fn may_follow(from: State, to: State) -> bool {
    match (from, to) {
        (State::Ended(_), _) => false,
        (from, State::Outlived) => matches!(from, State::Running | State::Outlived),
        (State::Outlived, to) => !matches!(to, State::Running),
        (State::Waiting | State::Starting | State::Running, _) => true,
        (State::Delaying, to) => {
            matches!(to, State::Queued | State::Starting | State::Waiting | State::Running)
        }
        (State::Queued, to) => matches!(to, State::Starting | State::Waiting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDED: State = State::Ended(Outcome::Complete);
    const STATES: [State; 7] = [
        State::Waiting,
        State::Queued,
        State::Starting,
        State::Running,
        State::Outlived,
        State::Delaying,
        ENDED,
    ];
    const STAGES: [StopStage; 5] = [
        StopStage::Requirers,
        StopStage::Hooks,
        StopStage::Deregister,
        StopStage::Drain,
        StopStage::Terminate,
    ];

    #[test]
    fn w9_no_state_follows_the_end() {
        for state in STATES {
            assert!(!may_follow(ENDED, state));
        }
    }

    #[test]
    fn s14_only_a_process_that_ran_is_outlived() {
        for state in STATES {
            let ran = matches!(state, State::Running | State::Outlived);
            assert_eq!(may_follow(state, State::Outlived), ran);
        }
        assert!(!may_follow(State::Outlived, State::Running), "a new process has to start first");
    }

    #[test]
    fn s2_a_job_has_ended_only_after_it_has_stopped() {
        assert!(!is_possible(ENDED, None));
        for stage in STAGES {
            assert!(is_possible(ENDED, Some(stage)));
            assert!(!is_possible(State::Delaying, Some(stage)), "a job that stops is not restarted");
            assert!(!is_possible(State::Queued, Some(stage)), "a job that stops waits for no turn");
        }
    }
}
