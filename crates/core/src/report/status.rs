//! The status of every job and watch, as data (X2).

mod awaited;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::effect::DesiredService;
use crate::event::Code;
use crate::files::FileOverview;
use crate::health::state::{CheckRun, CheckState};
use crate::ids::{EventId, JobIx, RunId};
use crate::input::ExitStatus;
use crate::locks::LockOverview;
use crate::outcome::{Outcome, SkipReason};
use crate::plan::{Check, Repeat, Restarts, Role};
use crate::report::words;
use crate::state::job::{State, StopReason, StopStage};
use crate::state::journal::EndReason;
use crate::state::phase::Phase;
pub use crate::state::run::{Cause, Readiness, RunCounts};
use crate::state::timers::TimerId;
use crate::supervisor::Core;
use crate::time::{Time, fmt_duration};
use crate::watches::WatchOverview;

pub use crate::health::state::CheckResult;

pub use self::awaited::{Awaited, RequirementOverview};
pub use crate::report::deadlines::{Deadline, DeadlineKind};

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
    /// The result of its checks; `None` if unknown. [`JobStatus::health`] is the health of the job.
    pub healthy: Option<bool>,
    /// The readiness that its process has reported; `None` without `ready` or without a process (H11).
    pub readiness: Option<Readiness>,
    /// Restarts since it was last started by an event. For a periodic job, the ticks after the first.
    pub restarts: u64,
    /// How its last run ended.
    pub last_exit: Option<ExitStatus>,
    /// The desired state of its service in the catalog.
    pub desired: DesiredService,
    /// Why it stops or has ended.
    pub stop_reason: Option<StopReason>,
    /// True if it has ended and a reload in progress starts it again.
    pub reload_starts: bool,
    /// True if it would start now, but waits for something that it requires (W18).
    pub deferred: bool,
}

/// The state of a job, as users see it (X7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedState {
    /// It waits for its event or its next tick.
    Waiting,
    /// A process was requested, or waits for its turn (P14).
    Starting,
    /// It has a process, or is checked without one.
    Running,
    /// It has no process, and will run again without another event.
    Restarting,
    /// It stops.
    Stopping,
    /// It has ended.
    Ended(Outcome),
}

impl ReportedState {
    /// The state in one word. These words are part of the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Ended(outcome) => outcome.name(),
        }
    }
}

impl JobStatus {
    /// The state that is reported.
    #[must_use]
    pub const fn reported(&self) -> ReportedState {
        match (self.state, self.stop_stage) {
            (State::Ended(_), _) if self.reload_starts => ReportedState::Restarting,
            (State::Ended(outcome), _) => ReportedState::Ended(outcome),
            (_, Some(_)) | (State::Outlived, None) => ReportedState::Stopping,
            (State::Waiting, None) => ReportedState::Waiting,
            (State::Queued | State::Starting, None) => ReportedState::Starting,
            (State::Running, None) => ReportedState::Running,
            (State::Delaying, None) => ReportedState::Restarting,
        }
    }

    /// Every word that [`JobStatus::word`] can return.
    pub const WORDS: [&'static str; 9] = [
        "waiting",
        "starting",
        "running",
        "restarting",
        "stopping",
        "stopped",
        "complete",
        "failed",
        "skipped",
    ];

    /// What it is doing, in one word of [`JobStatus::WORDS`].
    #[must_use]
    pub const fn word(&self) -> &'static str {
        self.reported().name()
    }

    /// True if the job is healthy; `None` if unknown. The health of a job that stops is unknown, also while its checks
    /// still run (X7).
    #[must_use]
    pub const fn health(&self) -> Option<bool> {
        if self.stop_stage.is_none() { self.healthy } else { None }
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
    /// The rendered files, in the order of the plan.
    pub files: Vec<FileOverview>,
    /// The locks, in the order of the plan.
    pub locks: Vec<LockOverview>,
    /// Events per source and code.
    pub events: Vec<EventCount>,
    /// When the remaining jobs are killed, during a shutdown (S4).
    pub shutdown_deadline: Option<Time>,
    /// Why nothing can happen any more, if that is so (W10).
    pub deadlock: Option<String>,
}

/// The schedule of a job with `cron` (W15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronOverview {
    /// The schedule as written.
    pub text: String,
    /// The name of its time zone.
    pub zone: String,
    /// The next time, in seconds since 1970.
    pub next: Option<u64>,
}

