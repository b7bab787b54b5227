//! The dependencies of the plan in words, for a picture of it (T5).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::event::{Code, Source};
use crate::plan::{DependencyEdge, DependencyKind, Dependent, Job, Repeat, Role};
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
    /// The dependencies of the plan for a picture, in its order. The startup, the order of stops and what shuts the
    /// container down are left out.
    #[must_use]
    pub fn dependencies(&self) -> Vec<Dependency> {
        let mut found: Vec<Dependency> = Vec::new();
        for DependencyEdge { source, dependent, kind } in self.plan().dependencies() {
            let target = match dependent {
                Dependent::Job(job) if is_left_out(self.planned(job)) => continue,
                Dependent::Job(job) => Origin::Job(job),
                Dependent::Watch(watch) => Origin::Watch(watch),
                Dependent::File(file) => Origin::File(file),
                Dependent::Supervisor => continue,
            };
            let label = match kind {
                DependencyKind::Event { code: Code::Startup, .. } if source == Source::Global => continue,
                DependencyKind::Interval(_)
                | DependencyKind::StopsAfter
                | DependencyKind::ShutDown { .. } => {
                    continue;
                }
                DependencyKind::Event { code, repeat: Repeat::Once, .. } => code.name().into(),
                DependencyKind::Event { code, .. } => format!("each {}", code.name()),
                DependencyKind::Requires { bind: false } => "requires".into(),
                DependencyKind::Requires { bind: true } => "requires, bound".into(),
                DependencyKind::Rendered => "rendered".into(),
                DependencyKind::Advertised(_) => "advertised".into(),
            };
            let dependency = Dependency { source: source.to_string(), target, label };
            // All replicas of a job are one source.
            let again = matches!(kind, DependencyKind::Advertised(_)) && found.last() == Some(&dependency);
            if !again {
                found.push(dependency);
            }
        }
        found
    }
}

fn is_left_out(job: &Job) -> bool {
    job.role == Role::Telemetry || job.replica.as_ref().is_some_and(|replica| replica.number > 1)
}
