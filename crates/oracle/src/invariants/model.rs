//! The model of each job, built from what can be observed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use containerpilot_core::effect::DesiredService;
use containerpilot_core::event::Code;
use containerpilot_core::ids::{CheckRunId, RunId};
use containerpilot_core::plan::{Job, Trigger};
use containerpilot_core::{Notice, Time};

/// Whether an event is pending until the end of a run (W7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    No,
    Yes,
    /// It cannot be observed.
    Perhaps,
}

#[derive(Clone, Debug)]
pub(super) struct RunModel {
    pub(super) run: RunId,
    /// The variables that actions had set when it was started.
    pub(super) variables: BTreeMap<String, Option<String>>,
    /// When the time of its start is over (P3), counted again if it had no processor (P14).
    pub(super) exec_by: Time,
    /// When it executed its program.
    pub(super) started: Option<Time>,
    /// True if a user or an action started it between two ticks (W4).
    pub(super) off_schedule: bool,
    /// True if a stop event started it.
    pub(super) by_stop_event: bool,
    /// True if a stop event started it, and its job is a hook (S3).
    pub(super) is_hook: bool,
    /// When it was sent its stop signal because the job is unhealthy (H8).
    pub(super) replaced: Option<Time>,
    /// When it was sent its stop signal because the job stops (S2).
    pub(super) stopped: Option<Time>,
    /// How long it may take to exit after either.
    pub(super) stop_timeout: Duration,
    /// How many signals of its escalation it was sent since then (S9).
    pub(super) escalated: usize,
    /// True if a reload has changed the stop of its job since then (R5).
    pub(super) stop_adjusted: bool,
    /// When it was last sent SIGKILL, for any reason.
    pub(super) killed: Option<Time>,
    /// When it was first sent SIGKILL.
    pub(super) first_killed: Option<Time>,
    /// When its ticks go on, if a reload has raised their number after the last one (R5).
    pub(super) ticks_from: Option<Time>,
    /// True if it was killed at its timeout (P5).
    pub(super) timed_out: bool,
    /// True if it was killed because a reload has waited long enough: it has no further timeout.
    pub(super) killed_for_reload: bool,
    /// True if its process has exited, and others of it have not (S14).
    pub(super) outlived: bool,
    /// What it has said about itself, and when (H11).
    pub(super) notices: Vec<(Time, Notice)>,
    /// How many `ready` events its notices have caused.
    pub(super) ready_sent: usize,
}

#[derive(Clone, Debug)]
pub(super) struct CheckModel {
    pub(super) running: Option<CheckRunId>,
    /// The result of the current run does not count any more.
    pub(super) canceled: bool,
    pub(super) began: Time,
    /// True once it has passed often enough in a row (H9).
    pub(super) passed: bool,
    /// True if it passes now: so long as not too many in a row fail.
    pub(super) passes: bool,
    /// Passes in a row.
    pub(super) passes_in_a_row: u32,
    pub(super) fails: u32,
    pub(super) early_fails: u32,
    pub(super) due: Option<Time>,
}

/// The schedule of a job, on the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Schedule {
    /// When it began. A clock that is set to before begins it again.
    pub(super) since: Duration,
    /// The last minute that has come.
    pub(super) minute: u64,
}

