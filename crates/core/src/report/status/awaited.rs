//! What a job waits for: its events, and what it requires.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::answer::Answer;
use crate::event::Code;
use crate::ids::JobIx;
use crate::plan::Requirement;
use crate::state::dependency_graph::SourceKey;
use crate::state::journal::Origin;
use crate::supervisor::Core;

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
    /// True if it has come before.
    pub seen: bool,
    /// The jobs with the name of the source.
    pub jobs: Vec<JobIx>,
    /// What its source is doing, in a few words.
    pub state: String,
}

/// Something that a job requires (W18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequirementOverview {
    /// What it requires, as in a configuration.
    pub source: String,
    /// True if the job is stopped when the requirement ends.
    pub bind: bool,
    /// True if the requirement holds.
    pub holds: bool,
    /// True if it holds, or can still hold.
    pub possible: bool,
    /// The jobs with that name.
    pub jobs: Vec<JobIx>,
    /// What it is doing, as a clause after "which".
    pub state: String,
}

impl Core {
    /// Everything that a job requires.
    pub(super) fn requirements_overview(&self, job: JobIx) -> Vec<RequirementOverview> {
        let overview = |(requirement, key): (&Requirement, SourceKey)| {
            let holds = self.is_there(key);
            RequirementOverview {
                source: requirement.source.to_string(),
                bind: requirement.bind,
                holds,
                possible: holds || self.can_get_there(key, &|_| true),
                jobs: match key {
                    SourceKey::Name(id) => self.plan_state.graph.jobs_named(id).to_vec(),
                    _ => Vec::new(),
                },
                state: self.source_words(key),
            }
        };
        self.requirements(job).map(overview).collect()
    }

    /// The events that can start a job.
    #[must_use]
    pub fn awaited(&self, job: JobIx) -> Vec<Awaited> {
        let planned = self.planned(job);
        if self.has_ticks(job) {
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
                    seen: self.has_come(job, nth, event.code),
                    state: match self.are_replicas_of(&jobs, &event.source.to_string()) {
                        true => self.replica_states(&jobs, event.code),
                        false => self.source_state(job, nth, &jobs),
                    },
                    jobs,
                }
            })
            .collect()
    }

    /// Returns true if the event of a job's nth pattern has come before.
    fn has_come(&self, job: JobIx, nth: usize, code: Code) -> bool {
        let graph = &self.plan_state.graph;
        if self.waits_for_all_replicas(job, nth, code) {
            let has_come = |job: &JobIx| self.event_counts.contains_key(&(Origin::Job(*job), code));
            return graph.jobs_of_pattern(job, nth).iter().all(has_come);
        }
        let jobs = graph.jobs_of_pattern(job, nth).iter().map(|job| Origin::Job(*job));
        let mut origins = jobs.chain(graph.origin_of_pattern(job, nth));
        origins.any(|origin| self.event_counts.contains_key(&(origin, code)))
    }

    fn source_state(&self, job: JobIx, condition: usize, jobs: &[JobIx]) -> String {
        if let Some(first) = jobs.first() {
            return self.status(*first).word().into();
        }
        let parts = &self.plan_state.parts;
        match self.plan_state.graph.origin_of_pattern(job, condition) {
            Some(Origin::Watch(watch)) => match parts.watches.answer(watch) {
                None => "no answer yet".into(),
                Some(Answer::Instances(instances)) if !instances.is_empty() => {
                    format!("{} healthy", instances.len())
                }
                Some(answer) => answer.words(),
            },
            Some(Origin::Lock(lock)) if parts.locks.is_held(lock) => "held".into(),
            Some(Origin::Lock(_)) => "not held".into(),
            Some(Origin::File(file)) => parts.files.clause(file, self.file_view()),
            Some(_) => String::new(),
            None => "unknown".into(),
        }
    }
}
