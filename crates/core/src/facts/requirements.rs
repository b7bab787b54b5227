//! What a job requires (W18): whether it holds, can hold later, or is gone, and how that is said. What follows from it
//! is in `rules/defer.rs`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::answer::Answer;
use crate::ids::JobIx;
use crate::outcome::Outcome;
use crate::plan::{DependencyCondition, Requirement};
use crate::state::dependency_graph::{NameId, SourceKey};
use crate::state::job::{State, StopReason, StopStage};
use crate::state::phase::Phase;
use crate::supervisor::Core;

impl Core {
    /// The requirements of a job and the keys of their sources.
    pub(crate) fn requirements(&self, job: JobIx) -> impl Iterator<Item = (&Requirement, SourceKey)> {
        self.planned(job).requires.iter().zip(self.plan_state.graph.required(job).iter().copied())
    }

    /// Returns true if all requirements of a job hold.
    pub(crate) fn requirements_hold(&self, job: JobIx) -> bool {
        self.missing(job).next().is_none()
    }

    /// The requirements of a job that do not hold.
    fn missing(&self, job: JobIx) -> impl Iterator<Item = (&Requirement, SourceKey)> {
        self.requirements(job).filter(|(_, key)| !self.is_there(*key))
    }

    /// Returns true if a start by the job itself has come and waits for a requirement.
    pub(crate) fn is_deferred(&self, job: JobIx) -> bool {
        self.job(job).is_deferred() && !self.planned(job).requires.is_empty()
    }

    pub(crate) fn is_there(&self, key: SourceKey) -> bool {
        match key {
            SourceKey::Name(id) => self.holds_for_name(id, |job| self.job_is_there(job)),
            SourceKey::Watch(watch) => self.plan_state.parts.watches.is_healthy(watch),
            SourceKey::File(file) => self.plan_state.parts.files.is_rendered(file),
            SourceKey::Lock(lock) => self.plan_state.parts.locks.is_held(lock),
            SourceKey::Global | SourceKey::Signal(_) | SourceKey::Unknown => false,
        }
    }

    /// Returns true if what is required of a name holds: for all replicas of a group (W20), or for any of several jobs
    /// with one name.
    fn holds_for_name(&self, name: NameId, holds: impl Fn(JobIx) -> bool) -> bool {
        let graph = &self.plan_state.graph;
        let mut jobs = graph.jobs_named(name).iter();
        if graph.is_group(name) { jobs.all(|job| holds(*job)) } else { jobs.any(|job| holds(*job)) }
    }

    pub(crate) fn job_is_there(&self, job: JobIx) -> bool {
        let state = self.job(job);
        // S10: in a shutdown, a job stays until the jobs that require it have ended.
        let stays = state.is_stopping_in(StopStage::Requirers) && self.phase == Phase::Stopping;
        let serves = state.is_up() || stays;
        match self.planned(job).dependency_condition() {
            DependencyCondition::Healthy => serves && self.is_healthy(job) == Some(true),
            DependencyCondition::Succeeded => state.state() == State::Ended(Outcome::Complete),
            DependencyCondition::Running => serves && state.state() == State::Running,
        }
    }

    /// The first bound requirement of a job whose source is gone. Unknown health, as in maintenance mode, is not.
    pub(crate) fn gone_binding(&self, job: JobIx) -> Option<&Requirement> {
        let mut bound = self.requirements(job).filter(|(requirement, _)| requirement.bind);
        bound.find(|(_, key)| self.is_gone(*key)).map(|(requirement, _)| requirement)
    }

    fn is_gone(&self, key: SourceKey) -> bool {
        match key {
            SourceKey::Name(id) => !self.holds_for_name(id, |job| !self.job_is_gone(job)),
            // A watch that a reload has changed has not answered yet.
            SourceKey::Watch(watch) => self.plan_state.parts.watches.is_unhealthy(watch),
            // D15: a file that cannot be rendered again keeps its old text.
            SourceKey::File(_) => false,
            SourceKey::Lock(_) => !self.is_there(key),
            SourceKey::Global | SourceKey::Signal(_) | SourceKey::Unknown => true,
        }
    }

    fn job_is_gone(&self, job: JobIx) -> bool {
        let state = self.job(job);
        let runs = state.is_up() && state.state() == State::Running;
        match self.planned(job).dependency_condition() {
            DependencyCondition::Healthy => !runs || self.is_healthy(job) == Some(false),
            // A job that has succeeded stays there while it runs again.
            DependencyCondition::Succeeded => {
                state.state().has_ended() && state.state() != State::Ended(Outcome::Complete)
            }
            DependencyCondition::Running => !runs,
        }
    }

    /// Returns true if the requirements of a job hold, or can hold later, assuming that only jobs for which `can_start`
    /// returns true can start.
    pub(crate) fn requirements_can_hold(&self, job: JobIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        self.missing(job).all(|(_, key)| self.can_get_there(key, can_start))
    }

    pub(crate) fn can_get_there(&self, key: SourceKey, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        self.is_before_shutdown()
            && match key {
                SourceKey::Name(id) => self.holds_for_name(id, |job| {
                    self.job_is_there(job) || self.job_can_get_there(job, can_start)
                }),
                SourceKey::Watch(watch) => self.watch_can_change(watch, can_start),
                SourceKey::File(file) => self.file_can_change(file, can_start),
                SourceKey::Lock(_) => self.plan().has_shared_locks() || self.is_there(key),
                SourceKey::Global | SourceKey::Signal(_) | SourceKey::Unknown => false,
            }
    }

