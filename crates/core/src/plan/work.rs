//! Which jobs keep the supervisor running (W10).

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::stop::HOOK_TIMEOUT;
use super::{Action, EventPattern, Job, OnCompletion, OnStartLimit, Plan, Repeat, RestartOn, Restarts};
use crate::event::{Code, Source};

impl Job {
    /// Returns true if the job does work: something of its own, or, as more than a hook, after the stop of another job
    /// (S13).
    pub(crate) fn does_work(&self) -> bool {
        !self.role.is_secondary()
            && !self.when.is_manual()
            && (!self.only_reacts() || self.works_after_stop())
    }

    /// Returns true if the job reacts to signals, maintenance or stop events, and to nothing else.
    pub(crate) fn only_reacts(&self) -> bool {
        let reacts = |event: &EventPattern| {
            matches!(event.source, Source::Signal(_))
                || event.code.is_stop_event()
                || matches!(event.code, Code::EnterMaintenance | Code::ExitMaintenance)
        };
        let patterns = self.when.patterns();
        !patterns.is_empty() && patterns.iter().all(reacts)
    }

    /// S13: returns true if the stop of another job starts it, and it is restarted, checked or advertised.
    fn works_after_stop(&self) -> bool {
        let is_stop =
            |event: &EventPattern| event.code.is_stop_event() && matches!(event.source, Source::Job(_));
        (self.is_server() || self.restarts != Restarts::Limited(0))
            && self.when.patterns().iter().any(is_stop)
    }

    /// Returns true if it is not expected to end by itself.
    fn is_server(&self) -> bool {
        self.restarts == Restarts::Unlimited || self.health.is_some() || self.service.is_some()
    }

    /// Returns true if a stop event starts it, and it still runs during a shutdown (S3). A server does not, unless it
    /// waits for the shutdown itself (S13).
    #[must_use]
    pub fn is_stop_hook(&self) -> bool {
        let mut patterns = self.when.patterns().iter();
        self.when.has_stop_event()
            && (!self.is_server() || patterns.any(|event| event.code == Code::Shutdown))
    }

    /// How long a stop event lets it run (S15); nothing if it is no stop hook.
    #[must_use]
    pub fn hook_time(&self) -> Option<Duration> {
        let has_program = self.is_stop_hook() && self.exec.program().is_some();
        has_program.then(|| self.timeout.unwrap_or(HOOK_TIMEOUT))
    }
}

impl Plan {
    /// Returns true if something depends on the system clock, or on how long the machine was asleep: a schedule (W15),
    /// or a lock (D14).
    #[must_use]
    pub fn needs_clock(&self) -> bool {
        self.has_cron() || !self.locks.is_empty()
    }

    /// Returns true if a job runs at times of the system clock (W15).
    #[must_use]
    pub fn has_cron(&self) -> bool {
        self.jobs.iter().any(|job| job.when.cron().is_some())
    }

    /// How many processes there may be at a time: that of each job and its drain program, its checks, and the tests of
    /// files.
    #[cfg(feature = "fingerprint")]
    pub(crate) fn most_processes(&self) -> usize {
        let checks = self.jobs.iter().filter_map(|job| job.health.as_ref()).map(|health| health.checks.len());
        2 * self.jobs.len() + checks.sum::<usize>() + self.files.len()
    }

    /// For each job, whether it keeps the supervisor running until it is complete. If no job does work, every job does.
    pub(crate) fn jobs_that_hold_open(&self) -> Vec<bool> {
        let work: Vec<bool> = self.jobs.iter().map(Job::does_work).collect();
        if work.contains(&true) { work } else { vec![true; self.jobs.len()] }
    }

    /// A job that keeps the supervisor running and never completes by itself; `None` if another job can end the
    /// container.
    #[must_use]
    pub fn endless_job(&self) -> Option<&Job> {
        let can_end = |job: &Job| {
            [job.on_failure, job.on_success].contains(&OnCompletion::Shutdown)
                || job.start_limit.is_some_and(|limit| limit.then == OnStartLimit::Shutdown)
                || matches!(job.exec.action(), Some(Action::Shutdown(_) | Action::Stop(_)))
        };
        let is_endless = |job: &Job| {
            job.restarts == Restarts::Unlimited
                && job.restart_on == RestartOn::Exit
                && (job.when.starts_at_startup() || job.when.ticks_from_startup())
        };
        let jobs = self.jobs.iter().zip(self.jobs_that_hold_open());
        let endless =
            jobs.filter(|(_, holds_open)| *holds_open).map(|(job, _)| job).find(|job| is_endless(job));
        endless.filter(|_| !self.jobs.iter().any(can_end))
    }

    /// A job that runs once, at startup, and then ends the container with success.
    #[must_use]
    pub fn job_that_ends_the_container(&self) -> Option<&Job> {
        self.jobs.iter().find(|job| {
            let runs_once = job.when.repeat() == Repeat::Once && job.restarts == Restarts::Limited(0);
            runs_once
                && !job.is_server()
                && job.when.starts_at_startup()
                && job.on_success == OnCompletion::Shutdown
        })
    }
}