/// Everything known about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOverview {
    /// The job.
    pub job: JobIx,
    /// Its name.
    pub name: String,
    /// The job with `replicas` that it is a replica of (W20).
    pub replica_of: Option<String>,
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
    /// Why the supervisor ended its last run; `None` if that exited by itself.
    pub ended_by: Option<EndReason>,
    /// The process of its last run that ended.
    pub last_pid: Option<i32>,
    /// Why its last run could not be started; `None` if it had a process.
    pub start_error: Option<String>,
    /// Failed runs in a row, up to the last one (X9).
    pub failed_runs: u64,
    /// How it ended, or will end although it still stops; `None` if that is not certain (X7).
    pub outcome: Option<Outcome>,
    /// Why it was skipped.
    pub skip_reason: Option<String>,
    /// True if the supervisor keeps running until it has ended (W10).
    pub holds_open: bool,
    /// True if it can end without being stopped: it runs a program, and its restarts are limited.
    pub ends_by_itself: bool,
    /// Restarts in total, without the ticks of a periodic job; the count in `status` is reset by each event that starts
    /// it.
    pub restarts_total: u64,
    /// The runs that have ended.
    pub runs: RunCounts,
    /// True if it runs at an interval. Then its restarts are ticks.
    pub periodic: bool,
    /// Its schedule, if it runs at certain times (W15).
    pub cron: Option<CronOverview>,
    /// True if only a user starts it (W17).
    pub manual: bool,
    /// The restarts left; `None` if unlimited.
    pub restarts_left: Option<u64>,
    /// The status that its process has reported (H11).
    pub process_status: Option<String>,
    /// Its timers, the next one first.
    pub deadlines: Vec<Deadline>,
    /// Its checks.
    pub checks: Vec<CheckOverview>,
    /// The events it waits for; empty unless it waits.
    pub waits_for: Vec<Awaited>,
    /// True if it needs all of them (W12).
    pub needs_all: bool,
    /// What it requires (W18).
    pub requires: Vec<RequirementOverview>,
    /// The stop hooks it waits for (S2).
    pub hooks: Vec<JobIx>,
    /// The jobs that must end before it stops (S10).
    pub stops_after: Vec<JobIx>,
    /// What started the current or last run.
    pub cause: Option<Cause>,
    /// What it does in place of a program (W19).
    pub action: Option<String>,
    /// Its groups (W22).
    pub groups: Vec<String>,
    /// The events that wait for the end of its run (W7, W21).
    pub pending_events: usize,
    /// The events that were dropped because too many were pending (W21); `None` if it has no queue.
    pub dropped_events: Option<u64>,
}

impl JobOverview {
    /// How its last run ended, without the time; `None` if it has not run.
    #[must_use]
    pub fn last_run(&self) -> Option<String> {
        if self.start_error.is_some() {
            return Some(if self.action.is_some() { words::REFUSED } else { words::FAILED_START }.into());
        }
        let exit = self.status.last_exit?;
        Some(words::run_exit(exit, self.ended_by.map(EndReason::name)))
    }

