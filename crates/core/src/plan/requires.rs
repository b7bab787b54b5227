//! What a job requires (W18), and the order of stops (S10).

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Job, Plan, Repeat, Restarts};
use crate::event::Source;

/// Something that must be there before a job starts (W18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// What must be there.
    pub source: RequiredSource,
    /// True if the job is stopped when the source is no longer there, and started again when it is back.
    pub bind: bool,
}

/// What a job can require.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequiredSource {
    /// A job, by its name.
    Job(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// A watch, by its name.
    Watch(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// A rendered file, by its name.
    File(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// A lock, by its name. Always bound (D14).
    Lock(#[serde(serialize_with = "crate::recorded::as_is")] String),
}

impl From<&RequiredSource> for Source {
    fn from(required: &RequiredSource) -> Self {
        match required {
            RequiredSource::Job(name) => Self::Job(name.clone()),
            RequiredSource::Watch(name) => Self::Watch(name.clone()),
            RequiredSource::File(name) => Self::File(name.clone()),
            RequiredSource::Lock(name) => Self::Lock(name.clone()),
        }
    }
}

impl fmt::Display for RequiredSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(name) => out.write_str(name),
            Self::Watch(name) => write!(out, "watch.{name}"),
            Self::File(name) => write!(out, "file.{name}"),
            Self::Lock(name) => write!(out, "lock.{name}"),
        }
    }
}

/// When a job counts as there for the jobs that require it (W18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyCondition {
    /// It has checks: while it is healthy.
    Healthy,
    /// It runs once: when it has succeeded.
    Succeeded,
    /// Any other job: while it runs.
    Running,
}

impl Job {
    /// When the job counts as there.
    #[must_use]
    pub fn dependency_condition(&self) -> DependencyCondition {
        let runs_once = self.when.repeat() == Repeat::Once && !self.when.is_periodic();
        if self.health.is_some() {
            DependencyCondition::Healthy
        } else if runs_once && self.restarts != Restarts::Unlimited {
            DependencyCondition::Succeeded
        } else {
            DependencyCondition::Running
        }
    }

    /// Returns true if it is stopped when one of its sources is gone.
    pub(crate) fn is_bound(&self) -> bool {
        self.requires.iter().any(|requirement| requirement.bind)
    }

    /// Returns true if it stops before or after certain other jobs (S10).
    #[must_use]
    pub fn has_stop_order(&self) -> bool {
        let is_job = |source: &RequiredSource| matches!(source, RequiredSource::Job(_));
        !self.stop_after.is_empty() || self.requires.iter().any(|requirement| is_job(&requirement.source))
    }
}

impl Plan {
    /// Returns true if something runs or is stopped only after other jobs: hooks (S3), coprocesses (C6), and jobs that
    /// others require (S10).
    pub(crate) fn stops_in_order(&self) -> bool {
        let is_ordered =
            |job: &Job| job.is_stop_hook() || job.role == super::Role::Coprocess || job.has_stop_order();
        self.jobs.iter().any(is_ordered)
    }
}
