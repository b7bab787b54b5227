//! The difference between two plans (R3). Both the dry run of a reload and the reload itself use it.
//!
//! Jobs are matched by name: of several jobs with one name, the first with the first, and so on.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Job, Plan, Role};
use crate::grouped;
use crate::ids::{FileIx, JobIx, LockIx, WatchIx};

/// What a reload does to jobs, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Unchanged jobs, which keep running.
    pub kept: Vec<String>,
    /// Changed jobs, which keep running with their new definition (R5).
    pub adjusted: Vec<String>,
    /// Changed jobs, which are stopped and started again.
    pub restarted: Vec<String>,
    /// Changed jobs that were stopped and wait for their new condition. Known only when the reload is done.
    pub waiting: Vec<String>,
    /// New jobs.
    pub started: Vec<String>,
    /// Removed jobs.
    pub stopped: Vec<String>,
}

/// Where the jobs, watches and files of the old plan are in the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// For each job of the old plan, its index in the new one.
    pub jobs: Vec<Option<JobIx>>,
    /// For each watch of the old plan, the index of the same watch in the new one.
    pub watches: Vec<Option<WatchIx>>,
    /// For each file of the old plan, the index of the same file in the new one.
    pub files: Vec<Option<FileIx>>,
    /// For each lock of the old plan, the index of the same lock in the new one.
    pub locks: Vec<Option<LockIx>>,
}

impl Moves {
    /// The new index of a job.
    #[must_use]
    pub fn job(&self, job: JobIx) -> Option<JobIx> {
        self.jobs.get(job.index()).copied().flatten()
    }

    /// The new index of a watch.
    #[must_use]
    pub fn watch(&self, watch: WatchIx) -> Option<WatchIx> {
        self.watches.get(watch.index()).copied().flatten()
    }

    /// The new index of a file.
    #[must_use]
    pub fn file(&self, file: FileIx) -> Option<FileIx> {
        self.files.get(file.index()).copied().flatten()
    }

    /// The new index of a lock.
    #[must_use]
    pub fn lock(&self, lock: LockIx) -> Option<LockIx> {
        self.locks.get(lock.index()).copied().flatten()
    }
}

/// How a job of the new plan relates to the old plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobChange {
    /// It is new.
    Started,
    /// It replaces this job of the old plan.
    Restarted(JobIx),
    /// It is this job of the old plan, unchanged.
    Kept(JobIx),
    /// It is this job of the old plan, and keeps its process with the new definition (R5).
    Adjusted(JobIx),
}

/// The difference between two plans.
#[derive(Debug)]
pub(crate) struct PlanDiff {
    /// Where everything of the old plan is in the new one.
    pub(crate) moves: Moves,
    /// For each job of the new plan, how it relates to the old one.
    pub(crate) jobs: Vec<JobChange>,
}

impl PlanDiff {
    /// Compares two plans. Jobs of the old plan for which `must_restart` returns true count as changed.
    pub(crate) fn new(old: &Plan, new: &Plan, must_restart: impl Fn(JobIx) -> bool) -> Self {
        // In reverse, so that `pop` takes the first of each name first.
        let places = new.jobs.iter().enumerate().rev();
        let mut places = grouped(places.map(|(index, job)| (job.name.as_str(), JobIx::at(index))));
        let moved: Vec<Option<JobIx>> =
            old.jobs.iter().map(|job| places.get_mut(job.name.as_str())?.pop()).collect();
        // A lock in another catalog is another lock.
        let same = |lock| new.locks.iter().position(|other| other == lock).map(LockIx::at);
        let same = |lock| same(lock).filter(|_| old.catalog == new.catalog);
        let locks: Vec<Option<LockIx>> = old.locks.iter().map(same).collect();
        let loses_lock = |job: &Job| {
            let mut lost = old.locks.iter().zip(&locks).filter(|(_, to)| to.is_none());
            lost.any(|(lock, _)| job.requires_lock(lock))
        };
        let mut jobs = vec![JobChange::Started; new.jobs.len()];
        for (index, (before, to)) in old.jobs.iter().zip(&moved).enumerate() {
            let from = JobIx::at(index);
            let after = to.and_then(|to| Some((new.jobs.get(to.index())?, jobs.get_mut(to.index())?)));
            if let Some((after, change)) = after {
                // C6: coprocesses restart at every reload.
                let restarts = must_restart(from) || before.role == Role::Coprocess || loses_lock(before);
                *change = match () {
                    () if restarts => JobChange::Restarted(from),
                    () if before == after => JobChange::Kept(from),
                    () if keeps_process(before, after) => JobChange::Adjusted(from),
                    () => JobChange::Restarted(from),
                };
            }
        }
        let same = |watch| new.watches.iter().position(|other| other == watch).map(WatchIx::at);
        let watches = old.watches.iter().map(same).collect();
        let same = |file| new.files.iter().position(|other| other == file).map(FileIx::at);
        let files = old.files.iter().map(same).collect();
        Self { moves: Moves { jobs: moved, watches, files, locks }, jobs }
    }

    /// The jobs of the old plan that do not continue in the new one, in ascending order.
    pub(crate) fn replaced(&self) -> Vec<JobIx> {
        let kept = |to: JobIx| {
            matches!(self.jobs.get(to.index()), Some(JobChange::Kept(_) | JobChange::Adjusted(_)))
        };
        let old = self.moves.jobs.iter().enumerate();
        old.filter(|(_, to)| !to.is_some_and(kept)).map(|(index, _)| JobIx::at(index)).collect()
    }

    /// The difference in names.
    pub(crate) fn changes(&self, old: &Plan, new: &Plan) -> Changes {
        let mut changes = Changes::default();
        for (job, change) in new.jobs.iter().zip(&self.jobs) {
            let list = match change {
                JobChange::Started => &mut changes.started,
                JobChange::Restarted(_) => &mut changes.restarted,
                JobChange::Kept(_) => &mut changes.kept,
                JobChange::Adjusted(_) => &mut changes.adjusted,
            };
            list.push(job.name.clone());
        }
        let removed = old.jobs.iter().zip(&self.moves.jobs).filter(|(_, to)| to.is_none());
        changes.stopped = removed.map(|(job, _)| job.name.clone()).collect();
        changes
    }
}

/// R5: returns true if two definitions differ only in what does not concern the process itself.
fn keeps_process(old: &Job, new: &Job) -> bool {
    let instance = |job: &Job| {
        let service = job.service.as_ref()?;
        Some((service.name.clone(), service.id.clone(), service.port, service.legacy_check))
    };
    // Without checks its health would become unknown, and jobs that wait for it could not start.
    let loses_checks = old.health.is_some() && new.health.is_none();
    let adjusted = Job {
        restarts: new.restarts,
        restart_on: new.restart_on,
        success_codes: new.success_codes.clone(),
        start_limit: new.start_limit,
        backoff: new.backoff,
        stop: new.stop.clone(),
        on_failure: new.on_failure,
        on_success: new.on_success,
        health: new.health.clone(),
        service: new.service.clone(),
        output: new.output.clone(),
        groups: new.groups.clone(),
        ..old.clone()
    };
    !loses_checks && instance(old) == instance(new) && adjusted == *new
}
