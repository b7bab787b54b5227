//! Reachability: whether the events that a job waits for can still come (W10).
//!
//! There are two questions. For one job: can any source still send the event? This is checked when a source becomes
//! complete. For all jobs: which jobs wait only for each other? This is checked when the event queue is empty and a job
//! has started to wait or become complete. It starts with the jobs that are not waiting, adds the jobs that those could
//! start, and so on; the rest are unreachable.
//!
//! A job that waits for the stop of another one is reachable: a shutdown or a command may stop that one. If nothing
//! else can start it, and the same holds for every job that keeps the supervisor running, nothing happens any more by
//! itself. This is reported.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::event::{Code, Source};
use crate::ids::{FileIx, JobIx, WatchIx};
use crate::inserted;
use crate::log_entry::few;
use crate::plan::{Action, EventPattern, FirstTick, Job, Trigger};
use crate::state::dependency_graph::SourceKey;
use crate::state::job::{JobState, State, StopStage};
use crate::state::phase::Phase;
use crate::supervisor::Core;
use crate::supervisor::plan_state::PlanState;

/// What can stop a job that has not started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stops {
    /// A shutdown or a command.
    FromOutside,
    /// Nothing.
    AfterStart,
}

impl Core {
    /// Returns true if the event of a job's nth pattern can still come.
    pub(crate) fn pattern_can_come(&self, job: JobIx, nth: usize) -> bool {
        let key = self.plan_state.graph.keys(job).get(nth);
        let event = self.planned(job).when.patterns().get(nth);
        key.zip(event)
            .is_some_and(|(key, event)| self.can_come(*key, event.code, &|_| true, Stops::FromOutside))
    }

    /// Returns true if an event can still come, assuming that only jobs for which `can_start` returns true can start.
    fn can_come(&self, key: SourceKey, code: Code, can_start: &dyn Fn(JobIx) -> bool, stops: Stops) -> bool {
        let running = self.is_before_shutdown();
        if !running && !code.is_stop_event() {
            return false;
        }
        match key {
            SourceKey::Unknown => false,
            SourceKey::Global if code == Code::Startup => self.phase == Phase::Starting,
            SourceKey::Global => code.is_global() && running,
            SourceKey::Signal(_) => running,
            SourceKey::Lock(_) => running && self.plan().has_shared_locks(),
            SourceKey::Watch(watch) => running && self.watch_can_change(watch, can_start),
            SourceKey::File(file) => running && self.file_can_change(file, can_start),
            SourceKey::Name(id) => {
                let jobs = self.plan_state.graph.jobs_named(id);
                let may_send = |job: &JobIx| {
                    let needs_no_start =
                        code == Code::TimerExpired || (code.is_stop_event() && stops == Stops::FromOutside);
                    let sends = may_send(self.planned(*job), self.job(*job), code);
                    (needs_no_start || can_start(*job)) && sends
                        || self.sends_after_action(*job, code, can_start)
                };
                jobs.iter().any(may_send)
                    && (!self.needs_all_replicas(id, code)
                        || jobs.iter().all(|job| may_send(job) || self.event_holds(*job, code, true)))
            }
        }
    }

    /// W19: returns true if the action of another job may start this one again, which then may send the event.
    fn sends_after_action(&self, job: JobIx, code: Code, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        can_send(self.planned(job), code) && self.action_may_start(job, can_start)
    }

    /// W19: returns true if the action of another job may start this one again.
    pub(crate) fn action_may_start(&self, job: JobIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let mut starters = self.plan_state.graph.starters(job).iter();
        self.phase == Phase::Running
            && starters.any(|starter| can_start(*starter) && !self.job(*starter).has_ended())
    }

    /// D2: only jobs of this plan change the embedded catalog.
    pub(crate) fn watch_can_change(&self, watch: WatchIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let advertisers = self.plan_state.graph.advertisers.get(watch.index());
        let Some(advertisers) = advertisers.and_then(Option::as_ref) else { return true };
        if self.plan_state.parts.watches.will_change(watch) {
            return true;
        }
        advertisers.iter().any(|job| {
            self.may_start_again(*job)
                || (!self.job(*job).has_ended() && can_start(*job))
                || self.action_may_start(*job, can_start)
        })
    }

    /// D15: returns true if a file may be rendered (again).
    pub(crate) fn file_can_change(&self, file: FileIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let mut watches = self.plan_state.graph.watches_of_file(file).iter();
        self.phase == Phase::Starting
            || self.plan_state.parts.files.is_in_progress(file)
            || watches.any(|watch| self.watch_can_change(*watch, can_start))
    }

    /// Returns true if a job that stops or is complete may still start again, because a user has stopped it or a reload
    /// replaces it.
    pub(crate) fn may_start_again(&self, job: JobIx) -> bool {
        self.phase == Phase::Running && self.job(job).may_start_again()
    }

    /// Returns true if a job waits and can never be started (again).
    pub(crate) fn is_unreachable(&self, job: JobIx) -> bool {
        self.only_waits(job) && !self.can_be_started(job, &|_| true, Stops::FromOutside)
    }

