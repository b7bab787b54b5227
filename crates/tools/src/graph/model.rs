//! The nodes and edges of a plan, for all output formats.

use std::collections::BTreeMap;

use containerpilot_command_line::summary;
use containerpilot_config::duration::exact;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::ids::{FileIx, JobIx, WatchIx};
use containerpilot_core::plan::{
    DependencyEdge, DependencyKind, Dependent, Exec, FirstTick, Job, Plan, PortRange, Repeat, ReplicaGroup,
    Restarts, Role, Trigger, WatchKind,
};
use containerpilot_core::report::words;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Empty for [`Kind::All`].
    pub(super) name: String,
    /// A second line; may be empty.
    pub(super) note: String,
    /// The first group of a job (W22). The note has the others: a node can be drawn in one cluster only.
    pub(super) group: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    Coprocess,
    Watch,
    Lock,
    /// A rendered file.
    File,
    /// An event of the supervisor, or a signal to it.
    Event,
    /// A condition that holds when the conditions of all incoming edges hold.
    All,
    /// A source that is not in the plan.
    Missing,
}

/// An edge between two nodes, which are indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: String,
    pub(super) line: LineStyle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineStyle {
    /// Starts the target once.
    Once,
    /// Starts the target each time.
    Each,
    /// Starts nothing: a shutdown, or a service that a watch sees.
    Effect,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// The graph under construction, with its nodes by name.
struct Builder<'a> {
    graph: Graph,
    jobs: BTreeMap<&'a str, Vec<usize>>,
    /// What edges lead to. Of replicas, only the first: its edges are those of all.
    dependents: BTreeMap<Dependent, usize>,
    /// The other sources. Each event of the supervisor is a node of its own.
    sources: BTreeMap<(Source, Option<Code>), usize>,
}

impl Graph {
    /// The groups with their nodes.
    pub(super) fn clusters(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut clusters: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(group) = &node.group {
                clusters.entry(group).or_default().push(at);
            }
        }
        clusters
    }

    /// Builds the graph of a plan, without the built-in jobs of telemetry.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut builder = Builder {
            graph: Self::default(),
            jobs: BTreeMap::new(),
            dependents: BTreeMap::new(),
            sources: BTreeMap::new(),
        };
        let jobs = plan.jobs.iter().enumerate();
        for (nth, job) in jobs.filter(|(_, job)| !matches!(job.role, Role::Telemetry | Role::Sensor(_))) {
            let at = match &job.replica {
                // All replicas of a job are one node, which has the names of all of them.
                Some(replica) if replica.number > 1 => builder.jobs.get(replica.group.as_str()).cloned(),
                _ => None,
            };
            let at = at.and_then(|at| at.first().copied()).unwrap_or_else(|| {
                let kind = if job.role == Role::Coprocess { Kind::Coprocess } else { Kind::Job };
                let group = plan.replicas.iter().find(|group| job.is_replica_of(&group.template.name));
                let at = match group {
                    Some(group) => builder.node(kind, &group.template.name, group_note(group)),
                    None => builder.node(kind, &job.name, note(job)),
                };
                if let Some(group) = group {
                    builder.jobs.entry(&group.template.name).or_default().push(at);
                }
                if let Some(node) = builder.graph.nodes.get_mut(at) {
                    node.group = job.groups.first().cloned();
                }
                builder.dependents.insert(Dependent::Job(JobIx::at(nth)), at);
                at
            });
            builder.jobs.entry(&job.name).or_default().push(at);
        }
        for (nth, watch) in plan.watches.iter().enumerate() {
            let note = match &watch.kind {
                WatchKind::Service { tag: None, .. } => String::new(),
                WatchKind::Service { tag: Some(tag), .. } => format!("with tag {tag}"),
                _ => watch.target(),
            };
            let source = Source::Watch(watch.name.clone());
            let at = builder.node(Kind::Watch, &source.to_string(), note);
            builder.dependents.insert(Dependent::Watch(WatchIx::at(nth)), at);
            builder.sources.insert((source, None), at);
        }
        for lock in &plan.locks {
            let note = if lock.slots > 1 { format!("{} slots", lock.slots) } else { String::new() };
            let source = Source::Lock(lock.name.clone());
            let at = builder.node(Kind::Lock, &source.to_string(), note);
            builder.sources.insert((source, None), at);
        }
        for (nth, file) in plan.files.iter().enumerate() {
            let source = Source::File(file.name.clone());
            let at = builder.node(Kind::File, &source.to_string(), file.to.clone());
            builder.dependents.insert(Dependent::File(FileIx::at(nth)), at);
            builder.sources.insert((source, None), at);
        }
        let mut dependencies = plan.dependencies();
        // The edges of files come first, then those of each job.
        dependencies.sort_by_key(job_of);
        for together in dependencies.chunk_by(are_together) {
            match together {
                [only] => builder.dependency(only),
                conditions => builder.all(conditions),
            }
        }
        builder.graph
    }
}

/// The job whose configuration has the dependency.
fn job_of(dependency: &DependencyEdge) -> Option<JobIx> {
    match (dependency.kind, dependency.dependent) {
        (DependencyKind::Advertised(job) | DependencyKind::ShutDown { job, .. }, _)
        | (_, Dependent::Job(job)) => Some(job),
        _ => None,
    }
}

/// Returns true for two conditions of a job that must hold at the same time.
fn are_together(one: &DependencyEdge, other: &DependencyEdge) -> bool {
    let is_condition = |dependency: &DependencyEdge| {
        matches!(dependency.kind, DependencyKind::Event { with_others: true, .. })
    };
    one.dependent == other.dependent && is_condition(one) && is_condition(other)
}

