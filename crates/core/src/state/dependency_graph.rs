//! The web of a plan: who waits for whom. It is woven once, and what happens does not change it.

use alloc::vec;
use alloc::vec::Vec;

use crate::event::{Code, Source, UserSignal};
use crate::ids::{JobIx, WatchIx};
use crate::plan::{Catalog, EventPattern, Job, Plan, Trigger, Watch};
use crate::state::journal::Origin;
use alloc::collections::{BTreeMap, BTreeSet};

/// Where an event that is waited for comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Global,
    /// The jobs of one name.
    Name(u32),
    Watch(WatchIx),
    Signal(u8),
    /// Nobody has this name.
    Nobody,
}

/// A job that waits for an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    pub(crate) job: JobIx,
    /// Which condition of `all` or `any` it is.
    pub(crate) condition: usize,
    /// Whether the event makes that condition untrue (W12: `healthy` is true while healthy).
    pub(crate) undoes: bool,
}

/// Who waits for whom.
#[derive(Debug)]
pub(crate) struct DependencyGraph {
    /// For each job, the number of its name.
    names: Vec<u32>,
    /// For each name, the jobs of that name.
    jobs_named: Vec<Vec<JobIx>>,
    /// For each job, where the events that it waits for come from, in the order of its patterns.
    keys: Vec<Vec<Key>>,
    subscriptions: BTreeMap<(Key, Code), Vec<Subscription>>,
    /// For each name, the jobs that wait for any of its events.
    dependents: Vec<Vec<JobIx>>,
    /// For each name, the jobs that run at its `stopping` (S2).
    hooks: Vec<Vec<JobIx>>,
    /// For each watch of the embedded catalog, the jobs whose services it sees; of Consul nobody knows who is there.
    pub(crate) advertisers: Option<Vec<Vec<JobIx>>>,
    /// For each watch, the jobs that wait for its events.
    pub(crate) watchers: Vec<Vec<JobIx>>,
    /// For each job, whether it holds the supervisor open (W10).
    pub(crate) holders: Vec<bool>,
}

impl DependencyGraph {
    pub(crate) fn new(plan: &Plan) -> Self {
        // The first job of each name.
        let firsts: BTreeMap<&str, usize> =
            plan.jobs.iter().enumerate().rev().map(|(nth, job)| (job.name.as_str(), nth)).collect();
        let mut names: Vec<u32> = Vec::with_capacity(plan.jobs.len());
        let mut jobs_named: Vec<Vec<JobIx>> = Vec::new();
        for (nth, job) in plan.jobs.iter().enumerate() {
            let next = u32::try_from(jobs_named.len()).unwrap_or(u32::MAX);
            let first = firsts.get(job.name.as_str()).and_then(|first| names.get(*first));
            let id = first.copied().unwrap_or(next);
            names.push(id);
            if id as usize == jobs_named.len() {
                jobs_named.push(Vec::new());
            }
            add(&mut jobs_named, id as usize, JobIx::at(nth));
        }
        let watches = plan.watches.iter().enumerate();
        let watch_ids: BTreeMap<&str, WatchIx> =
            watches.map(|(nth, watch)| (watch.name.as_str(), WatchIx::at(nth))).collect();
        let key = |event: &EventPattern| match &event.source {
            Source::Global => Key::Global,
            Source::Job(name) => {
                let id = firsts.get(name.as_str()).and_then(|first| names.get(*first));
                id.map_or(Key::Nobody, |id| Key::Name(*id))
            }
            Source::Watch(name) => watch_ids.get(name.as_str()).map_or(Key::Nobody, |id| Key::Watch(*id)),
            Source::Signal(UserSignal::Hup) => Key::Signal(1),
            Source::Signal(UserSignal::Usr2) => Key::Signal(12),
        };
        let works: Vec<bool> = plan.jobs.iter().map(does_work).collect();
        let mut graph = Self {
            keys: plan.jobs.iter().map(|job| job.when.patterns().iter().map(key).collect()).collect(),
            subscriptions: BTreeMap::new(),
            dependents: vec![Vec::new(); jobs_named.len()],
            hooks: vec![Vec::new(); jobs_named.len()],
            advertisers: advertisers(plan),
            watchers: vec![Vec::new(); plan.watches.len()],
            // Where nobody does work, whoever there is holds the supervisor open (W10).
            holders: if works.contains(&true) { works } else { vec![true; plan.jobs.len()] },
            names,
            jobs_named,
        };
        let (mut beginning, mut undoing) = (Vec::new(), Vec::new());
        for (nth, job) in plan.jobs.iter().enumerate() {
            graph.subscribe(JobIx::at(nth), job, &mut beginning, &mut undoing);
        }
        // What comes to an end with an event does so before anything begins with it.
        graph.subscriptions = crate::grouped(undoing.into_iter().rev().chain(beginning));
        graph
    }

