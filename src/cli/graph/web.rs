//! What can start what: the boxes and arrows of a plan, whatever they are drawn with.

use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, Job, OnCompletion, Plan, Repeat, Restarts, Role, Trigger};
use std::collections::BTreeMap;

use super::super::summary;

/// A box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The name in it; empty for the sign that several arrows are needed.
    pub(super) name: String,
    /// A second, smaller line; often empty.
    pub(super) note: String,
}

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    Coprocess,
    Watch,
    /// An event of the supervisor itself, or a signal to it.
    Event,
    /// All arrows that lead here must have been gone.
    All,
    /// A source that the plan does not have.
    Missing,
}

/// An arrow, from box to box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: String,
    pub(super) line: Line,
}

/// How an arrow is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It starts something, once.
    Once,
    /// It starts something, each time.
    Each,
    /// It starts nothing, but has an effect.
    Effect,
}

/// Boxes and arrows.
#[derive(Debug, Default)]
pub(super) struct Web {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// The web while it is made, with the boxes that are found by name.
struct Maker<'a> {
    web: Web,
    jobs: BTreeMap<&'a str, Vec<usize>>,
    /// Everything else that sends events; of the supervisor's own, each is a box of its own.
    sources: BTreeMap<(Source, Option<Code>), usize>,
}

impl Web {
    /// The web of a plan. The telemetry server's own job is left out: nobody wrote it, and it waits for nothing.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut maker = Maker { web: Self::default(), jobs: BTreeMap::new(), sources: BTreeMap::new() };
        let jobs: Vec<&Job> =
            plan.jobs.iter().filter(|job| !matches!(job.role, Role::Telemetry | Role::Sensor(_))).collect();
        for job in &jobs {
            let kind = if job.role == Role::Coprocess { Kind::Coprocess } else { Kind::Job };
            let at = maker.node(kind, &job.name, note(job));
            maker.jobs.entry(&job.name).or_default().push(at);
        }
        for watch in &plan.watches {
            let note = watch.tag.as_ref().map_or_else(String::new, |tag| format!("with tag {tag}"));
            let source = Source::Watch(watch.name.clone());
            let at = maker.node(Kind::Watch, &source.to_string(), note);
            maker.sources.insert((source, None), at);
        }
        for (to, job) in jobs.iter().enumerate() {
            maker.trigger(to, &job.when.trigger);
            maker.ends(to, job);
            maker.service(to, job);
        }
        maker.web
    }
}

impl Maker<'_> {
    fn node(&mut self, kind: Kind, name: &str, note: String) -> usize {
        self.web.nodes.push(Node { kind, name: name.to_owned(), note });
        self.web.nodes.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize, label: String, line: Line) {
        self.web.edges.push(Edge { from, to, label, line });
    }

    /// The arrows that start a job.
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
            Trigger::Interval(interval) => {
                let startup = self.global(Code::Startup);
                self.edge(startup, to, format!("every {}", summary::time(*interval)), Line::Each);
            }
            Trigger::Never => {}
        }
    }

    /// The arrows from whatever sends an event. Several jobs may have one name.
    fn arrows(&mut self, to: usize, event: &EventPattern, repeat: Repeat) {
        let each = if repeat == Repeat::Each { "each " } else { "" };
        let (from, label) = match &event.source {
            // The box says it already.
            Source::Global => (vec![self.global(event.code)], each.trim_end().to_owned()),
            source @ Source::Signal(_) => (vec![self.source(source, Kind::Event)], String::new()),
            source @ Source::Watch(_) => {
                (vec![self.source(source, Kind::Missing)], format!("{each}{}", event.code))
            }
            source @ Source::Job(name) => {
                let jobs = match self.jobs.get(name.as_str()) {
                    Some(jobs) => jobs.clone(),
                    None => vec![self.source(source, Kind::Missing)],
                };
                (jobs, format!("{each}{}", event.code))
            }
        };
        for from in from {
            self.edge(from, to, label.clone(), line(repeat));
        }
    }

    /// What a job's end does to all the others.
    fn ends(&mut self, from: usize, job: &Job) {
        let ends = [(job.on_failure, "fails for good"), (job.on_success, "succeeds")];
        for (_, label) in ends.into_iter().filter(|(end, _)| *end == OnCompletion::Shutdown) {
            let shutdown = self.global(Code::Shutdown);
            self.edge(from, shutdown, label.to_owned(), Line::Effect);
        }
    }

    /// A job that is advertised under the name that a watch follows.
    fn service(&mut self, from: usize, job: &Job) {
        let watch = job
            .service
            .as_ref()
            .and_then(|service| self.sources.get(&(Source::Watch(service.name.clone()), None)).copied());
        if let Some(watch) = watch {
            self.edge(from, watch, "advertised".to_owned(), Line::Effect);
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

    /// The box of a source; one of this kind if it is not there yet.
    fn source(&mut self, source: &Source, kind: Kind) -> usize {
        let key = (source.clone(), None);
        if let Some(known) = self.sources.get(&key) {
            return *known;
        }
        let note = match (kind, source) {
            (Kind::Missing, Source::Watch(_)) => "there is no such watch",
            (Kind::Missing, _) => "there is no such job",
            _ => "",
        };
        let at = self.node(kind, &source.to_string(), note.to_owned());
        self.sources.insert(key, at);
        at
    }
}

fn line(repeat: Repeat) -> Line {
    if repeat == Repeat::Each { Line::Each } else { Line::Once }
}

/// What matters for how a job goes on, in a few words.
fn note(job: &Job) -> String {
    let mut words = Vec::new();
    match (&job.when.trigger, job.restarts) {
        (Trigger::Never, _) => words.push("never started".to_owned()),
        // Its arrow says so.
        (Trigger::Interval(_), Restarts::Unlimited) => {}
        (_, other) => words.push(restarts(other)),
    }
    if job.exec.is_none() {
        words.push("runs elsewhere".to_owned());
    }
    if let Some(service) = &job.service {
        words.push(format!("port {}", service.port));
    } else if job.health.is_some() {
        words.push("checked".to_owned());
    }
    words.retain(|word| !word.is_empty());
    words.join(", ")
}

fn restarts(restarts: Restarts) -> String {
    match restarts {
        Restarts::Limited(0) => String::new(),
        other => summary::restarts(other),
    }
}