    fn job_can_get_there(&self, job: JobIx, can_start: &dyn Fn(JobIx) -> bool) -> bool {
        let state = self.job(job);
        let completes = self.planned(job).dependency_condition() == DependencyCondition::Succeeded
            && !state.has_ended()
            && state.stop_reason() == Some(StopReason::Completed);
        self.may_start_again(job)
            || completes
            || (state.is_up() && can_start(job))
            || self.action_may_start(job, can_start)
    }

    /// Why a job can never start because of its requirements; `None` if that is not the reason.
    pub(crate) fn why_never_required(&self, job: JobIx) -> Option<String> {
        let lost = self.missing(job).filter(|(_, key)| !self.can_get_there(*key, &|_| true));
        let lost: Vec<String> =
            lost.map(|(requirement, key)| self.requirement_words(requirement, key)).collect();
        if !lost.is_empty() {
            return Some(lost.join("; "));
        }
        // Jobs that require each other could each be there, if the others were.
        (self.is_deferred(job) && !self.requirements_hold(job)).then(|| self.missing_words(job))
    }

    /// What a job requires that is not there.
    pub(crate) fn missing_words(&self, job: JobIx) -> String {
        let missing: Vec<String> =
            self.missing(job).map(|(requirement, key)| self.requirement_words(requirement, key)).collect();
        missing.join("; ")
    }

    /// The bound requirements of a job that are not there.
    pub(crate) fn missing_bound_words(&self, job: JobIx) -> Option<String> {
        let bound = self.missing(job).filter(|(requirement, _)| requirement.bind);
        let words: Vec<String> =
            bound.map(|(requirement, key)| self.requirement_words(requirement, key)).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    pub(crate) fn key_of_requirement(&self, job: JobIx, requirement: &Requirement) -> SourceKey {
        let found = self.requirements(job).find(|(other, _)| *other == requirement);
        found.map_or(SourceKey::Unknown, |(_, key)| key)
    }

    /// `it requires db, which is running but not yet healthy`
    pub(crate) fn requirement_words(&self, requirement: &Requirement, key: SourceKey) -> String {
        format!("it requires {}, which {}", requirement.source, self.source_words(key))
    }

    /// What a required source is doing, as a clause after "which".
    pub(crate) fn source_words(&self, key: SourceKey) -> String {
        match key {
            SourceKey::Name(id) => match self.plan_state.graph.jobs_named(id) {
                [] => "does not exist".into(),
                replicas if self.plan_state.graph.is_group(id) => {
                    let (there, all) =
                        (replicas.iter().filter(|job| self.job_is_there(**job)).count(), replicas.len());
                    let missing = replicas.iter().find(|job| !self.job_is_there(**job));
                    let missing = missing.map(|job| {
                        format!(", {} {}", self.planned(*job).name, self.required_job_words(*job))
                    });
                    format!("has {there} of {all} replicas{}", missing.unwrap_or_default())
                }
                [job, ..] => self.required_job_words(*job),
            },
            SourceKey::File(file) => self.plan_state.parts.files.clause(file, self.file_view()),
            SourceKey::Watch(watch) => match self.plan_state.parts.watches.answer(watch) {
                None => "has no answer yet".into(),
                Some(answer @ Answer::Instances(_)) => format!("has {}", answer.words()),
                Some(answer) if answer.is_healthy() => "is healthy".into(),
                Some(answer) => format!("is unhealthy: {}", answer.words()),
            },
            SourceKey::Lock(lock) => self.plan_state.parts.locks.clause(lock),
            SourceKey::Global | SourceKey::Signal(_) | SourceKey::Unknown => "does not exist".into(),
        }
    }

    fn required_job_words(&self, job: JobIx) -> String {
        let (state, condition) = (self.job(job), self.planned(job).dependency_condition());
        let text = match (state.state(), condition) {
            (State::Ended(Outcome::Complete), DependencyCondition::Succeeded) => "has succeeded",
            (State::Ended(Outcome::Complete), _) => "has ended",
            (State::Ended(Outcome::Failed), _) => "has failed",
            (State::Ended(Outcome::Stopped), _) => "is stopped",
            (State::Ended(Outcome::Skipped(_)), _) => "was skipped",
            _ if !state.is_up() => "is stopping",
            (State::Waiting, _) => "is waiting to start",
            (State::Queued, _) => "is waiting for its turn to start",
            (State::Starting, _) => "is starting",
            (State::Outlived, _) => "has exited, but other processes of its run have not",
            (State::Delaying, _) => "is waiting to restart",
            (State::Running, DependencyCondition::Succeeded) => "is running and has not succeeded yet",
            (State::Running, DependencyCondition::Running) => "is running",
            (State::Running, DependencyCondition::Healthy) => match self.is_healthy(job) {
                Some(true) => "is healthy",
                Some(false) => "is running but unhealthy",
                None if self.maintenance => "is running, but its checks are suspended",
                None => "is running but not yet healthy",
            },
        };
        text.into()
    }
}