    /// Returns true if a job does nothing before its trigger. A job with a pending start timeout does not count:
    /// it sends `timerExpired` by itself (W5).
    fn only_waits(&self, job: JobIx) -> bool {
        let state = self.job(job);
        state.waits()
            && state.start_timeout.is_none()
            && self.phase != Phase::Starting
            && ((state.pending.is_empty() && !self.has_ticks(job)) || !self.requirements_hold(job))
    }

    /// Returns true if a job is periodic, and its ticks are counted.
    pub(crate) fn has_ticks(&self, job: JobIx) -> bool {
        let when = &self.planned(job).when;
        when.ticks_from_startup() || (when.is_periodic() && self.job(job).triggered_at.is_some())
    }

    /// Returns true if the trigger of a waiting job can still come.
    fn can_be_started(&self, job: JobIx, can_start: &dyn Fn(JobIx) -> bool, stops: Stops) -> bool {
        if !self.requirements_can_hold(job, can_start) {
            return false;
        }
        // Its trigger has come, or its ticks are counted.
        if self.is_deferred(job) || self.has_ticks(job) {
            return true;
        }
        let (planned, state) = (self.planned(job), self.job(job));
        let mut events = planned.when.patterns().iter().zip(self.plan_state.graph.keys(job));
        match &planned.when.trigger {
            Trigger::Never => false,
            Trigger::Interval { first: FirstTick::AtStartup, .. } | Trigger::Cron { after: None, .. } => true,
            // A user can always start it, before a shutdown (W17).
            Trigger::Manual => self.is_before_shutdown(),
            _ if self.was_triggered_once(job) => false,
            Trigger::Event { .. } | Trigger::Any { .. } | Trigger::Interval { .. } | Trigger::Cron { .. } => {
                events.any(|(event, key)| self.can_come(*key, event.code, can_start, stops))
            }
            Trigger::All { .. } => {
                if state.conditions.iter().all(|holds| *holds) {
                    // They can hold again only if one of them can stop holding.
                    return events.any(|(event, key)| {
                        event.code.ended_by().is_some() && self.can_come(*key, event.code, can_start, stops)
                    });
                }
                let mut missing = events.zip(&state.conditions).filter(|(_, holds)| !**holds);
                missing.all(|((event, key), _)| self.can_come(*key, event.code, can_start, stops))
            }
        }
    }

    /// Why a job can never be started: the unmet conditions that can no longer be met; those of a cycle of jobs that
    /// wait only for each other could be, one by one.
    pub(crate) fn why_unreachable(&self, job: JobIx) -> String {
        if let Some(why) = self.why_never_required(job) {
            return why;
        }
        let holds = &self.job(job).conditions;
        let patterns = self.planned(job).when.patterns().iter().enumerate();
        let unmet: Vec<_> = patterns.filter(|(nth, _)| holds.get(*nth) != Some(&true)).collect();
        let lost: Vec<_> =
            unmet.iter().filter(|(nth, _)| !self.pattern_can_come(job, *nth)).copied().collect();
        let events = if lost.is_empty() { unmet } else { lost };
        let keys = self.plan_state.graph.keys(job);
        let (unknown, known): (Vec<_>, Vec<_>) =
            events.iter().partition(|(nth, _)| keys.get(*nth) == Some(&SourceKey::Unknown));
        let mut reasons: Vec<String> = unknown.iter().map(|(_, event)| unknown_source(event)).collect();
        let known: Vec<_> =
            known.iter().map(|(_, event)| format!("`{} {}`", event.source, event.code)).collect();
        if !known.is_empty() {
            reasons.push(format!("{} can no longer happen", known.join(", ")));
        }
        if reasons.is_empty() { "no event can start it".into() } else { reasons.join("; ") }
    }

    /// W10: why nothing can happen any more without a shutdown or a command: every job that keeps the supervisor
    /// running waits, and only for the stop of others that wait. `None` if something can happen.
    #[must_use]
    pub fn deadlock(&self) -> Option<String> {
        let PlanState { graph, waiting, holding_open, secondary, .. } = &self.plan_state;
        // Most of the time a job that keeps the supervisor running does something.
        if waiting.len() + *secondary < *holding_open {
            return None;
        }
        let holds_open = |job: &JobIx| {
            let is_open = !self.job(*job).has_ended() || self.job(*job).may_start_again();
            graph.holds_open(*job) && is_open && !self.planned(*job).role.is_secondary()
        };
        let open: Vec<JobIx> = self.all_jobs().filter(holds_open).collect();
        let is_idle = self.phase == Phase::Running && self.reload.is_none();
        if !is_idle || open.is_empty() || !open.iter().all(|job| self.only_waits(*job)) {
            return None;
        }
        let unreachable = self.unreachable_jobs(Stops::AfterStart);
        if !open.iter().all(|job| unreachable.binary_search(job).is_ok()) {
            return None;
        }
        let waits = open.iter().map(|job| self.wait_in_words(*job)).collect();
        Some(format!("nothing can happen any more: {}", few(waits)))
    }

