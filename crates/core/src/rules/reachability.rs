//! Reachability: whether the events that a job waits for can still come (W10).
//!
//! There are two questions. For one job: can any source still send the event? This is checked when a source becomes
//! complete. For all jobs: which jobs wait only for each other? This is checked when the event queue is empty and a job
//! has started to wait or become complete. It starts with the jobs that are not waiting, adds the jobs that those could
//! start, and so on; the rest are unreachable.

use alloc::format;
use alloc::vec::Vec;

use crate::event::Code;
use crate::ids::{JobIx, WatchIx};
use crate::plan::{Job, Level, Trigger};
use crate::state::dependency_graph::SourceKey;
use crate::state::job::{JobState, State, StopReason};
use crate::state::supervisor::{Core, Phase};

impl Core {
    /// Returns true if the event of a job's nth pattern can still come.
    pub(crate) fn pattern_can_come(&self, job: JobIx, nth: usize) -> bool {
        let key = self.plan_state.graph.keys(job).get(nth);
        let event = self.planned(job).when.patterns().get(nth);
        key.zip(event).is_some_and(|(key, event)| self.can_come(*key, event.code, &|_| true))
    }

    /// Returns true if an event can still come, assuming that only jobs for which `can_start` returns true can start.
    fn can_come(&self, key: SourceKey, code: Code, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let running = self.is_before_shutdown();
        if !running && !code.is_stop_event() {
            return false;
        }
        match key {
            SourceKey::Unknown => false,
            SourceKey::Global if code == Code::Startup => self.phase == Phase::Starting,
            SourceKey::Global => code.is_global() && running,
            SourceKey::Signal(_) => running,
            SourceKey::Watch(watch) => running && self.watch_can_change(watch, can_start),
            SourceKey::Name(id) => self.plan_state.graph.jobs_named(id).iter().any(|job| {
                let needs_no_start = code.is_stop_event() || code == Code::TimerExpired;
                (needs_no_start || can_start(*job)) && may_send(self.planned(*job), self.job(*job), code)
            }),
        }
    }

    /// D2: only jobs of this plan change the embedded catalog. An instance that it has reported will also be reported as
    /// gone.
    fn watch_can_change(&self, watch: WatchIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let Some(advertisers) = &self.plan_state.graph.advertisers else { return true };
        if self.plan_state.watches.get(watch.index()).is_some_and(|state| state.is_healthy()) {
            return true;
        }
        let mut jobs = advertisers.get(watch.index()).into_iter().flatten();
        jobs.any(|job| self.may_start_again(*job) || (!self.job(*job).is_complete() && can_start(*job)))
    }

    /// Returns true if a job that stops or is complete may still start again, because a user has stopped it or a reload
    /// replaces it.
    pub(crate) fn may_start_again(&self, job: JobIx) -> bool {
        self.phase == Phase::Running && self.job(job).may_start_again()
    }

    /// Returns true if a job waits and can never be started (again).
    pub(crate) fn is_unreachable(&self, job: JobIx) -> bool {
        self.only_waits(job) && !self.can_be_started(job, &|_| true)
    }

    /// Returns true if a job does nothing until its trigger comes. A job with a pending start timeout does not count: it
    /// sends `timerExpired` by itself (W5).
    fn only_waits(&self, job: JobIx) -> bool {
        let state = self.job(job);
        state.state() == State::Waiting
            && state.is_up()
            && state.pending_event.is_none()
            && state.start_timeout.is_none()
            && self.phase != Phase::Starting
            && !self.planned(job).when.is_periodic()
    }

