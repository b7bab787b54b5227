//! What is known, for whoever asks (X2): everything about every job and watch, as data.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::effect::DesiredService;
use crate::event::Code;
use crate::ids::{EventId, JobIx, RunId, WatchIx};
use crate::input::{ExitStatus, Instance};
use crate::plan::{Check, Restarts, Role, Trigger};
use crate::state::health::CheckState;
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::{Event, Origin};
use crate::state::run::Cause;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::TimerId;
use crate::time::Time;

pub use crate::state::health::CheckResult;

/// What is known of a job, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// What it is doing.
    pub state: State,
    /// How far it has stopped; `None` if it does not stop.
    pub stop_stage: Option<StopStage>,
    /// How often it was brought back after it was complete: by hand or by a reload.
    pub generation: u64,
    /// The last event before this life began; it has seen none up to that one.
    pub created_after: EventId,
    /// The run that goes on.
    pub run: Option<RunId>,
    /// Its process.
    pub pid: Option<i32>,
    /// Whether it is healthy, if that is known.
    pub healthy: Option<bool>,
    /// How often it was restarted.
    pub restarts: u64,
    /// How its last run ended.
    pub last_exit: Option<ExitStatus>,
    /// What the catalog is told to want of its service.
    pub desired: DesiredService,
    /// Why it stops or is complete.
    pub stop_reason: Option<StopReason>,
}

impl JobStatus {
    /// One word for what it is doing.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match (self.state, self.stop_stage, self.stop_reason) {
            (State::Complete, _, Some(StopReason::ByHand | StopReason::Reload)) => "stopped",
            (State::Complete, _, Some(StopReason::Failed)) => "failed",
            (State::Complete, ..) => "complete",
            (_, Some(_), _) => "stopping",
            (State::Waiting, ..) => "waiting",
            (State::Starting, ..) => "starting",
            (State::Running, ..) => "running",
            (State::Delaying, ..) => "restarting",
        }
    }
}

/// Everything that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// How far the supervisor is.
    pub phase: Phase,
    /// Whether there is maintenance (D8).
    pub maintenance: bool,
    /// The moment of the last step; every other moment here is on the same clock.
    pub now: Time,
    /// The jobs, in the order of the plan.
    pub jobs: Vec<JobOverview>,
    /// The watches, in the order of the plan.
    pub watches: Vec<WatchOverview>,
    /// How many events there were of each kind. No more kinds than the plan has sources.
    pub events: Vec<EventCount>,
    /// When whatever is left is killed, while everything is being stopped (S4).
    pub stop_time: Option<Time>,
}

/// Everything that is known of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOverview {
    /// The job.
    pub job: JobIx,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub role: Role,
    /// What it is doing.
    pub status: JobStatus,
    /// When its present or last run began.
    pub started_at: Option<Time>,
    /// When its last run ended.
    pub ended_at: Option<Time>,
    /// How often it was restarted ever; that of `status` begins anew with each event that starts it.
    pub restarts_total: u64,
    /// How many restarts it has left; without an end if nothing is said.
    pub restarts_left: Option<u64>,
    /// What is going to happen to it at a known time, the nearest first.
    pub deadlines: Vec<Deadline>,
    /// Its checks.
    pub checks: Vec<CheckOverview>,
    /// What it waits for to be started; empty unless it waits.
    pub waits_for: Vec<Awaited>,
    /// The jobs it waits for before it stops (S2).
    pub hooks: Vec<JobIx>,
    /// Whether the present run, or the last one, was started by hand.
    pub by_hand: bool,
    /// The event that led to the present run, or to the last one.
    pub cause: Option<Event>,
}

/// Something that is going to happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Time,
    /// What.
    pub what: DeadlineKind,
}

/// What is going to happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineKind {
    /// It gives up waiting to be started (W5).
    GiveUp,
    /// Its next turn (W4).
    Turn,
    /// It is restarted (W8).
    Restart,
    /// Its run is killed for its time (P5).
    Timeout,
    /// It does not wait any longer for the jobs that run before it stops (S2).
    Hooks,
    /// It does not wait any longer for the catalog to let its service go (S2).
    Withdrawal,
    /// It has drained (S2).
    Drained,
    /// It was asked to end, and is killed.
    Kill,
}

