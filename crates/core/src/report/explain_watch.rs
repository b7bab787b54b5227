//! What a watch knows, and what depends on it (X9).

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::catalog::connectivity::Trouble;
use crate::ids::{JobIx, WatchIx};
use crate::plan::{Catalog, Repeat, Watch, WatchKind};
use crate::report::words;
use crate::state::journal::Origin;
use crate::supervisor::Core;
use crate::time::fmt_duration;
use crate::watches::WatchOverview;

/// How many instances are listed.
const MAX_INSTANCES: usize = 16;

/// What a watch knows, and what depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchExplanation {
    /// The full status of the watch.
    pub watch: WatchOverview,
    /// The explanation line by line; the first line is a summary.
    pub sentences: Vec<String>,
}

impl Core {
    /// Explains the state of a watch, with the reason why the catalog does not answer it. `None` if there is no such
    /// watch.
    #[must_use]
    pub fn explain_watch(&self, watch: WatchIx, trouble: Option<&Trouble>) -> Option<WatchExplanation> {
        let planned = self.plan().watches.get(watch.index())?;
        let overview = self.plan_state.parts.watches.overviews(self.plan()).into_iter().nth(watch.index())?;
        let source = format!("watch.{}", planned.name);
        let mut state = match &overview.answer {
            None if planned.kind.is_in_catalog() => "no answer from the catalog yet".into(),
            None => "no answer yet".into(),
            Some(answer) => answer.words(),
        };
        match trouble.or(overview.trouble.as_ref()) {
            Some(Trouble { error, .. }) if overview.answer.is_none() => state += &format!(": {error}"),
            Some(Trouble { since, error }) => {
                state += &format!(" (as of {} ago: {error})", fmt_duration(self.now.since(*since)));
            }
            None => {}
        }
        let mut lines = vec![format!("{source}: {state}")];
        let instances = overview.instances().unwrap_or_default();
        let listed = instances.iter().take(MAX_INSTANCES);
        lines.extend(listed.map(|one| match one.port {
            0 => format!("  {}", one.address),
            port => format!("  {} at {} port {port}", one.id, one.address),
        }));
        if let Some(more @ 1..) = instances.len().checked_sub(MAX_INSTANCES) {
            lines.push(format!("  and {more} more"));
        }
        lines.extend(self.origin_of(planned));
        let last = self.journal().events().rev().find(|event| event.origin == Origin::Watch(watch));
        if let Some(event) = last {
            let ago = fmt_duration(self.now.since(event.at));
            lines.push(format!("  last event: {}, {ago} ago", words::event(&source, event.code.name())));
        }
        let files = self.plan().files.iter().filter(|file| file.watches.contains(&planned.name));
        let mut dependents: Vec<String> =
            files.map(|file| format!("  file.{} is rendered from it", file.name)).collect();
        dependents.extend(self.all_jobs().flat_map(|job| self.starts_by(watch, job, &source)));
        if dependents.is_empty() {
            lines.push("  no job waits for it".into());
        }
        lines.extend(dependents);
        Some(WatchExplanation { watch: overview, sentences: lines })
    }

    /// Where the answers come from.
    fn origin_of(&self, watch: &Watch) -> Vec<String> {
        let (target, interval) = (watch.target(), fmt_duration(watch.interval));
        match (&watch.kind, &self.plan().catalog) {
            (WatchKind::Service { .. }, Catalog::Consul(_)) => {
                vec![format!("  {target} in Consul, polled at least every {interval}")]
            }
            (WatchKind::Service { .. }, Catalog::Embedded) => self.embedded_services(watch),
            (WatchKind::Tcp { .. } | WatchKind::Http(_), _) => vec![format!("  {target}, every {interval}")],
            (WatchKind::Dns { .. }, _) => vec![format!("  {target}, looked up at least every {interval}")],
            (WatchKind::File { .. }, _) => vec![format!("  {target}")],
            (WatchKind::Key { .. } | WatchKind::Prefix { .. }, _) => vec![format!("  {target} in Consul")],
        }
    }

    fn embedded_services(&self, watch: &Watch) -> Vec<String> {
        let seen = |job: &JobIx| self.planned(*job).is_seen_by(watch);
        let services = self.all_jobs().filter(seen).filter_map(|job| self.service_state(job));
        let services: Vec<String> = services.map(|service| format!("  {service}")).collect();
        if services.is_empty() {
            let target = watch.target();
            let target = target.strip_prefix("service ").unwrap_or(&target);
            return vec![format!(
                "  the embedded catalog has only services of this container: no job advertises {target}"
            )];
        }
        services
    }

    /// The events of a watch that start a job.
    fn starts_by(&self, watch: WatchIx, job: JobIx, source: &str) -> Vec<String> {
        let when = &self.planned(job).when;
        let word = if when.repeat() == Repeat::Each { "each time" } else { "when" };
        let graph = &self.plan_state.graph;
        let patterns = when.patterns().iter().enumerate();
        let own =
            patterns.filter(|(nth, _)| graph.origin_of_pattern(job, *nth) == Some(Origin::Watch(watch)));
        own.map(|(_, event)| {
            let condition = words::condition(source, event.code);
            format!("  starts {} {word} {condition}; {}", self.planned(job).name, self.summary(job))
        })
        .collect()
    }
}
