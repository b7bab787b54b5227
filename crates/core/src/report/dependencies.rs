//! What each job, file and watch of the plan depends on, for a picture of it (T5).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::event::{Code, Source};
use crate::ids::{FileIx, JobIx, WatchIx};
use crate::plan::{Repeat, Role};
use crate::state::journal::Origin;
use crate::supervisor::Core;

/// An arrow from what something depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// As in a configuration: `db`, `watch.db`, `SIGHUP`.
    pub source: String,
    /// What depends on it. Of replicas, the first one stands for all.
    pub target: Origin,
    /// How, in a few words: `healthy`, `each changed`, `requires`.
    pub label: String,
}

impl Core {
    /// All dependencies of the plan, in its order. That every job depends on the startup is left out.
    #[must_use]
    pub fn dependencies(&self) -> Vec<Dependency> {
        let plan = self.plan();
        let mut found = Vec::new();
        for (nth, job) in plan.jobs.iter().enumerate() {
            if job.replica.as_ref().is_some_and(|replica| replica.number > 1) || job.role == Role::Telemetry {
                continue;
            }
            let target = Origin::Job(JobIx::at(nth));
            let each = if job.when.repeat() == Repeat::Each { "each " } else { "" };
            let patterns = job.when.patterns().iter();
            let patterns = patterns
                .filter(|event| !(event.source == Source::Global && event.code == Code::Startup))
                .map(|event| (event.source.to_string(), format!("{each}{}", event.code.name())));
            let required = job.requires.iter().map(|required| {
                let label = if required.bind { "requires, bound" } else { "requires" };
                (required.source.to_string(), label.into())
            });
            found.extend(patterns.chain(required).map(|(source, label)| Dependency {
                source,
                target,
                label,
            }));
        }
        for (nth, file) in plan.files.iter().enumerate() {
            let target = Origin::File(FileIx::at(nth));
            found.extend(file.watches.iter().map(|watch| Dependency {
                source: format!("watch.{watch}"),
                target,
                label: "rendered".into(),
            }));
        }
        for (nth, watch) in plan.watches.iter().enumerate() {
            let target = Origin::Watch(WatchIx::at(nth));
            let seen = |service: &_| watch.sees(service);
            let jobs = plan.jobs.iter().filter(|job| job.service.as_ref().is_some_and(seen));
            let mut names: Vec<&str> = jobs
                .map(|job| job.replica.as_ref().map_or(job.name.as_str(), |replica| replica.group.as_str()))
                .collect();
            names.dedup();
            found.extend(names.into_iter().map(|name| Dependency {
                source: name.to_string(),
                target,
                label: "advertised".into(),
            }));
        }
        found
    }
}