    /// `a waits for b stopped`
    fn wait_in_words(&self, job: JobIx) -> String {
        if self.is_deferred(job) {
            let required = self.planned(job).requires.iter().map(|one| one.source.to_string());
            let required: Vec<String> = required.collect();
            return format!("{} requires {}", self.planned(job).name, required.join(" and "));
        }
        let patterns = self.planned(job).when.patterns().iter();
        let events: Vec<String> = patterns.map(|event| format!("{} {}", event.source, event.code)).collect();
        let word = if self.planned(job).when.needs_all() { " and " } else { " or " };
        format!("{} waits for {}", self.planned(job).name, events.join(word))
    }

    /// The jobs that wait only for each other.
    pub(crate) fn jobs_that_wait_for_each_other(&self) -> Vec<JobIx> {
        self.unreachable_jobs(Stops::FromOutside)
    }

    /// The jobs that wait only for each other, or for jobs that only those could start.
    fn unreachable_jobs(&self, stops: Stops) -> Vec<JobIx> {
        let waiting = self.plan_state.waiting.iter().copied();
        let mut unreachable: BTreeSet<JobIx> = inserted(waiting.filter(|job| self.only_waits(*job)));
        let mut open: Vec<JobIx> = unreachable.iter().copied().collect();
        while let Some(job) = open.pop() {
            let can_start = |other: JobIx| !unreachable.contains(&other);
            if can_start(job) || !self.can_be_started(job, &can_start, stops) {
                continue;
            }
            open.extend(self.startable_by(job).filter(|other| !can_start(*other)));
            unreachable.remove(&job);
        }
        unreachable.into_iter().collect()
    }

    /// The jobs that wait for an event of this one, or for a watch of its service.
    fn startable_by(&self, job: JobIx) -> impl Iterator<Item = JobIx> + '_ {
        let graph = &self.plan_state.graph;
        let starts = self.planned(job).exec.action().is_some_and(Action::starts);
        let started = if starts { graph.targets(job) } else { &[] };
        let is_one = move |seen: &JobIx| *seen == job || started.contains(seen);
        let sees = move |jobs: &Option<Vec<JobIx>>| jobs.iter().flatten().any(is_one);
        let advertised = graph.advertisers.iter().zip(&graph.watchers);
        let by_service = advertised.filter(move |(jobs, _)| sees(jobs)).flat_map(|(_, watchers)| watchers);
        let required = graph.advertisers.iter().zip(graph.watch_requirers());
        let by_required = required.filter(move |(jobs, _)| sees(jobs)).flat_map(|(_, requirers)| requirers);
        let files = graph.advertisers.iter().zip(graph.watch_files()).filter(move |(jobs, _)| sees(jobs));
        let by_file = files.flat_map(|(_, files)| files).flat_map(|file| graph.jobs_of_file(*file));
        let waits_for = |job: JobIx| graph.dependents(job).chain(graph.requirers(job));
        let by_action = started.iter().flat_map(move |target| waits_for(*target));
        waits_for(job).chain(by_service.chain(by_required).chain(by_file).copied()).chain(by_action)
    }
}

/// Why an event cannot happen if its source does not exist.
fn unknown_source(EventPattern { source, code }: &EventPattern) -> String {
    match source {
        Source::Watch(name) => format!("`{source} {code}` cannot happen: there is no watch `{name}`"),
        Source::File(name) => format!("`{source} {code}` cannot happen: there is no file `{name}`"),
        Source::Lock(name) => format!("`{source} {code}` cannot happen: there is no lock `{name}`"),
        _ => format!("`{source} {code}` cannot happen: there is no job `{source}`"),
    }
}

/// Returns true if a job may still send an event.
fn may_send(job: &Job, state: &JobState, code: Code) -> bool {
    if state.may_start_again() {
        return true;
    }
    if state.has_ended() {
        return false;
    }
    let may_run = state.has_process() || state.state() == State::Running || state.is_up();
    match code {
        Code::CrashLoop => job.start_limit.is_some() && job.exec.is_some() && state.is_up(),
        Code::Stopping => state.stop_stage() <= Some(StopStage::Requirers),
        Code::Stopped => true,
        Code::TimerExpired => state.start_timeout.is_some(),
        _ => may_run && can_send(job, code),
    }
}

/// Returns true if a job that is started may send an event.
fn can_send(job: &Job, code: Code) -> bool {
    match code {
        Code::ExitSuccess | Code::ExitFailed => job.exec.is_some(),
        Code::Healthy | Code::Unhealthy | Code::BecameHealthy | Code::BecameUnhealthy => job.health.is_some(),
        Code::Ready => job.ready.is_some(),
        Code::CrashLoop => job.start_limit.is_some() && job.exec.is_some(),
        Code::Stopping | Code::Stopped => true,
        _ => false,
    }
}
