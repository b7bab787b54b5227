//! What the witness knows of each job, made from what can be seen from outside.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{CheckRunId, RunId};
use containerpilot_core::plan::{Job, Trigger};

/// Whether an event waits for the end of a run (W7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    No,
    Yes,
    /// It cannot be seen from outside.
    Perhaps,
}

#[derive(Clone, Debug)]
pub(super) struct RunModel {
    pub(super) run: RunId,
    pub(super) started: Option<Time>,
    /// When it was asked to make way for another (H8).
    pub(super) replaced: Option<Time>,
    /// When it was asked to end because the job stops (S2).
    pub(super) stopped: Option<Time>,
    /// How long it has for either.
    pub(super) stop_time: Duration,
    /// When it was last sent SIGKILL, for whatever reason.
    pub(super) killed: Option<Time>,
    /// Whether it was killed for its time (P5).
    pub(super) timed_out: bool,
    /// Whether it is killed as soon as it is there, because a reload has waited long enough.
    pub(super) doomed: bool,
    /// Whether it may be, because that reload came to nothing in the moment in which it had waited long enough.
    pub(super) overtaken: bool,
}

#[derive(Clone, Debug)]
pub(super) struct CheckModel {
    pub(super) running: Option<CheckRunId>,
    /// The run that goes on counts no more.
    pub(super) cut_short: bool,
    pub(super) began: Time,
    pub(super) passed: bool,
    pub(super) fails: u32,
    pub(super) early_fails: u32,
    pub(super) due: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) struct JobModel {
    /// Which life of the job this is, and since when.
    pub(super) generation: u64,
    pub(super) born: Time,
    /// Since when its turns are counted (W4).
    pub(super) turns_from: Option<Time>,
    /// How often it was started by hand, and how many of those runs were beside its turns.
    pub(super) by_hand: u64,
    pub(super) beside: u64,
    /// How many runs there were since it was last started by hand.
    pub(super) fresh_runs: u64,
    pub(super) run: Option<RunModel>,
    pub(super) runs: u64,
    pub(super) runs_at_shutdown: u64,
    /// Which of all new lives this is.
    pub(super) birth: u64,
    /// How many new lives there had been when it was last started by an event or by hand.
    pub(super) triggered: Option<u64>,
    /// How many events there were that start it, or are remembered.
    pub(super) fires: u64,
    pub(super) first_fire: Option<u64>,
    pub(super) pending: Pending,
    pub(super) holds: Vec<bool>,
    pub(super) stopping: Option<(Time, u64)>,
    pub(super) stopped: Option<u64>,
    pub(super) left: bool,
    /// Until when it waits for the catalog.
    pub(super) patience: Time,
    /// Since when the catalog does not hold it, or was not waited for any longer.
    pub(super) free_at: Option<Time>,
    pub(super) ended_at: Option<Time>,
    pub(super) last_failure: Option<u8>,
    /// Whether its last run was asked to end because the job stops, so that its end is no failure.
    pub(super) was_asked: bool,
    pub(super) early: u32,
    pub(super) restart_due: Option<Time>,
    pub(super) begun: Time,
    /// Whether it has ever given up (W5).
    pub(super) gave_up: bool,
    /// Whether it has begun without a process (W11).
    pub(super) has_begun: bool,
    pub(super) active: bool,
    pub(super) verdict: Option<bool>,
    pub(super) desired: DesiredService,
    pub(super) beat: Time,
    pub(super) checks: Vec<CheckModel>,
}

/// What was seen of one job in one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Somebody has started it by hand, or it was to start again and does.
    pub(super) by_hand: bool,
    /// It has begun a new life.
    pub(super) born: bool,
    pub(super) had_run: bool,
    pub(super) ended: bool,
    pub(super) ended_started: Option<Time>,
    pub(super) spawned: u32,
    pub(super) fired: u32,
    pub(super) exit_events: u32,
    pub(super) healthy: u32,
    pub(super) unhealthy: u32,
    pub(super) expected_healthy: u32,
    pub(super) expected_unhealthy: u32,
    pub(super) news: bool,
    /// It begins with a reload.
    pub(super) reloaded: bool,
    /// It has begun and ended in one part of a step, without a process.
    pub(super) blurred: bool,
    /// The same anywhere in this step.
    pub(super) short: bool,
    /// A run of it ends in this part.
    pub(super) ends_now: bool,
}

impl JobModel {
    pub(super) fn new(job: &Job) -> Self {
        let conditions = match &job.when.trigger {
            Trigger::All { conditions, .. } => conditions.len(),
            _ => 0,
        };
        let check = CheckModel {
            running: None,
            cut_short: false,
            began: Time::ZERO,
            passed: false,
            fails: 0,
            early_fails: 0,
            due: None,
        };
        Self {
            generation: 0,
            born: Time::ZERO,
            turns_from: None,
            by_hand: 0,
            beside: 0,
            fresh_runs: 0,
            run: None,
            runs: 0,
            runs_at_shutdown: 0,
            birth: 0,
            triggered: None,
            fires: 0,
            first_fire: None,
            pending: Pending::No,
            holds: vec![false; conditions],
            stopping: None,
            stopped: None,
            left: false,
            patience: Time::ZERO,
            free_at: None,
            ended_at: None,
            last_failure: None,
            was_asked: false,
            early: 0,
            restart_due: None,
            begun: Time::ZERO,
            gave_up: false,
            has_begun: false,
            active: false,
            verdict: None,
            desired: DesiredService::Absent,
            beat: Time::ZERO,
            checks: job.health.iter().flat_map(|health| &health.checks).map(|_| check.clone()).collect(),
        }
    }

    /// The same job in a new life: nothing of the last one counts, but what the catalog was told and the checks that have
    /// not ended yet.
    pub(super) fn reborn(&self, job: &Job, now: Time, birth: u64) -> Self {
        let mut new = Self::new(job);
        (new.generation, new.born, new.desired) = (self.generation + 1, now, self.desired);
        new.birth = birth;
        for (new, old) in new.checks.iter_mut().zip(&self.checks) {
            (new.running, new.cut_short, new.began) = (old.running, old.cut_short, old.began);
        }
        new
    }
}
