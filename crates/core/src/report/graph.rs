//! The picture of a plan: what depends on what, for `graph` and for the live page. [`layout`](super::layout) places it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::collections::SortedMap;
use crate::event::{Code, Source};
use crate::ids::{FileIx, JobIx, LockIx, WatchIx};
use crate::plan::{DependencyEdge, DependencyKind, Dependent, Plan, Repeat, Role};
use crate::sort_by;
use crate::state::journal::Origin;
use crate::time::exact;

/// The nodes and edges of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The jobs, then watches, locks and files, then what only edges have.
    pub nodes: Vec<Node>,
    /// Those of files and watches, then those of each job.
    pub edges: Vec<Edge>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its name as a source; empty for [`NodeKind::All`].
    pub name: String,
    /// What it stands for in the plan: one thing, all replicas of a job (W20), or nothing.
    pub members: Vec<Origin>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A job.
    Job,
    /// A coprocess.
    Coprocess,
    /// A watch.
    Watch,
    /// A lock.
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
pub struct Edge {
    /// Its start.
    pub from: usize,
    /// Its end.
    pub to: usize,
    /// How the end depends on the start, in a few words; may be empty.
    pub label: String,
    /// How it is drawn.
    pub line: LineStyle,
}

/// How an edge is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// Starts the target once.
    Once,
    /// Starts the target each time.
    Each,
    /// Starts nothing: a shutdown, or a service that a watch sees.
    Effect,
}

impl LineStyle {
    /// One word, the class of the line in a picture.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Each => "each",
            Self::Effect => "effect",
        }
    }
}

/// What a picture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The configuration: everything but sensors.
    Configuration,
    /// What happens while it runs: also sensors, but not the startup, which starts most jobs.
    Running,
}

/// The graph under construction.
struct Builder {
    graph: Graph,
    /// The jobs by name. Several may share one.
    jobs: SortedMap<String, Vec<usize>>,
    /// What edges lead to. Of replicas, only the first: its edges are those of all.
    dependents: SortedMap<Dependent, usize>,
    /// The other sources. Each event of the supervisor is a node of its own.
    sources: Vec<(Source, Option<Code>, usize)>,
}

impl Graph {
    /// The graph of a plan, without the built-in job of telemetry.
    #[must_use]
    pub fn of(plan: &Plan, scope: Scope) -> Self {
        let mut builder = Builder {
            graph: Self::default(),
            jobs: SortedMap::new(),
            dependents: SortedMap::new(),
            sources: Vec::new(),
        };
        for (nth, job) in plan.jobs.iter().enumerate() {
            let kind = match job.role {
                Role::Telemetry => continue,
                Role::Sensor(_) if scope == Scope::Configuration => continue,
                Role::Coprocess => NodeKind::Coprocess,
                Role::User | Role::Main | Role::Sensor(_) => NodeKind::Job,
            };
            // All replicas of a job are one node, which has the names of all of them.
            let group = job.replica.as_ref().map(|replica| &replica.group);
            let first = job.replica.as_ref().filter(|replica| replica.number > 1);
            let known = first.and_then(|replica| builder.jobs.get(&replica.group)?.first().copied());
            let ix = JobIx::at(nth);
            let at = known.unwrap_or_else(|| {
                let at = builder.node(kind, group.unwrap_or(&job.name));
                if let Some(group) = group {
                    builder.jobs.get_or_insert(group.clone(), Vec::new()).push(at);
                }
                builder.dependents.insert(Dependent::Job(ix), at);
                at
            });
            builder.member(at, Origin::Job(ix));
            builder.jobs.get_or_insert(job.name.clone(), Vec::new()).push(at);
        }
        for (nth, watch) in plan.watches.iter().enumerate() {
            let (ix, source) = (WatchIx::at(nth), Source::Watch(watch.name.clone()));
            let at = builder.source(source, NodeKind::Watch);
            builder.member(at, Origin::Watch(ix));
            builder.dependents.insert(Dependent::Watch(ix), at);
        }
        for (nth, lock) in plan.locks.iter().enumerate() {
            let at = builder.source(Source::Lock(lock.name.clone()), NodeKind::Lock);
            builder.member(at, Origin::Lock(LockIx::at(nth)));
        }
        for (nth, file) in plan.files.iter().enumerate() {
            let (ix, source) = (FileIx::at(nth), Source::File(file.name.clone()));
            let at = builder.source(source, NodeKind::File);
            builder.member(at, Origin::File(ix));
            builder.dependents.insert(Dependent::File(ix), at);
        }
        let mut dependencies = plan.dependencies();
        dependencies.retain(|edge| scope == Scope::Configuration || !is_startup(edge));
        // The edges of files come first, then those of each job.
        sort_by(&mut dependencies, |one, other| job_of(one).cmp(&job_of(other)));
        for together in dependencies.chunk_by(are_together) {
            match together {
                [only] => builder.dependency(only),
                conditions => builder.all(conditions),
            }
        }
        builder.graph
    }
}

