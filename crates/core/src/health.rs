//! Whether a job is healthy (H2, H5, H7–H9), and what that causes.
//!
//! A job is healthy when all of its checks have passed, and unhealthy when one has failed often enough. When the checks
//! run and what one result means is in `checks.rs`; the notices of the process that it is ready or alive are a check,
//! too (`watchdog.rs`). `rules/health.rs` carries out what follows for the service of the job and for other jobs.

pub(crate) mod checks;
pub(crate) mod context;
mod heartbeats;
pub(crate) mod state;
mod watchdog;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::Code;
use crate::health::context::{HealthContext, HealthDecision};
use crate::health::heartbeats::heartbeat_interval;
use crate::health::state::JobHealth;
use crate::ids::JobIx;
use crate::log_entry::Fields;
use crate::plan::{Job, Level, OnUnhealthy, Plan};
#[cfg(feature = "fingerprint")]
use crate::state::fingerprint::Fingerprint;
use crate::time::Time;

/// The health of all jobs of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Health {
    /// `None` for a job without checks.
    jobs: Vec<Option<JobHealth>>,
}

/// H9: the exit of a process so soon after it became healthy is suspicious.
const JUST_HEALTHY: Duration = Duration::from_secs(1);

impl Health {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { jobs: plan.jobs.iter().map(|job| job.health.as_ref().map(JobHealth::new)).collect() }
    }

    /// What is known about a job; `None` if it has no checks.
    pub(crate) fn of(&self, job: JobIx) -> Option<&JobHealth> {
        self.jobs.get(job.index())?.as_ref()
    }

    pub(crate) fn of_mut(&mut self, job: JobIx) -> Option<&mut JobHealth> {
        self.jobs.get_mut(job.index())?.as_mut()
    }

    /// A reload continues a job: it is as healthy as it was.
    pub(crate) fn keep(&mut self, job: JobIx, old: &mut Self, from: JobIx) {
        core::mem::swap(&mut self.jobs[job.index()], &mut old.jobs[from.index()]);
    }

    /// A reload or a start creates the next generation of a job. `old` is that of the last one.
    pub(crate) fn begin_generation(&mut self, job: JobIx, planned: &Job, old: Option<JobHealth>) {
        let mut health = planned.health.as_ref().map(JobHealth::new);
        if let (Some(new), Some(old)) = (&mut health, old) {
            new.continue_from(old);
        }
        self.jobs[job.index()] = health;
    }

    pub(crate) fn take(&mut self, job: JobIx) -> Option<JobHealth> {
        self.jobs.get_mut(job.index())?.take()
    }

    /// R5: a reload has changed the checks of a job whose process continues. The job stays healthy, or unhealthy, until
    /// they say otherwise.
    pub(crate) fn replace_checks(&mut self, job: JobIx, planned: &Job) {
        let Some(planned) = &planned.health else { return };
        let mut health = JobHealth::new(planned);
        if let Some(old) = self.take(job) {
            (health.healthy, health.healthy_since) = (old.healthy, old.healthy_since);
            health.continue_from(old);
        }
        self.jobs[job.index()] = Some(health);
    }

    /// Hides the reasons of failed checks, for reports.
    pub(crate) fn redact(&mut self) {
        let checks = self.jobs.iter_mut().flatten().flat_map(|health| &mut health.checks);
        for last in checks.filter_map(|check| check.last.as_mut()) {
            last.result = last.result.as_ref().map_err(|_| String::new()).copied();
        }
    }

    /// Adds what decisions depend on, for the exhaustive search.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn fingerprint(&self, plan: &Plan, print: &mut Fingerprint) {
        print.list(self.jobs.iter().zip(&plan.jobs), |print, (health, planned)| {
            print.option(health.as_ref(), |print, health| health.fingerprint(planned, print));
        });
    }
}

impl JobHealth {
    /// H2: a check has passed. The job is healthy when all of its checks have passed.
    fn passed(&mut self, context: &mut HealthContext<'_>) {
        if !self.checks.iter().all(|check| check.passes == Some(true)) {
            return;
        }
        if self.healthy.replace(true) == Some(true) {
            context.send_repeat(Code::Healthy);
            // H6: a passing check is a heartbeat, unless heartbeats have their own interval.
            if heartbeat_interval(context.planned()).is_none() {
                context.decide(HealthDecision::Heartbeat);
            }
            return;
        }
        self.healthy_since = context.now;
        context.log(Level::Info, Code::Healthy, "healthy".into());
        context.send(Code::Healthy);
        context.send(Code::BecameHealthy);
        context.decide(HealthDecision::BecameHealthy);
        self.set_heartbeat(context);
    }

    /// A check has failed often enough: the job is unhealthy. E5: sends `unhealthy` at every failed check that counts.
    fn unhealthy(&mut self, check: &str, why: &str, context: &mut HealthContext<'_>) {
        let became_unhealthy = self.healthy.replace(false) != Some(false);
        if became_unhealthy {
            let fields = Fields::from(Code::Unhealthy).check(check).cause(why);
            context.log(Level::Warn, fields, format!("unhealthy: {check}: {why}"));
            self.send_unhealthy(context);
        } else {
            context.send_repeat(Code::Unhealthy);
        }
        context.decide(HealthDecision::MarkCritical);
        let planned = context.planned().health.as_ref();
        if became_unhealthy && planned.is_some_and(|health| health.on_unhealthy == OnUnhealthy::Restart) {
            context.decide(HealthDecision::ReplaceRun);
        }
    }

    fn send_unhealthy(&self, context: &mut HealthContext<'_>) {
        context.send(Code::Unhealthy);
        context.send(Code::BecameUnhealthy);
        context.decide(HealthDecision::NoLongerHealthy);
    }

    /// H9: how long a job with these checks has been healthy whose process exits by itself, if that is suspiciously
    /// short.
    pub(crate) fn just_became_healthy(&self, planned: &Job, now: Time) -> Option<Duration> {
        let mut checks = planned.health.iter().flat_map(|health| &health.checks);
        let is_real = checks.any(|check| !check.probe.is_passive());
        let time = now.since(self.healthy_since);
        (is_real && self.healthy == Some(true) && time < JUST_HEALTHY).then_some(time)
    }

    /// H7: the process has exited, so the health is unknown. Sends `unhealthy` if it was healthy.
    pub(crate) fn end(&mut self, context: &mut HealthContext<'_>) {
        self.stop(context);
        if self.healthy.take() == Some(true) {
            self.send_unhealthy(context);
        }
        context.decide(HealthDecision::MarkCritical);
    }

    /// D8: maintenance mode suspends the checks, and the health is unknown.
    pub(crate) fn suspend(&mut self, context: &mut HealthContext<'_>) {
        self.stop(context);
        self.healthy = None;
    }
}
