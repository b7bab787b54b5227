//! The state of the supervisor. Everything in [`Core`] outlives a reload, except its [`PlanState`].

mod events;
#[cfg(feature = "fingerprint")]
mod fingerprint;
pub(crate) mod plan_state;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::SortedMap;
use crate::context::origin_name;
use crate::effect::Effect;
use crate::event::Code;
use crate::files::report::FileView;
use crate::health::state::JobHealth;
use crate::ids::{CheckRunId, EventId, JobIx, RunId};
use crate::input::Input;
use crate::log_entry::{Fields, LogEntry, LogEvent};
use crate::plan::{Job, Level, Plan, Role, Signal};
use crate::request::RequestId;
use crate::rolling_restart::RollingRestart;
use crate::state::exit_codes::ExitCodes;
use crate::state::job::{JobState, Stage, State, Transition};
use crate::state::journal::{Event, Journal, Origin};
use crate::state::last_ids::LastIds;
use crate::state::phase::Phase;
use crate::state::shutdown_deadlines::ShutdownDeadlines;
use crate::state::start_queue::{NewProcess, StartQueue};
use crate::state::timers::{JobTimer, TimerId, TimerKind, Timers};
use crate::state::watch_changes::WatchChanges;
use crate::supervisor::plan_state::PlanState;
use crate::time::Time;

/// One request to stop may arrive as two signals: `timeout` signals its child and then the whole process group, as do
/// terminals and some scripts. A user who stops the supervisor a second time takes longer.
pub(crate) const SAME_REQUEST: Duration = Duration::from_millis(100);

/// A supervisor: its plan, and the state of everything in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Core {
    /// The current plan and everything that belongs to it.
    pub(crate) plan_state: PlanState,
    pub(crate) now: Time,
    /// The last reading of the system clock.
    pub(crate) clock: Clock,
    /// How long the machine was asleep since the supervisor started.
    pub(crate) asleep: Duration,
    pub(crate) phase: Phase,
    pub(crate) maintenance: bool,
    pub(crate) timers: Timers,
    /// The starts that wait for their turn, and those in progress (P14).
    pub(crate) starts: StartQueue,
    /// Ends the current phase of a shutdown.
    pub(crate) shutdown_timer: Option<TimerId>,
    /// The deadlines of the shutdown, once it has started.
    pub(crate) shutdown_deadlines: Option<ShutdownDeadlines>,
    #[serde(with = "crate::fields_in_checkpoints::no_effects")]
    pub(crate) effects: Vec<Effect>,
    /// Runs that have ended and left processes behind, until these are killed (P4).
    pub(crate) orphans: SortedMap<RunId, TimerId>,
    /// Processes killed by the OOM killer that no exit has been attributed to. `None` if the kernel does not report it.
    pub(crate) oom_kills: Option<u64>,
    pub(crate) exit_codes: ExitCodes,
    /// The signals without a meaning that were received and logged.
    pub(crate) ignored_signals: BTreeSet<Signal>,
    /// The signal that requested the shutdown, and when (S1).
    pub(crate) stop_signal: Option<(Signal, Time)>,
    /// Inputs that arrived before startup and are handled after it (E7).
    pub(crate) early_inputs: VecDeque<Input>,
    /// Events that have not been dispatched.
    pub(crate) queue: VecDeque<Event>,
    /// The job whose action is being performed (W19).
    pub(crate) acting: Option<JobIx>,
    /// Set if a job has ended whose end shuts the container down, with the cause: as soon as what happens now has been
    /// handled (E3).
    pub(crate) shutdown_due: Option<Option<EventId>>,
    /// The event being dispatched, which causes everything that follows.
    pub(crate) current_event: Option<EventId>,
    pub(crate) journal: Journal,
    /// What the last events of watches have added and removed (D12).
    pub(crate) watch_changes: WatchChanges,
    /// Events per source and code. Bounded by the number of sources.
    pub(crate) event_counts: BTreeMap<(Origin, Code), u64>,
    /// The names of removed sources that the journal still refers to.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub(crate) removed_sources: Vec<String>,
    /// The last ids that were given out.
    pub(crate) last_ids: LastIds,
    /// The reload in progress.
    pub(crate) reload: Option<PendingReload>,
    /// The rolling restart in progress.
    pub(crate) rolling_restart: Option<Box<RollingRestart>>,
    /// Why the telemetry server does not listen; `None` if it does.
    pub(crate) telemetry_error: Option<String>,
    /// The notices that the service manager has not received yet.
    pub(crate) manager: Manager,
}

/// The notices that the service manager of the supervisor has not received yet (H11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Manager {
    /// None: there is no service manager, or it has received all of them.
    Silent,
    /// READY and STOPPING.
    AwaitsReady,
    /// STOPPING.
    AwaitsStop,
}

/// A reading of the system clock.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// When it was read.
    pub(crate) at: Time,
    /// The time since 1970.
    pub(crate) unix: Duration,
}

