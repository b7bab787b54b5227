//! The graph of a plan with notes, for all output formats.

use std::collections::BTreeMap;

use containerpilot_config::duration::exact;
use containerpilot_core::plan::{
    Exec, FirstTick, Job, Plan, PortRange, ReplicaGroup, Restarts, Trigger, WatchKind,
};
use containerpilot_core::report::graph::{self, Scope};
use containerpilot_core::report::words;
use containerpilot_core::state::journal::Origin;
use containerpilot_text::summary;

pub use containerpilot_core::report::graph::{Edge, LineStyle, NodeKind as Kind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    /// Empty for [`Kind::All`].
    pub name: String,
    /// A second line; may be empty.
    pub note: String,
    /// The first group of a job (W22). The note has the others: a node can be drawn in one cluster only.
    pub group: Option<String>,
}

#[derive(Debug, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

impl Graph {
    /// The groups with their nodes.
    pub fn clusters(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut clusters: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(group) = &node.group {
                clusters.entry(group).or_default().push(at);
            }
        }
        clusters
    }

    /// Builds the graph of a plan, without the built-in jobs of telemetry.
    pub fn of(plan: &Plan) -> Self {
        let graph::Graph { nodes, edges } = graph::Graph::of(plan, Scope::Configuration);
        let nodes = nodes.into_iter().map(|node| {
            let (note, group) = describe(plan, &node);
            Node { kind: node.kind, name: node.name, note, group }
        });
        Self { nodes: nodes.collect(), edges }
    }
}

/// The note and the group of a node.
fn describe(plan: &Plan, node: &graph::Node) -> (String, Option<String>) {
    let note = match node.members.first() {
        Some(Origin::Job(job)) => {
            let Some(job) = plan.jobs.get(job.index()) else { return Default::default() };
            let group = plan.replicas.iter().find(|group| job.is_replica_of(&group.template.name));
            return (group.map_or_else(|| self::note(job), group_note), job.groups.first().cloned());
        }
        Some(Origin::Watch(watch)) => plan.watches.get(watch.index()).map(|watch| match &watch.kind {
            WatchKind::Service { tag: None, .. } => String::new(),
            WatchKind::Service { tag: Some(tag), .. } => format!("with tag {tag}"),
            _ => watch.target(),
        }),
        Some(Origin::Lock(lock)) => plan
            .locks
            .get(lock.index())
            .filter(|lock| lock.slots > 1)
            .map(|lock| format!("{} slots", lock.slots)),
        Some(Origin::File(file)) => plan.files.get(file.index()).map(|file| file.to.clone()),
        Some(Origin::Global | Origin::Signal(_) | Origin::Removed(_)) => None,
        None if node.kind == Kind::Missing => {
            let kind = node.name.split_once('.').map_or("job", |(kind, _)| kind);
            let kind = if matches!(kind, "watch" | "file" | "lock") { kind } else { "job" };
            Some(format!("no such {kind}"))
        }
        None => None,
    };
    (note.unwrap_or_default(), None)
}

/// Restart policy, port and checks in a few words.
fn note(job: &Job) -> String {
    let mut words = Vec::new();
    match (&job.when.trigger, job.restarts) {
        (Trigger::Never, _) => words.push("never started".to_owned()),
        (
            Trigger::Interval { every, first: FirstTick::AtEvent(_) | FirstTick::IntervalAfter(_) },
            Restarts::Unlimited,
        ) => {
            words.push(format!("every {}", exact(*every)));
        }
        (Trigger::Cron { cron, .. }, _) => words.push(summary::cron(cron)),
        (Trigger::Manual, _) => words.push("manual".to_owned()),
        // The label of its edge has the interval.
        (Trigger::Interval { .. }, Restarts::Unlimited) => {}
        _ => words.push(restarts(job)),
    }
    match &job.exec {
        Exec::Program(_) => {}
        Exec::Action(action) => words.push(action.to_string()),
        Exec::Nothing => words.push("runs elsewhere".to_owned()),
    }
    if let Some(service) = &job.service {
        words.push(format!("port {}", service.port));
    } else if job.health.is_some() {
        words.push("checked".to_owned());
    }
    words.extend(job.groups.iter().skip(1).map(|group| format!("@{group}")));
    words.retain(|word| !word.is_empty());
    words.join(", ")
}

/// The same for a job with replicas.
fn group_note(group: &ReplicaGroup) -> String {
    let count = if group.count == 1 { "1 replica".to_owned() } else { format!("{} replicas", group.count) };
    let note = note(&group.template);
    let note = match (group.ports, &group.template.service) {
        (Some(PortRange { first, last }), Some(service)) if first != last => {
            note.replace(&format!("port {}", service.port), &format!("ports {first} to {last}"))
        }
        _ => note,
    };
    if note.is_empty() { count } else { format!("{count}, {note}") }
}

fn restarts(job: &Job) -> String {
    match job.restarts {
        Restarts::Limited(0) => String::new(),
        _ => words::restart_policy(job),
    }
}
