//! The nodes and edges of a plan, for all output formats.

use std::collections::BTreeMap;

use containerpilot_command_line::summary;
use containerpilot_config::duration::exact;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{
    EventPattern, Exec, FirstTick, Job, OnCompletion, Plan, PortRange, Repeat, ReplicaGroup, RequiredSource,
    Requirement, Restarts, Role, Trigger, WatchKind,
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
        let mut builder = Builder { graph: Self::default(), jobs: BTreeMap::new(), sources: BTreeMap::new() };
        let jobs: Vec<&Job> =
            plan.jobs.iter().filter(|job| !matches!(job.role, Role::Telemetry | Role::Sensor(_))).collect();
        let mut drawn = Vec::new();
        for job in &jobs {
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
                drawn.push((at, *job));
                at
            });
            builder.jobs.entry(&job.name).or_default().push(at);
        }
        for watch in &plan.watches {
            let note = match &watch.kind {
                WatchKind::Service { tag: None, .. } => String::new(),
                WatchKind::Service { tag: Some(tag), .. } => format!("with tag {tag}"),
                _ => watch.target(),
            };
            let source = Source::Watch(watch.name.clone());
            let at = builder.node(Kind::Watch, &source.to_string(), note);
            builder.sources.insert((source, None), at);
        }
        for lock in &plan.locks {
            let note = if lock.slots > 1 { format!("{} slots", lock.slots) } else { String::new() };
            let source = Source::Lock(lock.name.clone());
            let at = builder.node(Kind::Lock, &source.to_string(), note);
            builder.sources.insert((source, None), at);
        }
        for file in &plan.files {
            let source = Source::File(file.name.clone());
            let at = builder.node(Kind::File, &source.to_string(), file.to.clone());
            builder.sources.insert((source, None), at);
            for watch in &file.watches {
                let from = builder.source(&Source::Watch(watch.clone()), Kind::Missing);
                builder.edge(from, at, "rendered".to_owned(), LineStyle::Each);
            }
        }
        for (to, job) in drawn {
            builder.trigger(to, &job.when.trigger);
            builder.requires(to, job);
            builder.ends(to, job);
            builder.service(to, job);
        }
        builder.graph
    }
}

impl Builder<'_> {
    fn node(&mut self, kind: Kind, name: &str, note: String) -> usize {
        self.graph.nodes.push(Node { kind, name: name.to_owned(), note, group: None });
        self.graph.nodes.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize, label: String, line: LineStyle) {
        self.graph.edges.push(Edge { from, to, label, line });
    }

    /// Adds the edges that start a job.
    fn trigger(&mut self, to: usize, trigger: &Trigger) {
        match trigger {
            Trigger::Event { event, repeat } => self.arrows(to, event, *repeat),
            Trigger::Any { conditions, repeat } => {
                for event in conditions {
                    self.arrows(to, event, *repeat);
                }
            }
            Trigger::All { conditions, repeat } => match conditions.as_slice() {
                [only] => self.arrows(to, only, *repeat),
                several => {
                    let all = self.node(Kind::All, "", String::new());
                    for event in several {
                        self.arrows(all, event, Repeat::Once);
                    }
                    let label = if *repeat == Repeat::Each { "each time" } else { "" };
                    self.edge(all, to, label.to_owned(), line(*repeat));
                }
            },
            Trigger::Interval {
                first: FirstTick::AtEvent(event) | FirstTick::IntervalAfter(event), ..
            }
            | Trigger::Cron { after: Some(event), .. } => {
                self.arrows(to, event, Repeat::Once);
            }
            Trigger::Interval { every: interval, first: FirstTick::AtStartup } => {
                let startup = self.global(Code::Startup);
                self.edge(startup, to, format!("every {}", exact(*interval)), LineStyle::Each);
            }
            Trigger::Cron { after: None, .. } | Trigger::Manual | Trigger::Never => {}
        }
    }

    /// Adds edges from the source of an event. Several jobs may share a name.
    fn arrows(&mut self, to: usize, event: &EventPattern, repeat: Repeat) {
        let each = if repeat == Repeat::Each { "each " } else { "" };
        let (from, label) = match &event.source {
            // The node has the name of the event.
            Source::Global => (vec![self.global(event.code)], each.trim_end().to_owned()),
            source @ Source::Signal(_) => (vec![self.source(source, Kind::Event)], String::new()),
            source @ (Source::Watch(_) | Source::File(_) | Source::Lock(_)) => {
                (vec![self.source(source, Kind::Missing)], format!("{each}{}", event.code))
            }
            source @ Source::Job(name) => {
                let jobs = match self.jobs.get(name.as_str()) {
                    Some(jobs) => jobs.clone(),
                    None => vec![self.source(source, Kind::Missing)],
                };
                // An edge of one replica says of which.
                let one = jobs
                    .first()
                    .and_then(|at| self.graph.nodes.get(*at))
                    .filter(|node| node.kind != Kind::Missing && node.name != *name);
                let one = one.map_or_else(String::new, |_| format!("{name}: "));
                (jobs, format!("{one}{each}{}", event.code))
            }
        };
        for from in from {
            self.edge(from, to, label.clone(), line(repeat));
        }
    }

    /// Adds the edges of `requires`, and of `stopAfter`.
    fn requires(&mut self, to: usize, job: &Job) {
        for Requirement { source, bind } in &job.requires {
            let source = match source {
                RequiredSource::Job(name) => Source::Job(name.clone()),
                RequiredSource::Watch(name) => Source::Watch(name.clone()),
                RequiredSource::File(name) => Source::File(name.clone()),
                RequiredSource::Lock(name) => Source::Lock(name.clone()),
            };
            let (label, line) =
                if *bind { ("requires, bound", LineStyle::Each) } else { ("requires", LineStyle::Once) };
            for from in self.nodes_of(&source) {
                self.edge(from, to, label.to_owned(), line);
            }
        }
        for name in &job.stop_after {
            for from in self.nodes_of(&Source::Job(name.clone())) {
                self.edge(from, to, "stops first".to_owned(), LineStyle::Effect);
            }
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

    /// Adds the edges of `onFailure` and `onSuccess`.
    fn ends(&mut self, from: usize, job: &Job) {
        let ends = [(job.on_failure, "fails"), (job.on_success, "succeeds")];
        for (_, label) in ends.into_iter().filter(|(end, _)| *end == OnCompletion::Shutdown) {
            let shutdown = self.global(Code::Shutdown);
            self.edge(from, shutdown, label.to_owned(), LineStyle::Effect);
        }
    }

    /// Adds an edge to the watch that follows the service of the job.
    fn service(&mut self, from: usize, job: &Job) {
        let watch = job
            .service
            .as_ref()
            .and_then(|service| self.sources.get(&(Source::Watch(service.name.clone()), None)).copied());
        if let Some(watch) = watch {
            self.edge(from, watch, "advertised".to_owned(), LineStyle::Effect);
        }
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

fn line(repeat: Repeat) -> LineStyle {
    if repeat != Repeat::Once { LineStyle::Each } else { LineStyle::Once }
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