    fn subscribe(
        &mut self,
        job: JobIx,
        planned: &Job,
        beginning: &mut Vec<((Key, Code), Subscription)>,
        undoing: &mut Vec<((Key, Code), Subscription)>,
    ) {
        let lasting = matches!(planned.when.trigger, Trigger::All { .. });
        let keys = self.keys(job).to_vec();
        let mut named = BTreeSet::new();
        for (condition, (event, key)) in planned.when.patterns().iter().zip(keys).enumerate() {
            let subscription = Subscription { job, condition, undoes: false };
            // Whoever names an event twice still runs once for it; a condition of `all` is each its own.
            if lasting || named.insert((key, event.code)) {
                beginning.push(((key, event.code), subscription));
            }
            if lasting && event.code == Code::Healthy {
                undoing.push(((key, Code::Unhealthy), Subscription { undoes: true, ..subscription }));
            }
            match key {
                Key::Name(id) => {
                    add(&mut self.dependents, id as usize, job);
                    if event.code == Code::Stopping {
                        add(&mut self.hooks, id as usize, job);
                    }
                }
                Key::Watch(watch) => add(&mut self.watchers, watch.index(), job),
                Key::Global | Key::Signal(_) | Key::Nobody => {}
            }
        }
    }

    /// Where an event comes from, as those who wait for it know it.
    pub(crate) fn key_of(&self, origin: Origin) -> Key {
        match origin {
            Origin::Global => Key::Global,
            Origin::Job(job) => Key::Name(self.name(job)),
            Origin::Watch(watch) => Key::Watch(watch),
            Origin::Signal(number) => Key::Signal(number),
            Origin::Former(_) => Key::Nobody,
        }
    }

    /// Who waits for an event.
    pub(crate) fn subscribers(&self, key: Key, code: Code) -> &[Subscription] {
        self.subscriptions.get(&(key, code)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The number of a job's name.
    pub(crate) fn name(&self, job: JobIx) -> u32 {
        self.names.get(job.index()).copied().unwrap_or(u32::MAX)
    }

    /// The jobs of one name.
    pub(crate) fn jobs_named(&self, name: u32) -> &[JobIx] {
        list(&self.jobs_named, name as usize)
    }

    /// Where the events that a job waits for come from, in the order of its patterns.
    pub(crate) fn keys(&self, job: JobIx) -> &[Key] {
        self.keys.get(job.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The jobs that wait for any event of this one.
    pub(crate) fn dependents(&self, job: JobIx) -> &[JobIx] {
        list(&self.dependents, self.name(job) as usize)
    }

    /// The jobs that run at the `stopping` of this one (S2).
    pub(crate) fn hooks(&self, job: JobIx) -> &[JobIx] {
        list(&self.hooks, self.name(job) as usize)
    }

    /// Whether a job holds the supervisor open as long as it is not complete.
    pub(crate) fn holds_open(&self, job: JobIx) -> bool {
        self.holders.get(job.index()).copied().unwrap_or(false)
    }

    /// The jobs that can send the nth event that a job waits for.
    pub(crate) fn jobs_behind(&self, job: JobIx, nth: usize) -> &[JobIx] {
        match self.keys(job).get(nth) {
            Some(Key::Name(id)) => self.jobs_named(*id),
            _ => &[],
        }
    }

    /// Who sends the nth event that a job waits for; nobody if nobody has that name.
    pub(crate) fn origin_behind(&self, job: JobIx, nth: usize) -> Option<Origin> {
        match self.keys(job).get(nth)? {
            Key::Global => Some(Origin::Global),
            Key::Name(id) => self.jobs_named(*id).first().map(|job| Origin::Job(*job)),
            Key::Watch(watch) => Some(Origin::Watch(*watch)),
            Key::Signal(number) => Some(Origin::Signal(*number)),
            Key::Nobody => None,
        }
    }
}

fn list(lists: &[Vec<JobIx>], nth: usize) -> &[JobIx] {
    lists.get(nth).map(Vec::as_slice).unwrap_or_default()
}

/// Adds a job to a list, once: jobs come in their order.
fn add(lists: &mut [Vec<JobIx>], nth: usize, job: JobIx) {
    if let Some(list) = lists.get_mut(nth)
        && list.last() != Some(&job)
    {
        list.push(job);
    }
}

/// For each watch of the embedded catalog, the jobs whose services it sees (D2).
fn advertisers(plan: &Plan) -> Option<Vec<Vec<JobIx>>> {
    if plan.catalog != Catalog::Embedded {
        return None;
    }
    let of = |watch: &Watch| {
        let sees = |job: &Job| job.service.as_ref().is_some_and(|service| watch.sees(service));
        plan.jobs.iter().enumerate().filter(|(_, job)| sees(job)).map(|(nth, _)| JobIx::at(nth)).collect()
    };
    Some(plan.watches.iter().map(of).collect())
}

/// Whether a job does work of its own, and does not only react to signals, maintenance or an end (W10).
pub(crate) fn does_work(job: &Job) -> bool {
    let reacts = |event: &EventPattern| {
        matches!(event.source, Source::Signal(_))
            || is_stop_event(event.code)
            || matches!(event.code, Code::EnterMaintenance | Code::ExitMaintenance)
    };
    let patterns = job.when.patterns();
    !job.role.is_secondary() && (patterns.is_empty() || !patterns.iter().all(reacts))
}

/// Whether an event belongs to the end of something, so that jobs triggered by it still run during a shutdown (S3).
pub(crate) fn is_stop_event(code: Code) -> bool {
    matches!(code, Code::Stopping | Code::Stopped | Code::Shutdown)
}