    /// The health in one word; a job without checks has none.
    #[must_use]
    pub fn health_word(&self) -> &'static str {
        match self.status.health() {
            _ if self.checks.is_empty() => "none",
            Some(true) => "healthy",
            Some(false) => "unhealthy",
            None => "unknown",
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
    /// How many make the job unhealthy.
    pub failures_needed: u32,
    /// When it runs next.
    pub next: Option<Time>,
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
            healthy: self.is_healthy(job),
            readiness: self.readiness(job),
            restarts: state.restarts,
            last_exit: state.last_exit.map(|exit| exit.status),
            desired: state.desired,
            stop_reason: state.stop_reason(),
            reload_starts: self.is_started_by_reload(job),
            deferred: self.is_deferred(job),
        }
    }

    /// Returns true if a job has ended for a reload in progress that starts it again.
    fn is_started_by_reload(&self, job: JobIx) -> bool {
        let state = self.job(job);
        state.has_ended()
            && state.stop_reason() == Some(StopReason::Reload)
            && self.reload.as_ref().is_some_and(|pending| {
                let name = &self.planned(job).name;
                pending.plan.jobs.iter().any(|job| job.name == *name)
            })
    }

    /// Why a job never ran and never will; `None` if that is not so.
    pub(crate) fn skip_reason(&self, job: JobIx) -> Option<String> {
        match self.certain_outcome(job)? {
            Outcome::Skipped(SkipReason::Unreachable) => Some(self.why_unreachable(job)),
            Outcome::Skipped(SkipReason::StartTimeout) => {
                let timeout = fmt_duration(self.planned(job).when.timeout.unwrap_or_default());
                let missed = self.awaited(job).into_iter().filter(|awaited| !awaited.holds);
                let missed: Vec<String> =
                    missed.map(|awaited| words::missed(&awaited.source, awaited.code)).collect();
                let missed = if missed.is_empty() { "not started".into() } else { missed.join(" and ") };
                Some(format!("{missed} within {timeout}"))
            }
            Outcome::Skipped(reason) => Some(reason.words().into()),
            Outcome::Complete | Outcome::Failed | Outcome::Stopped => None,
        }
    }

    /// How a job ended, or will end when its stop hooks are done. A job that is being stopped may still fail, and a
    /// user may have it started again.
    fn certain_outcome(&self, job: JobIx) -> Option<Outcome> {
        let state = self.job(job);
        match (state.state(), state.stop_reason()) {
            (State::Ended(_), _) if self.is_started_by_reload(job) => None,
            (State::Ended(outcome), _) => Some(outcome),
            (
                _,
                Some(
                    StopReason::ByHand
                    | StopReason::ByAction
                    | StopReason::Reload
                    | StopReason::Shutdown
                    | StopReason::SourceGone,
                ),
            ) => None,
            _ => state.outcome(),
        }
    }

    /// The job with this name; of several, the first.
    #[must_use]
    pub fn job_named(&self, name: &str) -> Option<JobIx> {
        self.plan().jobs.iter().position(|job| job.name == name).map(JobIx::at)
    }

    /// Returns true while a reload waits for jobs that it stops.
    #[must_use]
    pub fn is_reloading(&self) -> bool {
        self.reload.is_some()
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
            watches: self.plan_state.parts.watches.overviews(self.plan()),
            files: self.plan_state.parts.files.overviews(self.file_view()),
            locks: self.plan_state.parts.locks.overviews(self.plan()),
            events: self
                .event_counts
                .iter()
                .map(|((origin, code), count)| EventCount {
                    source: self.origin_name(*origin),
                    code: *code,
                    count: *count,
                })
                .collect(),
            shutdown_deadline: self.shutdown_deadlines.map(|deadlines| deadlines.kill_by),
            deadlock: self.deadlock(),
        }
    }

    /// Everything known about a job.
    #[must_use]
    pub fn job_overview(&self, job: JobIx) -> JobOverview {
        let (planned, state) = (self.planned(job), self.job(job));
        let waits = state.state() == State::Waiting && state.is_up();
        JobOverview {
            job,
            name: planned.name.clone(),
            replica_of: planned.replica.as_ref().map(|replica| replica.group.clone()),
            role: planned.role,
            runs_repeatedly: planned.when.repeat() == Repeat::Each,
            service: planned.service.as_ref().map(|service| (service.address, service.port)),
            status: self.status(job),
            started_at: state.started_at,
            ended_at: state.last_exit.map(|exit| exit.at),
            ended_by: state.last_exit.and_then(|exit| exit.ended_by),
            last_pid: state.last_exit.and_then(|exit| exit.pid),
            start_error: state.start_error.clone(),
            failed_runs: state.failed_runs,
            outcome: self.certain_outcome(job),
            skip_reason: self.skip_reason(job),
            holds_open: self.plan_state.graph.holds_open(job),
            ends_by_itself: planned.exec.is_some() && planned.ends_by_itself(),
            restarts_total: state.restarts_total,
            runs: state.runs,
            periodic: planned.when.is_periodic(),
            cron: planned.when.cron().map(|cron| CronOverview {
                text: cron.text.clone(),
                zone: cron.zone.name.clone(),
                next: state.ticks.cron.filter(|_| state.ticks.timer.is_some()).map(|times| times.next),
            }),
            manual: planned.when.is_manual(),
            restarts_left: match planned.restarts {
                Restarts::Unlimited => None,
                Restarts::Limited(most) => Some(most.saturating_sub(state.restarts)),
            },
            process_status: state
                .run()
                .and_then(|run| run.notified.as_ref())
                .and_then(|notified| notified.status.clone()),
            deadlines: self.deadlines_of(job),
            checks: self.checks_overview(job),
            // The event of a start that waits for a requirement has come.
            waits_for: if waits && !self.is_deferred(job) { self.awaited(job) } else { Vec::new() },
            needs_all: planned.when.needs_all(),
            requires: self.requirements_overview(job),
            hooks: if state.stop_stage() == Some(StopStage::Hooks) {
                self.outstanding_hooks(job)
            } else {
                Vec::new()
            },
            stops_after: if state.stop_stage() == Some(StopStage::Requirers) {
                self.outstanding_requirers(job).collect()
            } else {
                Vec::new()
            },
            cause: state.cause,
            action: planned.exec.action().map(ToString::to_string),
            groups: planned.groups.clone(),
            pending_events: state.pending.len(),
            dropped_events: state.pending.is_queue().then(|| state.pending.dropped()),
        }
    }

    fn checks_overview(&self, job: JobIx) -> Vec<CheckOverview> {
        let planned = self.planned(job).health.iter().flat_map(|health| &health.checks);
        let states = self.health_of(job).into_iter().flat_map(|health| &health.checks);
        let overview = |(planned, state): (&Check, &CheckState)| CheckOverview {
            name: planned.name.clone(),
            running: matches!(state.run, CheckRun::Running { .. }),
            last: state.last.clone(),
            failures: state.failures,
            failures_needed: planned.failures,
            next: state.next.map(TimerId::at),
        };
        planned.zip(states).map(overview).collect()
    }
}
