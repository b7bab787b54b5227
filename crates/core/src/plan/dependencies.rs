//! Who depends on whom: the one list of edges between the jobs, watches, files and locks of a plan.
//!
//! The live page, `graph` and the simulation read it. They add the words.

use alloc::vec::Vec;
use core::time::Duration;

use super::{FirstTick, Job, OnCompletion, Plan, Repeat, Trigger, Watch};
use crate::event::{Code, Source};
use crate::ids::{FileIx, JobIx, WatchIx};

/// An edge from a source to what depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyEdge {
    /// The source, by its name in the configuration. Several jobs may have this name, and nothing if it is unknown.
    pub source: Source,
    /// What depends on it.
    pub dependent: Dependent,
    /// How it depends on it.
    pub kind: DependencyKind,
}

/// What depends on a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependent {
    /// A job. Each replica has edges of its own (W20).
    Job(JobIx),
    /// A watch.
    Watch(WatchIx),
    /// A rendered file.
    File(FileIx),
    /// The supervisor.
    Supervisor,
}

/// How something depends on a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// An event of the source starts the job.
    Event {
        /// The event.
        code: Code,
        /// As [`When::repeat`](super::When::repeat) returns it: `Once` or `Each`.
        repeat: Repeat,
        /// True if the job starts only when its other conditions hold, too (W12).
        with_others: bool,
    },
    /// The startup starts the job, which then runs at this interval (W4).
    Interval(Duration),
    /// The job requires the source (W18).
    Requires {
        /// True if the job is stopped when the source is gone.
        bind: bool,
    },
    /// The job stops after the source (S10).
    StopsAfter,
    /// The file is rendered from what the source, a watch, finds (D15).
    Rendered,
    /// The watch sees the service of this job. The source is the job, or the definition of its replicas.
    Advertised(JobIx),
    /// The supervisor shuts down when this job, the source, ends (S5).
    ShutDown {
        /// The job.
        job: JobIx,
        /// True for a failure, false for a success.
        failed: bool,
    },
}

impl Job {
    /// Returns true if the watch sees the service of this job.
    #[must_use]
    pub fn is_seen_by(&self, watch: &Watch) -> bool {
        self.service.as_ref().is_some_and(|service| watch.sees(service))
    }
}

impl Plan {
    /// All edges: those to each job and from its end, then those to files, then those to watches.
    #[must_use]
    pub fn dependencies(&self) -> Vec<DependencyEdge> {
        let mut edges = Vec::new();
        let mut add = |source, dependent, kind| edges.push(DependencyEdge { source, dependent, kind });
        for (nth, job) in self.jobs.iter().enumerate() {
            let ix = JobIx::at(nth);
            let dependent = Dependent::Job(ix);
            let (patterns, repeat) = (job.when.patterns(), job.when.repeat());
            let with_others = job.when.needs_all() && patterns.len() > 1;
            for event in patterns {
                let kind = DependencyKind::Event { code: event.code, repeat, with_others };
                add(event.source.clone(), dependent, kind);
            }
            if let Trigger::Interval { every, first: FirstTick::AtStartup } = &job.when.trigger {
                add(Source::Global, dependent, DependencyKind::Interval(*every));
            }
            for required in &job.requires {
                let kind = DependencyKind::Requires { bind: required.bind };
                add(Source::from(&required.source), dependent, kind);
            }
            for name in &job.stop_after {
                add(Source::Job(name.clone()), dependent, DependencyKind::StopsAfter);
            }
            for (end, failed) in [(job.on_failure, true), (job.on_success, false)] {
                if end == OnCompletion::Shutdown {
                    let kind = DependencyKind::ShutDown { job: ix, failed };
                    add(Source::Job(job.name.clone()), Dependent::Supervisor, kind);
                }
            }
        }
        for (nth, file) in self.files.iter().enumerate() {
            for name in &file.watches {
                let dependent = Dependent::File(FileIx::at(nth));
                add(Source::Watch(name.clone()), dependent, DependencyKind::Rendered);
            }
        }
        for (nth, watch) in self.watches.iter().enumerate() {
            for (job_nth, job) in self.jobs.iter().enumerate().filter(|(_, job)| job.is_seen_by(watch)) {
                let name = job.replica.as_ref().map_or(&job.name, |replica| &replica.group);
                let kind = DependencyKind::Advertised(JobIx::at(job_nth));
                add(Source::Job(name.clone()), Dependent::Watch(WatchIx::at(nth)), kind);
            }
        }
        edges
    }
}