/// A reload that waits for replaced jobs to stop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PendingReload {
    pub(crate) plan: Box<Plan>,
    /// True if processes with old variables of `putenv` are replaced, too. A new number of replicas does not do that.
    pub(crate) renews_variables: bool,
    /// The requests to answer.
    pub(crate) requests: Vec<RequestId>,
    /// When jobs that have not stopped are killed.
    pub(crate) timer: Option<TimerId>,
}

impl Core {
    /// A supervisor before startup.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            plan_state: PlanState::new(plan),
            now: Time::ZERO,
            clock: Clock::default(),
            asleep: Duration::ZERO,
            phase: Phase::Starting,
            maintenance: false,
            timers: Timers::default(),
            starts: StartQueue::default(),
            shutdown_timer: None,
            shutdown_deadlines: None,
            effects: Vec::new(),
            orphans: SortedMap::new(),
            oom_kills: None,
            exit_codes: ExitCodes::default(),
            ignored_signals: BTreeSet::new(),
            stop_signal: None,
            early_inputs: VecDeque::new(),
            queue: VecDeque::new(),
            acting: None,
            shutdown_due: None,
            current_event: None,
            journal: Journal::default(),
            watch_changes: WatchChanges::default(),
            event_counts: BTreeMap::new(),
            removed_sources: Vec::new(),
            last_ids: LastIds::default(),
            reload: None,
            rolling_restart: None,
            telemetry_error: None,
            manager: Manager::Silent,
        }
    }

    /// Notifies the service manager when all jobs are ready, and when they stop (H11).
    pub fn notify_manager(&mut self) {
        self.manager = Manager::AwaitsReady;
    }

    /// The current plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan_state.plan
    }

    /// The current plan, shared.
    #[must_use]
    pub fn shared_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan_state.plan)
    }

    /// The phase of the supervisor.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The last events.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Sets how many events the journal keeps, for a caller that must see every event of a large step.
    pub fn set_journal_capacity(&mut self, events: usize) {
        self.journal.set_capacity(events);
    }

    /// The number of timers.
    #[must_use]
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// When the core must be called again even if nothing happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let next = [self.timers.next(), self.starts.next_turn()];
        next.into_iter().flatten().min().filter(|_| self.phase != Phase::Exited)
    }

    /// Returns true if a start waits for its turn (P14). Only then it matters to the core when the program of a check
    /// was executed ([`Input::CheckStarted`]).
    #[must_use]
    pub fn starts_wait(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Sets how many processes may be started at a time (P14), for tests in which starts wait although there are few.
    pub fn set_most_starts(&mut self, most: usize) {
        self.starts.set_most(most);
    }

    /// The time since 1970 by the system clock.
    #[must_use]
    pub fn unix_now(&self) -> Duration {
        self.clock.unix + self.now.since(self.clock.at)
    }

    /// The name of an event's source, as in a configuration.
    #[must_use]
    pub fn origin_name(&self, origin: Origin) -> String {
        match origin {
            Origin::Global => "global".into(),
            Origin::Job(job) => self.planned(job).name.clone(),
            Origin::Watch(_) | Origin::File(_) | Origin::Lock(_) => origin_name(self.plan(), origin),
            Origin::Signal(signal) => signal.to_string(),
            Origin::Removed(index) => self.removed_sources.get(index as usize).cloned().unwrap_or_default(),
        }
    }

    /// The definition of a job. A `JobIx` is always an index of the current plan.
    pub(crate) fn planned(&self, job: JobIx) -> &Job {
        &self.plan_state.plan.jobs[job.index()]
    }

    /// The state of a job; see [`Core::planned`].
    pub(crate) fn job(&self, job: JobIx) -> &JobState {
        &self.plan_state.jobs[job.index()]
    }

    pub(crate) fn job_mut(&mut self, job: JobIx) -> &mut JobState {
        &mut self.plan_state.jobs[job.index()]
    }

    /// What is known about the health of a job; `None` if it has no checks.
    pub(crate) fn health_of(&self, job: JobIx) -> Option<&JobHealth> {
        self.plan_state.health.of(job)
    }

    /// Healthy or unhealthy; `None` if that is unknown. `health.rs` decides it.
    pub(crate) fn is_healthy(&self, job: JobIx) -> Option<bool> {
        self.health_of(job)?.healthy
    }

    /// The state of a job, with the timers it may own.
    pub(crate) fn job_and_timers(&mut self, job: JobIx) -> (&mut JobState, &mut Timers) {
        (&mut self.plan_state.jobs[job.index()], &mut self.timers)
    }

    pub(crate) fn all_jobs(&self) -> impl Iterator<Item = JobIx> + use<> {
        (0..self.plan_state.jobs.len()).map(JobIx::at)
    }

    pub(crate) fn new_run(&mut self, job: JobIx) -> RunId {
        let run = self.last_ids.new_run();
        self.plan_state.runs.insert(run, job);
        run
    }

    /// Returns true if no shutdown has started or is due.
    pub(crate) fn is_before_shutdown(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running) && self.shutdown_due.is_none()
    }

    pub(crate) fn set_timer(&mut self, job: JobIx, after: core::time::Duration, timer: JobTimer) -> TimerId {
        self.timers.set(self.now + after, TimerKind::Job(job, timer))
    }

    /// Changes what a job does. The timers of the state it leaves are cancelled.
    pub(crate) fn change(&mut self, job: JobIx, change: Transition) {
        let (stage, drain) = (self.job(job).stop_stage(), self.job(job).drain_run());
        match self.job_mut(job).transition(change) {
            Ok(timers) => {
                for timer in timers.into_iter().flatten() {
                    self.timers.remove(timer);
                }
            }
            Err([from, to]) => self.log(
                Level::Error,
                Some(job),
                LogEvent::Bug,
                format_args!("bug: a job cannot change from {from:?} to {to:?}, please report it"),
            ),
        }
        // S11: a drain program ends with its stage.
        if let Some(run) = drain.filter(|_| self.job(job).drain_run().is_none()) {
            self.cancel_program(run);
        }
        self.plan_state.note_waiting(job);
        let state = self.job(job).state();
        if state == State::Waiting {
            // It may be a hook that has finished.
            self.enqueue_hooked(job);
        }
        self.enqueue_requirers(job);
        self.plan_state.reachability_dirty |=
            matches!(state, State::Waiting | State::Ended(_)) || stage != self.job(job).stop_stage();
    }

    /// Moves the stop of a job to its next stage.
    pub(crate) fn change_stage(&mut self, job: JobIx, stage: Stage) {
        self.change(job, Transition::Stage(stage));
    }

    /// Sets the timer that ends the current stop stage of a job.
    pub(crate) fn set_stage_timer(&mut self, job: JobIx, after: core::time::Duration, timer: JobTimer) {
        let timer = self.set_timer(job, after, timer);
        if let Some(stop) = self.job_mut(job).stop_mut() {
            stop.timer = Some(timer);
        }
    }

    /// Has a job checked again when the event queue is empty.
    pub(crate) fn enqueue_recheck(&mut self, job: JobIx) {
        self.plan_state.recheck.insert(job);
    }

    /// Has the jobs that wait for this one checked again.
    pub(crate) fn enqueue_dependents(&mut self, job: JobIx) {
        let state = &mut self.plan_state;
        state.recheck.extend(state.graph.dependents(job));
        self.enqueue_hooked(job);
    }

    /// Has the jobs checked again that require this one (W18) or stop after it (S10).
    pub(crate) fn enqueue_requirers(&mut self, job: JobIx) {
        let state = &mut self.plan_state;
        state.recheck.extend(state.graph.requirers(job));
        state.recheck.extend(state.graph.stops_after(job));
    }

    /// Has the jobs whose stop hook this one is checked again (S2).
    fn enqueue_hooked(&mut self, job: JobIx) {
        let state = &mut self.plan_state;
        let patterns = state.plan.jobs[job.index()].when.patterns().iter().enumerate();
        for (nth, _) in patterns.filter(|(_, event)| event.code == Code::Stopping) {
            state.recheck.extend(state.graph.jobs_of_pattern(job, nth));
        }
    }

    /// Logs a message. It is formatted only if its level is written.
    pub(crate) fn log(
        &mut self,
        level: Level,
        job: Option<JobIx>,
        fields: impl Into<Fields>,
        message: fmt::Arguments<'_>,
    ) {
        // A sensor runs every few seconds; its ordinary runs are not worth a line.
        let is_sensor = |job| matches!(self.planned(job).role, Role::Sensor(_));
        let level = if level == Level::Info && job.is_some_and(is_sensor) { Level::Debug } else { level };
        self.log_entry(level, job, fields.into(), message, false);
    }

    /// Logs a message about a failure, with the last lines of the job's output (L6).
    pub(crate) fn log_with_output(
        &mut self,
        level: Level,
        job: JobIx,
        fields: Fields,
        message: fmt::Arguments<'_>,
    ) {
        self.log_entry(level, Some(job), fields, message, true);
    }

    fn log_entry(
        &mut self,
        level: Level,
        job: Option<JobIx>,
        fields: Fields,
        message: fmt::Arguments<'_>,
        with_output: bool,
    ) {
        if level >= self.plan().logging.level {
            let message = alloc::fmt::format(message);
            self.effects.push(Effect::Log(LogEntry { level, job, message, fields, with_output }));
        }
    }

    /// Cancels a program. One that waits for its turn is only forgotten.
    pub(crate) fn cancel_program(&mut self, run: CheckRunId) {
        if !self.starts.withdraw(NewProcess::Program(run)) {
            self.effects.push(Effect::CancelCheck { run });
        }
    }

    /// C8: returns true if maintenance mode pauses periodic jobs and watches, as in ContainerPilot 2.
    pub(crate) fn is_paused(&self) -> bool {
        self.maintenance && self.plan().legacy_maintenance
    }

    /// Returns true if a job is part of the container's own work.
    pub(crate) fn is_work(&self, job: JobIx) -> bool {
        self.plan_state.graph.holds_open(job) && !self.planned(job).role.is_secondary()
    }

    /// What reports about files look at.
    pub(crate) fn file_view(&self) -> FileView<'_> {
        let PlanState { plan, graph, parts, .. } = &self.plan_state;
        FileView { now: self.now, plan, graph, watches: &parts.watches }
    }
}
