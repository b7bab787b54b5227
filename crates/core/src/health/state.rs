//! What is known about the checks of a job.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{CheckIx, CheckRunId, EventId};
use crate::plan;
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::{Fingerprint, Name};
use crate::state::timers::TimerId;
use crate::time::Time;
use crate::variables::CauseVariables;

/// What is known about the health of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobHealth {
    /// True while checks are scheduled.
    pub(crate) active: bool,
    /// Healthy or unhealthy; `None` if unknown.
    pub(crate) healthy: Option<bool>,
    /// When it last became healthy.
    pub(crate) healthy_since: Time,
    pub(crate) checks: Vec<CheckState>,
    /// The next heartbeat, if heartbeats have their own interval (H6).
    pub(crate) heartbeat: Option<TimerId>,
    /// The end of the time for `WATCHDOG=1` (H12).
    pub(crate) watchdog: Option<TimerId>,
    /// The variables of the last check, reused while the job's run is the same.
    pub(crate) variables: Option<CheckVariables>,
}

/// The variables of the checks of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CheckVariables {
    /// The job's restart count and the cause of its run.
    pub(crate) key: (u64, Option<EventId>),
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub(crate) variables: Arc<CauseVariables>,
}

/// The current run of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CheckRun {
    #[default]
    None,
    /// Its result counts.
    Running {
        id: CheckRunId,
        /// `None` while its process waits for its turn (P14).
        timeout: Option<TimerId>,
    },
    /// Its result is ignored: it timed out, or the process it was for has exited.
    Stale {
        id: CheckRunId,
        /// True if the check is due again as soon as this run has finished.
        run_again: bool,
    },
}

impl CheckRun {
    pub(crate) const fn id(self) -> Option<CheckRunId> {
        match self {
            Self::None => None,
            Self::Running { id, .. } | Self::Stale { id, .. } => Some(id),
        }
    }
}

/// What is known about one check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CheckState {
    pub(crate) run: CheckRun,
    /// When the last check started.
    pub(crate) started_at: Time,
    /// The last result that counted.
    pub(crate) last: Option<CheckResult>,
    /// `None` until it has passed `successes` times in a row.
    pub(crate) passes: Option<bool>,
    /// Failures in a row that count.
    pub(crate) failures: u32,
    /// Passes in a row.
    pub(crate) successes: u32,
    /// The delay before the next try, until the first pass; `None` before the first failure.
    pub(crate) delay: Option<Duration>,
    pub(crate) next: Option<TimerId>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// When it finished.
    pub at: Time,
    /// How long it took.
    pub took: Duration,
    /// The reason, if it failed: it is only shown.
    pub result: Result<(), String>,
}

impl JobHealth {
    pub(crate) fn new(health: &plan::Health) -> Self {
        Self {
            active: false,
            healthy: None,
            healthy_since: Time::ZERO,
            checks: health.checks.iter().map(|_| CheckState::new()).collect(),
            heartbeat: None,
            watchdog: None,
            variables: None,
        }
    }

    /// Takes the unfinished check runs of the previous generation, so that no check runs twice at a time (H4).
    pub(crate) fn continue_from(&mut self, old: Self) {
        for (new, old) in self.checks.iter_mut().zip(old.checks) {
            if let Some(id) = old.run.id() {
                new.run = CheckRun::Stale { id, run_again: false };
            }
        }
    }

    pub(crate) fn check_mut(&mut self, check: CheckIx) -> Option<&mut CheckState> {
        self.checks.get_mut(check.index())
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, planned: &plan::Job, print: &mut Fingerprint) {
        // The variables are text for the processes of checks; the time since it became healthy is only reported.
        let Self { active, healthy, healthy_since: _, checks, heartbeat, watchdog, variables: _ } = self;
        print.add((active, healthy));
        print.option(*heartbeat, |print, timer| timer.fingerprint(print));
        print.option(*watchdog, |print, timer| timer.fingerprint(print));
        let planned = planned.health.iter().flat_map(|health| &health.checks);
        print.list(checks.iter().zip(planned), |print, (check, planned)| {
            // The last result is only reported.
            let CheckState { run, started_at, last: _, passes, failures, successes, delay, next } = check;
            print.add(core::mem::discriminant(run));
            match run {
                CheckRun::None => {}
                CheckRun::Running { id, timeout } => {
                    print.name(Name::Check, id.0);
                    print.option(*timeout, |print, timer| timer.fingerprint(print));
                    print.age(*started_at, planned.interval);
                }
                CheckRun::Stale { id, run_again } => {
                    print.name(Name::Check, id.0);
                    print.add(run_again);
                }
            }
            if *active {
                // Checks that begin forget all this.
                let delay = passes.is_none().then_some(delay);
                print.add((passes, (*failures).min(planned.failures), delay));
                print.add((*successes).min(planned.successes));
            }
            print.option(*next, |print, timer| timer.fingerprint(print));
        });
    }
}

impl CheckState {
    const fn new() -> Self {
        Self {
            run: CheckRun::None,
            started_at: Time::ZERO,
            last: None,
            passes: None,
            failures: 0,
            successes: 0,
            delay: None,
            next: None,
        }
    }

    /// Forgets the results of the previous run of the job.
    pub(crate) const fn reset(&mut self) {
        (self.passes, self.failures, self.successes, self.delay) = (None, 0, 0, None);
    }

    /// Records a result.
    pub(crate) fn record(&mut self, now: Time, result: Result<(), String>) {
        (self.successes, self.failures) = match result {
            Ok(()) => (self.successes.saturating_add(1), 0),
            Err(_) => (0, self.failures.saturating_add(1)),
        };
        self.last = Some(CheckResult { at: now, took: now.since(self.started_at), result });
    }
}
