//! A copy of the core for reports to viewers that must not see everything (T5).
//!
//! The texts are removed from the state, not from the sentences about it, so that no sentence can contain one, neither
//! today's nor later ones.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::plan::{Job, Plan, WatchKind};
use crate::supervisor::Core;

/// Which texts a report may contain that are not the supervisor's own. It never contains values of variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disclosure {
    /// Command lines, paths of URLs, and messages that quote them: why a start, a check or a watch failed.
    pub commands: bool,
    /// What processes say about themselves.
    pub output: bool,
}

/// Stands for a reason that is not shown.
const HIDDEN: &str = "the reason is not shown here";

impl Core {
    /// A copy without the texts that are not disclosed. It is for reports only.
    #[must_use]
    pub fn redacted(&self, shown: Disclosure) -> Self {
        let mut copy = self.clone();
        let state = &mut copy.plan_state;
        for (job, planned) in state.jobs.iter_mut().zip(&self.plan().jobs) {
            if !shown.commands {
                // The errors of actions are the supervisor's own words.
                if planned.exec.action().is_none() && job.start_error.is_some() {
                    job.start_error = Some(HIDDEN.into());
                }
            }
            if !shown.output
                && let Some(notified) = job.run_mut().and_then(|run| run.notified.as_mut())
            {
                notified.status = None;
            }
        }
        state.parts.files.redact(HIDDEN);
        if !shown.commands {
            state.parts.watches.redact(HIDDEN);
            state.health.redact();
        }
        if !shown.commands && (has_urls(&state.plan) || state.plan.jobs.iter().any(Job::has_command_name)) {
            hide_commands(Arc::make_mut(&mut state.plan));
        }
        copy
    }

    /// The names of jobs that contain their command line, and the names that a report without commands has for them.
    #[must_use]
    pub fn command_names(&self) -> Vec<(String, String)> {
        let jobs = self.plan().jobs.iter().filter(|job| job.has_command_name());
        jobs.map(|job| (job.name.clone(), short_name(job))).collect()
    }
}

fn short_name(job: &Job) -> String {
    job.exec.program().map_or_else(String::new, |command| command.program.text().into_owned())
}

fn has_urls(plan: &Plan) -> bool {
    plan.watches.iter().any(|watch| matches!(watch.kind, WatchKind::Http(_)))
}

fn hide_commands(plan: &mut Plan) {
    for job in plan.jobs.iter_mut().filter(|job| job.has_command_name()) {
        job.name = short_name(job);
    }
    for watch in &mut plan.watches {
        if let WatchKind::Http(probe) = &mut watch.kind {
            probe.target.path = format!("/{}", if probe.target.path == "/" { "" } else { "…" });
        }
    }
}