impl DeadlineKind {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GiveUp => "giveUp",
            Self::Turn => "turn",
            Self::Restart => "restart",
            Self::Timeout => "timeout",
            Self::Hooks => "hooks",
            Self::Withdrawal => "withdrawal",
            Self::Drained => "drained",
            Self::Kill => "kill",
        }
    }
}

/// Everything that is known of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckOverview {
    /// Its name.
    pub name: String,
    /// Whether it is being made now.
    pub running: bool,
    /// Its last result that counted.
    pub last: Option<CheckResult>,
    /// How many failures in a row there were.
    pub failures: u32,
    /// When it is made next.
    pub next: Option<Time>,
}

/// Everything that is known of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchOverview {
    /// The watch.
    pub watch: WatchIx,
    /// Its name.
    pub name: String,
    /// The healthy instances; nothing before the catalog's first answer.
    pub instances: Option<Vec<Instance>>,
}

/// How many events there were of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    /// Where they came from, as a configuration writes it.
    pub source: String,
    /// What they said.
    pub code: Code,
    /// How many.
    pub count: u64,
}

/// An event that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Where it comes from, as a configuration writes it.
    pub source: String,
    /// What it says.
    pub code: Code,
    /// Whether it holds already, where several have to (W12).
    pub holds: bool,
    /// Whether it can still come.
    pub possible: bool,
    /// The jobs of that name; there are several where the file has several.
    pub jobs: Vec<JobIx>,
    /// What its source is doing, in a word.
    pub state: String,
}

impl Core {
    /// What is known of a job, in short.
    #[must_use]
    pub fn status(&self, job: JobIx) -> JobStatus {
        let state = self.job(job);
        JobStatus {
            state: state.state(),
            stop_stage: state.stop_stage(),
            generation: state.generation.number,
            created_after: state.generation.created_after,
            run: state.run_id(),
            pid: state.pid(),
            healthy: state.health.as_ref().and_then(|health| health.healthy),
            restarts: state.restarts,
            last_exit: state.last_exit.map(|exit| exit.status),
            desired: state.desired,
            stop_reason: state.stop_reason(),
        }
    }