impl Builder<'_> {
    fn node(&mut self, kind: Kind, name: &str, note: String) -> usize {
        self.graph.nodes.push(Node { kind, name: name.to_owned(), note, group: None });
        self.graph.nodes.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize, label: String, line: LineStyle) {
        self.graph.edges.push(Edge { from, to, label, line });
    }

    /// Adds the edges of a dependency.
    fn dependency(&mut self, dependency: &DependencyEdge) {
        let source = &dependency.source;
        let to = self.dependents.get(&dependency.dependent).copied();
        match (dependency.kind, to) {
            (DependencyKind::Event { code, repeat, .. }, Some(to)) => self.event(to, source, code, repeat),
            (DependencyKind::Interval(every), Some(to)) => {
                let startup = self.global(Code::Startup);
                self.edge(startup, to, format!("every {}", exact(every)), LineStyle::Each);
            }
            (DependencyKind::Requires { bind: false }, Some(to)) => {
                self.edges(source, to, "requires", LineStyle::Once);
            }
            (DependencyKind::Requires { bind: true }, Some(to)) => {
                self.edges(source, to, "requires, bound", LineStyle::Each);
            }
            (DependencyKind::StopsAfter, Some(to)) => {
                self.edges(source, to, "stops first", LineStyle::Effect);
            }
            (DependencyKind::Rendered, Some(to)) => self.edges(source, to, "rendered", LineStyle::Each),
            (DependencyKind::Advertised(job), Some(to)) => {
                if let Some(from) = self.dependents.get(&Dependent::Job(job)) {
                    self.edge(*from, to, "advertised".to_owned(), LineStyle::Effect);
                }
            }
            (DependencyKind::ShutDown { job, failed }, _) => {
                if let Some(from) = self.dependents.get(&Dependent::Job(job)).copied() {
                    let label = if failed { "fails" } else { "succeeds" };
                    let shutdown = self.global(Code::Shutdown);
                    self.edge(from, shutdown, label.to_owned(), LineStyle::Effect);
                }
            }
            (_, None) => {}
        }
    }

    /// Adds the edges of several conditions that start a job together, by way of a node of their own.
    fn all(&mut self, conditions: &[DependencyEdge]) {
        let Some((first, to)) =
            conditions.first().and_then(|first| Some((first, *self.dependents.get(&first.dependent)?)))
        else {
            return;
        };
        let all = self.node(Kind::All, "", String::new());
        for condition in conditions {
            if let DependencyKind::Event { code, .. } = condition.kind {
                self.event(all, &condition.source, code, Repeat::Once);
            }
        }
        let each = matches!(first.kind, DependencyKind::Event { repeat: Repeat::Each, .. });
        let (label, line) = if each { ("each time", LineStyle::Each) } else { ("", LineStyle::Once) };
        self.edge(all, to, label.to_owned(), line);
    }

    /// Adds the edges of an event.
    fn event(&mut self, to: usize, source: &Source, code: Code, repeat: Repeat) {
        let (each, line) =
            if repeat == Repeat::Once { ("", LineStyle::Once) } else { ("each ", LineStyle::Each) };
        match source {
            Source::Global => {
                // The node has the name of the event.
                let from = self.global(code);
                self.edge(from, to, each.trim_end().to_owned(), line);
            }
            Source::Signal(_) => {
                let from = self.source(source, Kind::Event);
                self.edge(from, to, String::new(), line);
            }
            Source::Job(_) | Source::Watch(_) | Source::File(_) | Source::Lock(_) => {
                let name = source.to_string();
                let node = self.nodes_of(source).first().and_then(|at| self.graph.nodes.get(*at));
                // An edge of one replica says of which.
                let one = match node {
                    Some(node) if node.name != name => format!("{name}: "),
                    _ => String::new(),
                };
                self.edges(source, to, &format!("{one}{each}{code}"), line);
            }
        }
    }

    /// Adds an edge from each node of a source.
    fn edges(&mut self, source: &Source, to: usize, label: &str, line: LineStyle) {
        for from in self.nodes_of(source) {
            self.edge(from, to, label.to_owned(), line);
        }
    }

    /// The nodes of a source. Several jobs may share a name.
    fn nodes_of(&mut self, source: &Source) -> Vec<usize> {
        let jobs = match source {
            Source::Job(name) => self.jobs.get(name.as_str()).cloned(),
            _ => None,
        };
        jobs.unwrap_or_else(|| vec![self.source(source, Kind::Missing)])
    }

    fn global(&mut self, code: Code) -> usize {
        if let Some(known) = self.sources.get(&(Source::Global, Some(code))) {
            return *known;
        }
        let at = self.node(Kind::Event, code.name(), String::new());
        self.sources.insert((Source::Global, Some(code)), at);
        at
    }

    /// Returns the node of a source, and adds one of `kind` if there is none.
    fn source(&mut self, source: &Source, kind: Kind) -> usize {
        let key = (source.clone(), None);
        if let Some(known) = self.sources.get(&key) {
            return *known;
        }
        let note = match (kind, source) {
            (Kind::Missing, Source::Watch(_)) => "no such watch",
            (Kind::Missing, Source::File(_)) => "no such file",
            (Kind::Missing, Source::Lock(_)) => "no such lock",
            (Kind::Missing, _) => "no such job",
            _ => "",
        };
        let at = self.node(kind, &source.to_string(), note.to_owned());
        self.sources.insert(key, at);
        at
    }
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