#[derive(Clone, Debug)]
pub(super) struct JobModel {
    /// The generation of the job.
    pub(super) generation: u64,
    pub(super) created: Time,
    /// True if an earlier generation had a run at the same time.
    pub(super) ran_just_before: bool,
    /// The time that its ticks count from (W4).
    pub(super) ticks_from: Option<Time>,
    pub(super) schedule: Option<Schedule>,
    /// How often it was started by hand, and how many of those runs were not ticks.
    pub(super) by_hand: u64,
    pub(super) off_schedule: u64,
    pub(super) runs_since_manual_start: u64,
    pub(super) run: Option<RunModel>,
    pub(super) runs: u64,
    /// How many runs a reload has added to those that the new number of restarts allows (R5).
    pub(super) runs_before_adjustment: u64,
    /// The restarts, also a delayed one, when a reload changed their number (R5).
    pub(super) restarts_at_adjustment: u64,
    pub(super) runs_at_shutdown: u64,
    /// The number of this generation among those of all jobs.
    pub(super) serial: u64,
    /// How many generations of all jobs there were when it was last started by an event or by hand.
    pub(super) triggered: Option<u64>,
    /// How many events triggered it.
    pub(super) fires: u64,
    pub(super) first_fire: Option<u64>,
    pub(super) pending: Pending,
    /// The events that have not had their run (W21). The source is unknown if a reload has repeated the event.
    pub(super) queue: VecDeque<(Option<String>, Code)>,
    pub(super) holds: Vec<bool>,
    pub(super) stopping: Option<(Time, u64)>,
    /// S2: how long it may wait for its hooks: its own `stopTimeout`, and for a stop by hand the global one.
    pub(super) hook_limit: Option<Duration>,
    /// Its drain time, if that began before a reload.
    pub(super) drain: Option<Duration>,
    /// The run of its drain program, until that has exited or is cancelled (S11).
    pub(super) drain_run: Option<CheckRunId>,
    /// When its drain program exited.
    pub(super) drain_done: Option<Time>,
    pub(super) stopped: Option<u64>,
    /// True if its first start was delayed, because it is an action in a ring (W14).
    pub(super) is_spaced: bool,
    /// True if its hooks are done and it leaves the catalog.
    pub(super) left: bool,
    /// Until when it waits for its deregistration.
    pub(super) deregister_deadline: Time,
    /// When the deregistration was confirmed, or not waited for any longer.
    pub(super) free_at: Option<Time>,
    pub(super) ended_at: Option<Time>,
    pub(super) last_failure: Option<u8>,
    /// The event of its last exit. A crash loop is a failure also after a success (W14).
    pub(super) last_exit: Option<Code>,
    /// The exit code of its last run.
    pub(super) last_code: u8,
    /// True if its last run failed, or was ended because it was unhealthy (W13).
    pub(super) run_failed: bool,
    /// The starts that count for its start limit (W14).
    pub(super) starts: Vec<Time>,
    /// True if it has reached its start limit (W14).
    pub(super) crash_looped: bool,
    /// True if its last run was sent its stop signal because the job stops, so that its exit is not a failure.
    pub(super) was_terminated: bool,
    /// How many short runs there were in a row; `None` if that is not known, because the job has triggered itself (W14).
    pub(super) early: Option<u32>,
    pub(super) restart_due: Option<Time>,
    /// When it last started because of its own events, if no other event has started it since (W14).
    pub(super) triggered_itself: Option<Time>,
    pub(super) begun: Time,
    /// True if this generation follows one that was stopped because a source was gone (W18).
    pub(super) resumed: bool,
    /// True if it has given up (W5).
    pub(super) gave_up: bool,
    /// True if it has started without a process (W11).
    pub(super) has_begun: bool,
    /// True if it is being checked.
    pub(super) active: bool,
    /// Since when it is being checked.
    pub(super) epoch: Time,
    pub(super) health_state: Option<bool>,
    pub(super) desired: DesiredService,
    pub(super) last_heartbeat: Time,
    pub(super) checks: Vec<CheckModel>,
}