    /// Returns true if the trigger of a waiting job can still come.
    fn can_be_started(&self, job: JobIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let (planned, state) = (self.planned(job), self.job(job));
        let mut events = planned.when.patterns().iter().zip(self.plan_state.graph.keys(job));
        match &planned.when.trigger {
            Trigger::Never => false,
            Trigger::Interval(_) => true,
            _ if self.was_triggered_once(job) => false,
            Trigger::Event { .. } | Trigger::Any { .. } => {
                events.any(|(event, key)| self.can_come(*key, event.code, can_start))
            }
            Trigger::All { .. } => {
                if state.conditions.iter().all(|holds| *holds) {
                    // They can hold again only if one of them can stop holding.
                    return events.any(|(event, key)| {
                        event.code == Code::Healthy && self.can_come(*key, Code::Healthy, can_start)
                    });
                }
                let mut missing = events.zip(&state.conditions).filter(|(_, holds)| !**holds);
                missing.all(|((event, key), _)| self.can_come(*key, event.code, can_start))
            }
        }
    }

    /// Completes a job that can never be started (again). Warns if it has never been triggered.
    pub(crate) fn complete_unreachable(&mut self, job: JobIx) {
        let never_triggered = self.job(job).triggered_at.is_none() && self.phase == Phase::Running;
        if never_triggered {
            let patterns = self.planned(job).when.patterns().iter();
            let events: Vec<_> = patterns.map(|event| format!("`{} {}`", event.source, event.code)).collect();
            let why = if events.is_empty() {
                "no event can start it".into()
            } else {
                format!("{} can no longer happen", events.join(", "))
            };
            self.log(Level::Warn, Some(job), format_args!("will never run: {why}"));
        }
        let reason = match (never_triggered, self.phase, self.job(job).failure) {
            (true, ..) => StopReason::Unreachable,
            (_, Phase::Running, None) => StopReason::Completed,
            (_, Phase::Running, Some(_)) => StopReason::Failed,
            _ => StopReason::Shutdown,
        };
        self.begin_stop(job, reason);
    }

    /// Completes the jobs that wait only for each other. Returns true if there were any.
    pub(crate) fn complete_unreachable_cycles(&mut self) -> bool {
        let unreachable = self.unreachable_jobs();
        for job in &unreachable {
            self.complete_unreachable(*job);
        }
        !unreachable.is_empty()
    }

    /// The jobs that wait only for each other, or for jobs that only those could start.
    fn unreachable_jobs(&self) -> Vec<JobIx> {
        let mut reachable: Vec<bool> = self.all_jobs().map(|job| !self.only_waits(job)).collect();
        let is_reachable = |reachable: &[bool], job: JobIx| reachable.get(job.index()) == Some(&true);
        let mut open: Vec<JobIx> = self.all_jobs().filter(|job| !is_reachable(&reachable, *job)).collect();
        while let Some(job) = open.pop() {
            let can_start = |other: JobIx| is_reachable(&reachable, other);
            if can_start(job) || !self.can_be_started(job, &can_start) {
                continue;
            }
            open.extend(self.startable_by(job).filter(|other| !can_start(*other)));
            if let Some(reachable) = reachable.get_mut(job.index()) {
                *reachable = true;
            }
        }
        self.all_jobs().filter(|job| !is_reachable(&reachable, *job)).collect()
    }

    /// The jobs that wait for an event of this one, or for a watch that sees its service.
    fn startable_by(&self, job: JobIx) -> impl Iterator<Item = JobIx> + '_ {
        let graph = &self.plan_state.graph;
        let advertised = graph.advertisers.iter().flatten().zip(&graph.watchers);
        let by_service =
            advertised.filter(move |(jobs, _)| jobs.contains(&job)).flat_map(|(_, watchers)| watchers);
        graph.dependents(job).iter().chain(by_service).copied()
    }
}

/// Returns true if a job may still send an event.
fn may_send(job: &Job, state: &JobState, code: Code) -> bool {
    if state.may_start_again() {
        return true;
    }
    if state.is_complete() {
        return false;
    }
    let may_run = state.has_process() || state.state() == State::Running || state.is_up();
    match code {
        Code::ExitSuccess | Code::ExitFailed => job.exec.is_some() && may_run,
        Code::Healthy | Code::Unhealthy => job.health.is_some() && may_run,
        Code::Stopping => state.is_up(),
        Code::Stopped => true,
        Code::TimerExpired => state.start_timeout.is_some(),
        _ => false,
    }
}
