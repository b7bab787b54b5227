//! The status of every job and watch, as data (X2).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::effect::DesiredService;
use crate::event::Code;
use crate::ids::{EventId, JobIx, RunId, WatchIx};
use crate::input::{ExitStatus, Instance};
use crate::plan::{Check, Repeat, Restarts, Role, Trigger};
use crate::state::health::{CheckRun, CheckState};
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::{Event, Origin};
use crate::state::run::Cause;
use crate::state::supervisor::{Core, Phase};
use crate::state::timers::TimerId;
use crate::time::Time;

pub use crate::state::health::CheckResult;

/// The status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// What it is doing.
    pub state: State,
    /// How far it has stopped; `None` if it does not stop.
    pub stop_stage: Option<StopStage>,
    /// Counts its generations: each start after completion, and each reload that changes it, creates one.
    pub generation: u64,
    /// The last event before this generation was created; it has seen none up to that one.
    pub created_after: EventId,
    /// The current run.
    pub run: Option<RunId>,
    /// Its process.
    pub pid: Option<i32>,
    /// True if healthy; `None` if unknown.
    pub healthy: Option<bool>,
    /// Restarts since it was last started by an event.
    pub restarts: u64,
    /// How its last run ended.
    pub last_exit: Option<ExitStatus>,
    /// The desired state of its service in the catalog.
    pub desired: DesiredService,
    /// Why it stops or is complete.
    pub stop_reason: Option<StopReason>,
}

impl JobStatus {
    /// What it is doing, in one word.
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

/// The status of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// The phase of the supervisor.
    pub phase: Phase,
    /// True in maintenance mode (D8).
    pub maintenance: bool,
    /// The time of the last step, on the same clock as every other time here.
    pub now: Time,
    /// The jobs, in the order of the plan.
    pub jobs: Vec<JobOverview>,
    /// The watches, in the order of the plan.
    pub watches: Vec<WatchOverview>,
    /// Events per source and code.
    pub events: Vec<EventCount>,
    /// When the remaining jobs are killed, during a shutdown (S4).
    pub shutdown_deadline: Option<Time>,
}

/// Everything known about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOverview {
    /// The job.
    pub job: JobIx,
    /// Its name.
    pub name: String,
    /// What kind of job it is.
    pub role: Role,
    /// True if it runs at every event, and so is not expected to run all the time.
    pub runs_repeatedly: bool,
    /// The address and port of its service.
    pub service: Option<(IpAddr, u16)>,
    /// What it is doing.
    pub status: JobStatus,
    /// When its current or last run started.
    pub started_at: Option<Time>,
    /// When its last run ended.
    pub ended_at: Option<Time>,
    /// Why its last run could not be started; `None` if it had a process.
    pub start_error: Option<String>,
    /// Restarts in total; the count in `status` is reset by each event that starts it.
    pub restarts_total: u64,
    /// The restarts left; `None` if unlimited.
    pub restarts_left: Option<u64>,
    /// Its timers, the next one first.
    pub deadlines: Vec<Deadline>,
    /// Its checks.
    pub checks: Vec<CheckOverview>,
    /// The events it waits for; empty unless it waits.
    pub waits_for: Vec<Awaited>,
    /// The stop hooks it waits for (S2).
    pub hooks: Vec<JobIx>,
    /// True if the current or last run was started by hand.
    pub by_hand: bool,
    /// The event that started the current or last run.
    pub cause: Option<Event>,
}

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
    /// It is killed because it has not exited after its stop signal.
    Kill,
}

impl DeadlineKind {
    const ALL: [Self; 9] = [
        Self::StartTimeout,
        Self::Tick,
        Self::Restart,
        Self::ExecTimeout,
        Self::RunTimeout,
        Self::Hooks,
        Self::Deregister,
        Self::Drain,
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
            Self::Kill => "kill",
        }
    }
}

