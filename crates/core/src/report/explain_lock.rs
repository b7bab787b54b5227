//! Who has a lock, and what depends on it (D14, X9).

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::catalog::connectivity::Trouble;
use crate::ids::{JobIx, LockIx};
use crate::locks::LockOverview;
use crate::plan::Repeat;
use crate::report::words;
use crate::state::journal::Origin;
use crate::supervisor::Core;
use crate::time::fmt_duration;

/// Who has a lock, and what depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct LockExplanation {
    /// The full status of the lock.
    pub lock: LockOverview,
    /// The explanation line by line; the first line is a summary.
    pub sentences: Vec<String>,
}

impl Core {
    /// Explains the state of a lock, with the reason why Consul does not answer. `None` if there is no such lock.
    #[must_use]
    pub fn explain_lock(&self, lock: LockIx, trouble: Option<&Trouble>) -> Option<LockExplanation> {
        let planned = self.plan().locks.get(lock.index())?;
        let overview = self.plan_state.parts.locks.overviews(self.plan()).into_iter().nth(lock.index())?;
        let source = format!("lock.{}", planned.name);
        let age = overview.since.map(|since| format!(" for {}", fmt_duration(self.now.since(since))));
        let age = age.unwrap_or_default();
        let state = words::lock(overview.fencing, &age, overview.waiting.as_deref());
        let mut lines = vec![format!("{source}: {state}")];
        if let Some(Trouble { since, error }) = trouble {
            lines.push(format!("  for {}: {error}", fmt_duration(self.now.since(*since))));
        }
        match &overview.key {
            Some(key) => {
                let slots =
                    if planned.slots > 1 { format!(" with {} slots", planned.slots) } else { String::new() };
                lines.push(format!("  key {key} in Consul{slots}, TTL {}", fmt_duration(planned.ttl)));
            }
            None => lines.push("  a local lock: without Consul, each container has it for itself".into()),
        }
        if let Some(at) = overview.gives_up_at {
            let left = fmt_duration(at.since(self.now));
            lines.push(format!("  given up in {left}, unless Consul confirms it before"));
        }
        let dependents: Vec<String> =
            self.all_jobs().flat_map(|job| self.depends_on_lock(lock, job, &source)).collect();
        if dependents.is_empty() {
            lines.push("  no job requires it or waits for it".into());
        }
        lines.extend(dependents);
        Some(LockExplanation { lock: overview, sentences: lines })
    }

    /// How a job depends on a lock.
    fn depends_on_lock(&self, lock: LockIx, job: JobIx, source: &str) -> Vec<String> {
        let (name, summary) = (&self.planned(job).name, self.summary(job));
        let graph = &self.plan_state.graph;
        let required =
            graph.lock_requirers(lock).contains(&job).then(|| format!("  required by {name}; {summary}"));
        let when = &self.planned(job).when;
        let word = if when.repeat() == Repeat::Each { "each time" } else { "when" };
        let patterns = when.patterns().iter().enumerate();
        let own = patterns.filter(|(nth, _)| graph.origin_of_pattern(job, *nth) == Some(Origin::Lock(lock)));
        let starts = own.map(|(_, event)| {
            format!("  starts {name} {word} {}; {summary}", words::condition(source, event.code))
        });
        required.into_iter().chain(starts).collect()
    }
}
