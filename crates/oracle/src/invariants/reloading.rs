//! The reload in progress, and what it has changed in this step.

use containerpilot_core::Time;
use containerpilot_core::ids::CheckRunId;
use containerpilot_core::plan::diff::Changes;
use containerpilot_core::request::RequestId;

/// The reload in progress, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Reloading {
    /// The requests that wait for it.
    pub(super) requests: Vec<RequestId>,
    /// The version that was requested last.
    pub(super) version: usize,
    /// True if it replaces processes with old variables, too: it is not only another number of replicas.
    pub(super) renews_variables: bool,
    /// True if it was requested in this step, or before the startup.
    pub(super) requested: bool,
    /// When the jobs it waits for are killed.
    pub(super) due: Option<Time>,
    /// The jobs it has waited for long enough.
    pub(super) late: Vec<usize>,
    /// True if the plan is switched in this part of a step.
    pub(super) changing: bool,
    /// The new indices of jobs, if they have changed in this step.
    pub(super) moved: Option<Vec<Option<usize>>>,
    /// What it did, if it was done in this step.
    pub(super) done: Option<Changes>,
    /// R5: the old checks that are to be cancelled in this part of a step.
    pub(super) canceled: Vec<CheckRunId>,
    /// R5: the changed services that are to be registered again in this part of a step.
    pub(super) registered_again: Vec<Registration>,
    /// True if jobs must start with it that have not seen the startup yet.
    pub(super) starts_jobs: bool,
}

/// A service that a reload has changed.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) job: usize,
    /// True if its status was sent.
    pub(super) sent: bool,
    /// True if the same status was sent.
    pub(super) repeated: bool,
}