/// Everything known about a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckOverview {
    /// Its name.
    pub name: String,
    /// True if it runs now.
    pub running: bool,
    /// Its last result.
    pub last: Option<CheckResult>,
    /// Failures in a row.
    pub failures: u32,
    /// When it runs next.
    pub next: Option<Time>,
}

/// Everything known about a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchOverview {
    /// The watch.
    pub watch: WatchIx,
    /// Its name.
    pub name: String,
    /// The healthy instances; `None` before the catalog's first answer.
    pub instances: Option<Vec<Instance>>,
}

/// The number of events of one source and code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    /// The source, as in a configuration.
    pub source: String,
    /// The code.
    pub code: Code,
    /// The number.
    pub count: u64,
}

/// An event that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The source, as in a configuration.
    pub source: String,
    /// The code.
    pub code: Code,
    /// True if it holds already, for a job that waits for several (W12).
    pub holds: bool,
    /// True if it can still come.
    pub possible: bool,
    /// The jobs with the name of the source.
    pub jobs: Vec<JobIx>,
    /// What its source is doing, in one word.
    pub state: String,
}

impl Core {
    /// The status of a job.
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

    /// The job with this name; of several, the first.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<JobIx> {
        self.plan().jobs.iter().position(|job| job.name == name).map(JobIx::at)
    }

    /// Returns true in maintenance mode.
    #[must_use]
    pub fn maintenance(&self) -> bool {
        self.maintenance
    }

    /// The status of everything, as of the last step. For current durations, send a `Tick` first.
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
            shutdown_deadline: self.stop_budget.map(|budget| budget.kill_by),
        }
    }

    fn watches_overview(&self) -> Vec<WatchOverview> {
        let planned = self.plan().watches.iter().zip(&self.plan_state.watches).enumerate();
        planned
            .map(|(nth, (watch, state))| WatchOverview {
                watch: WatchIx::at(nth),
                name: watch.name.clone(),
                instances: state.instances.clone(),
            })
            .collect()
    }

    /// Everything known about a job.
    #[must_use]
    pub fn job_overview(&self, job: JobIx) -> JobOverview {
        let (planned, state) = (self.planned(job), self.job(job));
        let waits = state.state() == State::Waiting && state.is_up();
        JobOverview {
            job,
            name: planned.name.clone(),
            role: planned.role,
            runs_repeatedly: planned.when.repeat() == Repeat::Each,
            service: planned.service.as_ref().map(|service| (service.address, service.port)),
            status: self.status(job),
            started_at: state.started_at,
            ended_at: state.last_exit.map(|exit| exit.at),
            start_error: state.start_error.clone(),
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
            running: matches!(state.run, CheckRun::Running { .. }),
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
            Some(StopStage::Deregister) => DeadlineKind::Deregister,
            Some(StopStage::Drain) => DeadlineKind::Drain,
            Some(StopStage::Terminate) | None => DeadlineKind::Kill,
        };
        let timeout = match state.state() {
            State::Starting => DeadlineKind::ExecTimeout,
            _ => DeadlineKind::RunTimeout,
        };
        let all = [
            (state.start_timeout, DeadlineKind::StartTimeout),
            (state.ticks.timer, DeadlineKind::Tick),
            (state.restart_timer(), DeadlineKind::Restart),
            (state.run().and_then(|run| run.timeout), timeout),
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

    /// The events that can start a job.
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
                let jobs = self.plan_state.graph.jobs_of_pattern(job, nth).to_vec();
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
        match self.plan_state.graph.origin_of_pattern(job, condition) {
            Some(Origin::Watch(watch)) => {
                match self.plan_state.watches.get(watch.index()).and_then(|watch| watch.instances.as_deref())
                {
                    None => "no answer yet".into(),
                    Some([]) => "no healthy instances".into(),
                    Some(instances) => alloc::format!("{} healthy", instances.len()),
                }
            }
            Some(_) => String::new(),
            None => "unknown".into(),
        }
    }
}