/// What was observed of one job in one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// It was started by hand, or starts again after a manual restart.
    pub(super) by_hand: bool,
    /// An action has stopped it.
    pub(super) stopped_by_action: bool,
    /// It has a new generation.
    pub(super) is_new: bool,
    pub(super) had_run: bool,
    pub(super) ended: bool,
    pub(super) ended_started: Option<Time>,
    /// The definition when a run ended, if a reload has changed it later in the step (R5).
    pub(super) ended_as: Option<Box<Job>>,
    pub(super) spawned: u32,
    /// True if its action was to be performed when the shutdown started.
    pub(super) acts_before_shutdown: bool,
    /// How often its action was performed.
    pub(super) acted: u32,
    pub(super) fired: u32,
    /// True if a hook, which had fired already, fires once more if an action starts its job again before the event is dispatched.
    pub(super) may_fire: bool,
    /// How many runs ended: the last one may have started in the same step and been given up.
    pub(super) ends: u32,
    pub(super) exit_events: u32,
    pub(super) healthy: u32,
    pub(super) unhealthy: u32,
    pub(super) expected_healthy: u32,
    pub(super) expected_unhealthy: u32,
    /// The changes of its health.
    pub(super) changes: Vec<Code>,
    pub(super) expected_changes: Vec<Code>,
    /// It has become unhealthy.
    pub(super) became_unhealthy: bool,
    /// It got a stop signal because it is unhealthy (H8).
    pub(super) replaced: bool,
    pub(super) heartbeats: usize,
    /// It has left the catalog, in this part or any other of the step.
    pub(super) leaves_catalog_now: bool,
    pub(super) left_catalog: bool,
    /// It starts with a reload.
    pub(super) reloaded: bool,
    /// A reload has changed its definition, not its process (R5).
    pub(super) adjusted: bool,
    /// It has started and ended in one part of a step, without a process.
    pub(super) ran_within_part: bool,
    /// The same in any part of this step.
    pub(super) ran_within_step: bool,
    /// A run of it ends in this part.
    pub(super) ends_now: bool,
    /// The log says that its last failed run is not followed by another (L7).
    pub(super) failed_finally: bool,
}

impl JobModel {
    pub(super) fn new(job: &Job) -> Self {
        let conditions = match &job.when.trigger {
            Trigger::All { conditions, .. } => conditions.len(),
            _ => 0,
        };
        let check = CheckModel {
            running: None,
            canceled: false,
            began: Time::ZERO,
            passed: false,
            passes: false,
            passes_in_a_row: 0,
            fails: 0,
            early_fails: 0,
            due: None,
        };
        Self {
            generation: 0,
            created: Time::ZERO,
            ran_just_before: false,
            ticks_from: None,
            schedule: None,
            by_hand: 0,
            off_schedule: 0,
            runs_since_manual_start: 0,
            run: None,
            runs: 0,
            runs_before_adjustment: 0,
            restarts_at_adjustment: 0,
            runs_at_shutdown: 0,
            serial: 0,
            triggered: None,
            fires: 0,
            first_fire: None,
            pending: Pending::No,
            queue: VecDeque::new(),
            holds: vec![false; conditions],
            stopping: None,
            hook_limit: None,
            drain: None,
            drain_run: None,
            drain_done: None,
            stopped: None,
            is_spaced: false,
            left: false,
            deregister_deadline: Time::ZERO,
            free_at: None,
            ended_at: None,
            last_failure: None,
            last_exit: None,
            last_code: 0,
            run_failed: false,
            starts: Vec::new(),
            crash_looped: false,
            was_terminated: false,
            early: Some(0),
            restart_due: None,
            triggered_itself: None,
            begun: Time::ZERO,
            resumed: false,
            gave_up: false,
            has_begun: false,
            active: false,
            epoch: Time::ZERO,
            health_state: None,
            desired: DesiredService::Absent,
            last_heartbeat: Time::ZERO,
            checks: job.health.iter().flat_map(|health| &health.checks).map(|_| check.clone()).collect(),
        }
    }

    /// The next generation of the job. It keeps only the desired catalog status and the checks that have not ended.
    pub(super) fn next_generation(&self, job: &Job, now: Time, serial: u64) -> Self {
        let mut new = Self::new(job);
        (new.generation, new.created, new.desired) = (self.generation + 1, now, self.desired);
        new.serial = serial;
        new.ran_just_before = self.ended_at == Some(now) || (self.ran_just_before && self.created == now);
        for (new, old) in new.checks.iter_mut().zip(&self.checks) {
            (new.running, new.canceled, new.began) = (old.running, old.canceled, old.began);
        }
        new
    }
}