fn is_startup(edge: &DependencyEdge) -> bool {
    edge.source == Source::Global
        && matches!(
            edge.kind,
            DependencyKind::Event { code: Code::Startup, with_others: false, .. }
                | DependencyKind::Interval(_)
        )
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

impl Builder {
    fn node(&mut self, kind: NodeKind, name: &str) -> usize {
        self.graph.nodes.push(Node { kind, name: name.to_owned(), members: Vec::new() });
        self.graph.nodes.len() - 1
    }

    fn member(&mut self, at: usize, member: Origin) {
        if let Some(node) = self.graph.nodes.get_mut(at) {
            node.members.push(member);
        }
    }

    fn edge(&mut self, from: usize, to: usize, label: &str, line: LineStyle) {
        self.graph.edges.push(Edge { from, to, label: label.to_owned(), line });
    }

    /// Adds the edges of a dependency.
    fn dependency(&mut self, dependency: &DependencyEdge) {
        let source = &dependency.source;
        let to = self.dependents.get(&dependency.dependent).copied();
        let job_at = |job| Dependent::Job(job);
        match (dependency.kind, to) {
            (DependencyKind::Event { code, repeat, .. }, Some(to)) => self.event(to, source, code, repeat),
            (DependencyKind::Interval(every), Some(to)) => {
                let startup = self.global(Code::Startup);
                self.edge(startup, to, &format!("every {}", exact(every)), LineStyle::Each);
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
                if let Some(from) = self.dependents.get(&job_at(job)).copied() {
                    self.edge(from, to, "advertised", LineStyle::Effect);
                }
            }
            (DependencyKind::ShutDown { job, failed }, _) => {
                if let Some(from) = self.dependents.get(&job_at(job)).copied() {
                    let shutdown = self.global(Code::Shutdown);
                    let label = if failed { "fails" } else { "succeeds" };
                    self.edge(from, shutdown, label, LineStyle::Effect);
                }
            }
            (_, None) => {}
        }
    }

    /// Adds the edges of several conditions that start a job together, by way of a node of their own.
    fn all(&mut self, conditions: &[DependencyEdge]) {
        let Some(first) = conditions.first() else { return };
        let Some(to) = self.dependents.get(&first.dependent).copied() else { return };
        let all = self.node(NodeKind::All, "");
        for condition in conditions {
            if let DependencyKind::Event { code, .. } = condition.kind {
                self.event(all, &condition.source, code, Repeat::Once);
            }
        }
        match first.kind {
            DependencyKind::Event { repeat: Repeat::Each, .. } => {
                self.edge(all, to, "each time", LineStyle::Each);
            }
            _ => self.edge(all, to, "", LineStyle::Once),
        }
    }

    /// Adds the edges of an event.
    fn event(&mut self, to: usize, source: &Source, code: Code, repeat: Repeat) {
        let (each, line) =
            if repeat == Repeat::Once { ("", LineStyle::Once) } else { ("each ", LineStyle::Each) };
        match source {
            Source::Global => {
                // The node has the name of the event.
                let from = self.global(code);
                self.edge(from, to, each.trim_end(), line);
            }
            Source::Signal(_) => {
                let from = self.source(source.clone(), NodeKind::Event);
                self.edge(from, to, "", line);
            }
            Source::Job(_) | Source::Watch(_) | Source::File(_) | Source::Lock(_) => {
                let name = source.to_string();
                let node = self.nodes_of(source).first().and_then(|at| self.graph.nodes.get(*at));
                // The edge of a single replica has the name of the replica.
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
            self.edge(from, to, label, line);
        }
    }

    /// The nodes of a source. Several jobs may share a name.
    fn nodes_of(&mut self, source: &Source) -> Vec<usize> {
        let jobs = match source {
            Source::Job(name) => self.jobs.get(name).cloned(),
            _ => None,
        };
        jobs.unwrap_or_else(|| vec![self.source(source.clone(), NodeKind::Missing)])
    }

    fn global(&mut self, code: Code) -> usize {
        self.source_of(Source::Global, Some(code), NodeKind::Event)
    }

    fn source(&mut self, source: Source, kind: NodeKind) -> usize {
        self.source_of(source, None, kind)
    }

    /// Returns the node of a source, and adds one of `kind` if there is none.
    fn source_of(&mut self, source: Source, code: Option<Code>, kind: NodeKind) -> usize {
        let mut known = self.sources.iter();
        if let Some((.., at)) = known.find(|(other, of, _)| *other == source && *of == code) {
            return *at;
        }
        let name = code.map_or_else(|| source.to_string(), |code| code.name().to_owned());
        let at = self.node(kind, &name);
        self.sources.push((source, code, at));
        at
    }
}