    /// The job of a name; of several, the first.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<JobIx> {
        self.plan().jobs.iter().position(|job| job.name == name).map(JobIx::at)
    }

    /// Whether there is maintenance.
    #[must_use]
    pub fn maintenance(&self) -> bool {
        self.maintenance
    }

    /// Everything that is known, as of the last step. Whoever wants to know how long something takes from now on lets
    /// time pass first, with a `Tick`.
    #[must_use]
    pub fn overview(&self) -> Overview {
        Overview {
            phase: self.phase,
            maintenance: self.maintenance,
            now: self.now,
            jobs: self.all_jobs().map(|job| self.job_overview(job)).collect(),
            watches: self.watches_overview(),
            events: self
                .event_counts
                .iter()
                .map(|((origin, code), count)| EventCount {
                    source: self.origin_name(*origin),
                    code: *code,
                    count: *count,
                })
                .collect(),
            stop_time: self.shutdown_timer.map(TimerId::at),
        }
    }

    fn watches_overview(&self) -> Vec<WatchOverview> {
        let planned = self.plan().watches.iter().zip(&self.plan_state.watches).enumerate();
        planned
            .map(|(nth, (watch, state))| WatchOverview {
                watch: WatchIx::at(nth),
                name: watch.name.clone(),
                instances: state.instances().map(<[Instance]>::to_vec),
            })
            .collect()
    }

    /// Everything that is known of a job.
    #[must_use]
    pub fn job_overview(&self, job: JobIx) -> JobOverview {
        let (planned, state) = (self.planned(job), self.job(job));
        let waits = state.state() == State::Waiting && state.is_up();
        JobOverview {
            job,
            name: planned.name.clone(),
            role: planned.role,
            status: self.status(job),
            started_at: state.started_at,
            ended_at: state.last_exit.map(|exit| exit.at),
            restarts_total: state.restarts_total,
            restarts_left: match planned.restarts {
                Restarts::Unlimited => None,
                Restarts::Limited(most) => Some(most.saturating_sub(state.restarts)),
            },
            deadlines: self.deadlines_of(job),
            checks: self.checks_overview(job),
            waits_for: if waits { self.awaited(job) } else { Vec::new() },
            hooks: if state.stop_stage() == Some(StopStage::Hooks) {
                self.outstanding_hooks(job)
            } else {
                Vec::new()
            },
            by_hand: matches!(state.cause, Some(Cause::ByHand)),
            cause: state.cause_event().copied(),
        }
    }

    fn checks_overview(&self, job: JobIx) -> Vec<CheckOverview> {
        let planned = self.planned(job).health.iter().flat_map(|health| &health.checks);
        let states = self.job(job).health.iter().flat_map(|health| &health.checks);
        let overview = |(planned, state): (&Check, &CheckState)| CheckOverview {
            name: planned.name.clone(),
            running: state.running.is_some() && !state.stale,
            last: state.last.clone(),
            failures: state.failures,
            next: state.next.map(TimerId::at),
        };
        planned.zip(states).map(overview).collect()
    }

    fn deadlines_of(&self, job: JobIx) -> Vec<Deadline> {
        let state = self.job(job);
        let stage = match state.stop_stage() {
            Some(StopStage::Hooks) => DeadlineKind::Hooks,
            Some(StopStage::Deregister) => DeadlineKind::Withdrawal,
            Some(StopStage::Drain) => DeadlineKind::Drained,
            Some(StopStage::Terminate) | None => DeadlineKind::Kill,
        };
        let all = [
            (state.start_timeout, DeadlineKind::GiveUp),
            (state.ticks.timer, DeadlineKind::Turn),
            (state.restart_timer(), DeadlineKind::Restart),
            (state.run().and_then(|run| run.timeout), DeadlineKind::Timeout),
            (state.stop().and_then(|stop| stop.timer), stage),
            (state.run().and_then(|run| run.kill_timer), DeadlineKind::Kill),
        ];
        let mut deadlines: Vec<Deadline> = all
            .into_iter()
            .filter_map(|(timer, what)| timer.map(|timer| Deadline { at: timer.at(), what }))
            .collect();
        deadlines.sort_by_key(|deadline| deadline.at);
        deadlines
    }

    /// What starts a job, and how it stands with that.
    #[must_use]
    pub fn awaited(&self, job: JobIx) -> Vec<Awaited> {
        let planned = self.planned(job);
        if matches!(planned.when.trigger, Trigger::Interval(_)) {
            return Vec::new();
        }
        let holds = &self.job(job).conditions;
        let patterns = planned.when.patterns().iter().enumerate();
        patterns
            .map(|(nth, event)| {
                let jobs = self.plan_state.graph.jobs_behind(job, nth).to_vec();
                Awaited {
                    source: event.source.to_string(),
                    code: event.code,
                    holds: holds.get(nth).copied().unwrap_or(false),
                    possible: self.pattern_can_come(job, nth),
                    state: self.source_state(job, nth, &jobs),
                    jobs,
                }
            })
            .collect()
    }

    fn source_state(&self, job: JobIx, condition: usize, jobs: &[JobIx]) -> String {
        if let Some(first) = jobs.first() {
            return self.status(*first).word().into();
        }
        match self.plan_state.graph.origin_behind(job, condition) {
            Some(Origin::Watch(watch)) => {
                match self.plan_state.watches.get(watch.index()).and_then(|w| w.instances()) {
                    None => "no answer yet".into(),
                    Some([]) => "no healthy instance".into(),
                    Some(instances) => alloc::format!("{} healthy", instances.len()),
                }
            }
            Some(_) => String::new(),
            None => "unknown".into(),
        }
    }
}
