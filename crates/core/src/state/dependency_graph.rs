//! The dependency graph of a plan: which job waits for which events. Built once per plan and never changed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::event::{Code, Source};
use crate::ids::{FileIx, JobIx, LockIx, WatchIx};
use crate::inserted;
use crate::plan::{Action, Catalog, EventPattern, Job, Plan, Repeat, RequiredSource, Role, Signal, Watch};
use crate::state::journal::Origin;

/// The source of an event that a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SourceKey {
    Global,
    /// All jobs with this name, or all replicas of the job with this name (W20).
    Name(NameId),
    Watch(WatchIx),
    File(FileIx),
    Lock(LockIx),
    Signal(Signal),
    /// No job, watch or file has this name.
    Unknown,
}

/// The name of a job, or of a job with replicas, numbered. Several jobs may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameId(usize);

/// A job that waits for an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription {
    pub(crate) job: JobIx,
    /// The index of the condition in `all` or `any`.
    pub(crate) condition: usize,
    /// True if the event makes the condition false (W12: `healthy` holds while the source is healthy).
    pub(crate) clears: bool,
}

/// Which job waits for which events.
#[derive(Debug, Default)]
pub(crate) struct DependencyGraph {
    /// For each job, its name.
    names: Vec<NameId>,
    /// For each job that is a replica, the name of its group (W20).
    groups: BTreeMap<JobIx, NameId>,
    /// For each name, its jobs.
    jobs_named: Vec<Vec<JobIx>>,
    /// For each job, the sources of its patterns, in their order.
    keys: Vec<Vec<SourceKey>>,
    subscriptions: BTreeMap<(SourceKey, Code), Vec<Subscription>>,
    /// For each name, the jobs that wait for any of its events.
    dependents: Vec<Vec<JobIx>>,
    /// For each name, the jobs that run at every one of its events other than stop events (W14). If a job has an
    /// action, all jobs that may run because of it: an action can start again what a job waits for, also for a job that
    /// runs once.
    followers: Vec<Vec<JobIx>>,
    /// The jobs whose actions enter, and those whose actions leave maintenance mode (W19).
    maintainers: [Vec<JobIx>; 2],
    /// For each job, the targets of its action, without itself (W19). Empty if no job has an action.
    targets: Vec<Vec<JobIx>>,
    /// For each job, the jobs whose actions start it (W19). Empty if no job has an action.
    starters: Vec<Vec<JobIx>>,
    /// For each name, its stop hooks: the jobs that wait for its `stopping` (S2).
    hooks: Vec<Vec<JobIx>>,
    /// For each watch of a service of the embedded catalog, the jobs with that service. `None` for any other
    /// watch, which may change at any time.
    pub(crate) advertisers: Vec<Option<Vec<JobIx>>>,
    /// For each watch, the jobs that wait for its events.
    pub(crate) watchers: Vec<Vec<JobIx>>,
    /// For each watch, the files that use it (D15).
    watch_files: Vec<Vec<FileIx>>,
    /// For each file, its watches, in their order.
    file_watches: Vec<Vec<WatchIx>>,
    /// For each file, the jobs that wait for its events.
    file_watchers: Vec<Vec<JobIx>>,
    /// For each job, true if the supervisor keeps running until it is complete (W10).
    holds_open: Vec<bool>,
    requirements: Requirements,
    /// For each lock, how long the jobs that require it take to stop, at most.
    lock_stop_times: Vec<Duration>,
}

/// Who requires whom (W18), and the order of stops (S10). The lists are empty if no job requires anything.
#[derive(Debug, Default)]
struct Requirements {
    /// For each job, the sources of its requirements, in their order.
    keys: Vec<Vec<SourceKey>>,
    /// For each name, the jobs that require it.
    of_names: Vec<Vec<JobIx>>,
    /// For each watch, the jobs that require it.
    of_watches: Vec<Vec<JobIx>>,
    /// For each file, the jobs that require it.
    of_files: Vec<Vec<JobIx>>,
    /// For each lock, the jobs that require it.
    of_locks: Vec<Vec<JobIx>>,
    /// For each job, the jobs that end before it stops.
    before: Vec<Vec<JobIx>>,
    /// For each job, the jobs that stop after it has ended.
    after: Vec<Vec<JobIx>>,
}

impl DependencyGraph {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut name_ids: BTreeMap<&str, NameId> = BTreeMap::new();
        let mut names = Vec::with_capacity(plan.jobs.len());
        let mut jobs_named: Vec<Vec<JobIx>> = Vec::new();
        let mut groups = BTreeMap::new();
        for (index, job) in plan.jobs.iter().enumerate() {
            let mut add_to = |name| {
                let id = *name_ids.entry(name).or_insert(NameId(jobs_named.len()));
                if id.0 == jobs_named.len() {
                    jobs_named.push(Vec::new());
                }
                add(&mut jobs_named, id.0, JobIx::at(index));
                id
            };
            names.push(add_to(&job.name));
            if let Some(replica) = &job.replica {
                groups.insert(JobIx::at(index), add_to(&replica.group));
            }
        }
        let watches = plan.watches.iter().enumerate();
        let watch_ids: BTreeMap<&str, WatchIx> =
            inserted(watches.map(|(index, watch)| (watch.name.as_str(), WatchIx::at(index))));
        let files = plan.files.iter().enumerate();
        let file_ids: BTreeMap<&str, FileIx> =
            inserted(files.map(|(index, file)| (file.name.as_str(), FileIx::at(index))));
        let locks = plan.locks.iter().enumerate();
        let lock_ids: BTreeMap<&str, LockIx> =
            inserted(locks.map(|(index, lock)| (lock.name.as_str(), LockIx::at(index))));
        let key = |event: &EventPattern| match &event.source {
            Source::Global => SourceKey::Global,
            Source::Job(name) => {
                name_ids.get(name.as_str()).map_or(SourceKey::Unknown, |id| SourceKey::Name(*id))
            }
            Source::Watch(name) => {
                watch_ids.get(name.as_str()).map_or(SourceKey::Unknown, |id| SourceKey::Watch(*id))
            }
            Source::File(name) => {
                file_ids.get(name.as_str()).map_or(SourceKey::Unknown, |id| SourceKey::File(*id))
            }
            Source::Lock(name) => {
                lock_ids.get(name.as_str()).map_or(SourceKey::Unknown, |id| SourceKey::Lock(*id))
            }
            Source::Signal(signal) => SourceKey::Signal(*signal),
        };
        let mut graph = Self {
            keys: plan.jobs.iter().map(|job| job.when.patterns().iter().map(key).collect()).collect(),
            subscriptions: BTreeMap::new(),
            dependents: vec![Vec::new(); jobs_named.len()],
            followers: vec![Vec::new(); jobs_named.len()],
            maintainers: [const { Vec::new() }; 2],
            targets: Vec::new(),
            starters: Vec::new(),
            hooks: vec![Vec::new(); jobs_named.len()],
            advertisers: advertisers(plan),
            watchers: vec![Vec::new(); plan.watches.len()],
            watch_files: vec![Vec::new(); plan.watches.len()],
            file_watches: Vec::with_capacity(plan.files.len()),
            file_watchers: vec![Vec::new(); plan.files.len()],
            holds_open: plan.jobs_that_hold_open(),
            requirements: Requirements::default(),
            lock_stop_times: Vec::new(),
            names,
            groups,
            jobs_named,
        };
        let (mut setting, mut clearing) = (Vec::new(), Vec::new());
        for (index, job) in plan.jobs.iter().enumerate() {
            graph.subscribe(JobIx::at(index), job, &mut setting, &mut clearing);
        }
        for (index, file) in plan.files.iter().enumerate() {
            let watches = file.watches.iter().filter_map(|name| watch_ids.get(name.as_str()).copied());
            let watches: Vec<WatchIx> = watches.collect();
            for watch in &watches {
                graph.watch_files[watch.index()].push(FileIx::at(index));
            }
            graph.file_watches.push(watches);
        }
        let key = |source: &RequiredSource| match source {
            RequiredSource::Job(name) => name_ids.get(name.as_str()).copied().map(SourceKey::Name),
            RequiredSource::Watch(name) => watch_ids.get(name.as_str()).copied().map(SourceKey::Watch),
            RequiredSource::Lock(name) => lock_ids.get(name.as_str()).copied().map(SourceKey::Lock),
            RequiredSource::File(name) => file_ids.get(name.as_str()).copied().map(SourceKey::File),
        };
        graph.requirements = graph.requirements(plan, key, |name| name_ids.get(name).copied());
        graph.lock_stop_times = plan.lock_stop_times();
        // An event clears conditions before it sets any.
        graph.subscriptions = crate::grouped(clearing.into_iter().rev().chain(setting));
        if plan.jobs.iter().any(|job| job.exec.action().is_some()) {
            graph.add_actions(plan);
        }
        graph
    }

    fn requirements(
        &self,
        plan: &Plan,
        key: impl Fn(&RequiredSource) -> Option<SourceKey>,
        named: impl Fn(&str) -> Option<NameId>,
    ) -> Requirements {
        if plan.jobs.iter().all(|job| job.requires.is_empty() && job.stop_after.is_empty()) {
            return Requirements::default();
        }
        let per_job = || vec![Vec::new(); plan.jobs.len()];
        let mut all = Requirements {
            keys: vec![Vec::new(); plan.jobs.len()],
            of_names: vec![Vec::new(); self.jobs_named.len()],
            of_watches: vec![Vec::new(); plan.watches.len()],
            of_files: vec![Vec::new(); plan.files.len()],
            of_locks: vec![Vec::new(); plan.locks.len()],
            before: per_job(),
            after: per_job(),
        };
        for (index, planned) in plan.jobs.iter().enumerate() {
            let job = JobIx::at(index);
            for requirement in &planned.requires {
                let key = key(&requirement.source);
                match key {
                    Some(SourceKey::Name(id)) => {
                        add(&mut all.of_names, id.0, job);
                        all.order(self.jobs_named(id), &[job]);
                    }
                    Some(SourceKey::Watch(watch)) => add(&mut all.of_watches, watch.index(), job),
                    Some(SourceKey::File(file)) => add(&mut all.of_files, file.index(), job),
                    Some(SourceKey::Lock(lock)) => add(&mut all.of_locks, lock.index(), job),
                    _ => {}
                }
                if let Some(keys) = all.keys.get_mut(index) {
                    keys.push(key.unwrap_or(SourceKey::Unknown));
                }
            }
            for id in planned.stop_after.iter().filter_map(|name| named(name)) {
                all.order(&[job], self.jobs_named(id));
            }
        }
        all
    }

    fn subscribe(
        &mut self,
        job: JobIx,
        planned: &Job,
        setting: &mut Vec<((SourceKey, Code), Subscription)>,
        clearing: &mut Vec<((SourceKey, Code), Subscription)>,
    ) {
        let needs_all = planned.when.needs_all();
        let keys = self.keys(job).to_vec();
        let mut subscribed = BTreeSet::new();
        for (condition, (event, key)) in planned.when.patterns().iter().zip(keys).enumerate() {
            let subscription = Subscription { job, condition, clears: false };
            // An event that `any` lists twice starts the job once. Conditions of `all` are independent.
            if subscribed.insert((key, event.code)) || needs_all {
                setting.push(((key, event.code), subscription));
            }
            if let Some(end) = event.code.ended_by().filter(|_| needs_all) {
                clearing.push(((key, end), Subscription { clears: true, ..subscription }));
            }
            match key {
                SourceKey::Name(id) => {
                    add(&mut self.dependents, id.0, job);
                    if event.code == Code::Stopping {
                        add(&mut self.hooks, id.0, job);
                    }
                    if planned.when.repeat() == Repeat::Each && !event.code.is_stop_event() {
                        add(&mut self.followers, id.0, job);
                    }
                }
                SourceKey::Watch(watch) => add(&mut self.watchers, watch.index(), job),
                SourceKey::File(file) => add(&mut self.file_watchers, file.index(), job),
                SourceKey::Global | SourceKey::Lock(_) | SourceKey::Signal(_) | SourceKey::Unknown => {}
            }
        }
    }

    /// W19: which job acts on which.
    fn add_actions(&mut self, plan: &Plan) {
        self.targets = vec![Vec::new(); plan.jobs.len()];
        self.starters = vec![Vec::new(); plan.jobs.len()];
        self.follow_everything();
        for (index, job) in plan.jobs.iter().enumerate() {
            let Some(action) = job.exec.action() else { continue };
            let name = self.name(JobIx::at(index));
            if let Action::Maintenance(on) = action {
                self.maintainers[usize::from(!on)].push(JobIx::at(index));
                let code = if *on { Code::EnterMaintenance } else { Code::ExitMaintenance };
                let waiting = self.subscribers_of(SourceKey::Global, code).iter().map(|one| one.job);
                // Checks end or begin.
                let checked = plan.jobs.iter().enumerate().filter(|(_, job)| job.health.is_some());
                let affected: Vec<JobIx> = waiting.chain(checked.map(|(nth, _)| JobIx::at(nth))).collect();
                affected.into_iter().for_each(|other| add(&mut self.followers, name.0, other));
            }
            let Some(target) = action.target() else { continue };
            let others = plan.jobs.iter().enumerate().filter(|(nth, _)| *nth != index);
            let targets = others.filter(|(_, other)| other.role != Role::Telemetry && target.includes(other));
            for (nth, _) in targets {
                add(&mut self.targets, index, JobIx::at(nth));
                if action.starts() {
                    add(&mut self.starters, nth, JobIx::at(index));
                }
                if !matches!(action, Action::Signal(..)) {
                    add(&mut self.followers, name.0, JobIx::at(nth));
                }
            }
        }
    }

    /// W14: with actions, a job follows from everything that it waits for or requires.
    fn follow_everything(&mut self) {
        self.followers.clone_from(&self.dependents);
        for (id, requirers) in self.requirements.of_names.iter().enumerate() {
            requirers.iter().for_each(|job| add(&mut self.followers, id, *job));
        }
    }

    /// The jobs whose actions enter or leave maintenance mode.
    pub(crate) fn maintainers(&self, on: bool) -> &[JobIx] {
        &self.maintainers[usize::from(!on)]
    }

    /// The targets of a job's action.
    pub(crate) fn targets(&self, job: JobIx) -> &[JobIx] {
        list(&self.targets, job.index())
    }

    /// The jobs whose actions start a job.
    pub(crate) fn starters(&self, job: JobIx) -> &[JobIx] {
        list(&self.starters, job.index())
    }

    /// The key under which jobs wait for events of this source.
    fn key_of(&self, origin: Origin) -> SourceKey {
        match origin {
            Origin::Global => SourceKey::Global,
            Origin::Job(job) => SourceKey::Name(self.name(job)),
            Origin::Watch(watch) => SourceKey::Watch(watch),
            Origin::File(file) => SourceKey::File(file),
            Origin::Lock(lock) => SourceKey::Lock(lock),
            Origin::Signal(signal) => SourceKey::Signal(signal),
            Origin::Removed(_) => SourceKey::Unknown,
        }
    }

    /// The jobs that wait for an event of this source itself.
    pub(crate) fn subscribers(&self, origin: Origin, code: Code) -> &[Subscription] {
        self.subscribers_of(self.key_of(origin), code)
    }

    /// The jobs that wait for an event of the group of a replica (W20).
    pub(crate) fn group_subscribers(&self, origin: Origin, code: Code) -> &[Subscription] {
        let group = self.group_of(origin).map(SourceKey::Name);
        group.map(|group| self.subscribers_of(group, code)).unwrap_or_default()
    }

    fn subscribers_of(&self, key: SourceKey, code: Code) -> &[Subscription] {
        self.subscriptions.get(&(key, code)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The group of a replica (W20).
    pub(crate) fn group_of(&self, origin: Origin) -> Option<NameId> {
        match origin {
            Origin::Job(job) => self.groups.get(&job).copied(),
            _ => None,
        }
    }

    /// Returns true if this is the name of a job with replicas (W20).
    pub(crate) fn is_group(&self, name: NameId) -> bool {
        let first = self.jobs_named(name).first();
        first.is_some_and(|job| self.groups.get(job) == Some(&name))
    }

    /// The name of a job.
    pub(crate) fn name(&self, job: JobIx) -> NameId {
        self.names.get(job.index()).copied().unwrap_or(NameId(usize::MAX))
    }

    pub(crate) fn jobs_named(&self, name: NameId) -> &[JobIx] {
        list(&self.jobs_named, name.0)
    }

    /// The sources of a job's patterns, in their order.
    pub(crate) fn keys(&self, job: JobIx) -> &[SourceKey] {
        self.keys.get(job.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The jobs that wait for any event of this one.
    pub(crate) fn dependents(&self, job: JobIx) -> impl Iterator<Item = JobIx> + '_ {
        self.of_job(&self.dependents, job)
    }

    /// The entries of a list by name: those of a job, and of the group that it is a replica of.
    fn of_job<'a>(&'a self, lists: &'a [Vec<JobIx>], job: JobIx) -> impl Iterator<Item = JobIx> + 'a {
        let of_group = self.groups.get(&job).map(|group| list(lists, group.0)).unwrap_or_default();
        list(lists, self.name(job).0).iter().chain(of_group).copied()
    }

    /// The stop hooks of a job (S2).
    pub(crate) fn hooks(&self, job: JobIx) -> impl Iterator<Item = JobIx> + '_ {
        self.of_job(&self.hooks, job)
    }

    /// Returns true if `to` is `from`, or runs because of it, directly or through other jobs that run at every event.
    pub(crate) fn leads_to(&self, from: JobIx, to: JobIx) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(job) = open.pop() {
            if job == to {
                return true;
            }
            if seen.insert(job) {
                open.extend(self.of_job(&self.followers, job));
            }
        }
        false
    }

    /// Returns true if a job can trigger itself (W14).
    pub(crate) fn is_in_ring(&self, job: JobIx) -> bool {
        self.of_job(&self.followers, job).any(|next| self.leads_to(next, job))
    }

    /// The sources of a job's requirements, in their order.
    pub(crate) fn required(&self, job: JobIx) -> &[SourceKey] {
        self.requirements.keys.get(job.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The jobs that require a job.
    pub(crate) fn requirers(&self, job: JobIx) -> impl Iterator<Item = JobIx> + '_ {
        self.of_job(&self.requirements.of_names, job)
    }

    /// For each watch, the jobs that require it.
    pub(crate) fn watch_requirers(&self) -> &[Vec<JobIx>] {
        &self.requirements.of_watches
    }

    /// For each watch, the files that use it.
    pub(crate) fn watch_files(&self) -> &[Vec<FileIx>] {
        &self.watch_files
    }

    /// The files that use a watch.
    pub(crate) fn files_of_watch(&self, watch: WatchIx) -> &[FileIx] {
        self.watch_files.get(watch.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The watches of a file, in their order.
    pub(crate) fn watches_of_file(&self, file: FileIx) -> &[WatchIx] {
        self.file_watches.get(file.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The jobs that require a file.
    pub(crate) fn file_requirers(&self, file: FileIx) -> &[JobIx] {
        list(&self.requirements.of_files, file.index())
    }

    /// The jobs that wait for events of a file, and those that require it.
    pub(crate) fn jobs_of_file(&self, file: FileIx) -> impl Iterator<Item = &JobIx> {
        list(&self.file_watchers, file.index()).iter().chain(self.file_requirers(file))
    }

    /// The jobs that require a lock.
    pub(crate) fn lock_requirers(&self, lock: LockIx) -> &[JobIx] {
        list(&self.requirements.of_locks, lock.index())
    }

    /// The jobs that require a watch, a file or a lock.
    pub(crate) fn requirers_of(&self, origin: Origin) -> &[JobIx] {
        match origin {
            Origin::Watch(watch) => list(&self.requirements.of_watches, watch.index()),
            Origin::File(file) => self.file_requirers(file),
            Origin::Lock(lock) => self.lock_requirers(lock),
            Origin::Job(_) | Origin::Global | Origin::Signal(_) | Origin::Removed(_) => &[],
        }
    }

    /// How long the jobs that require a lock take to stop, at most.
    pub(crate) fn lock_stop_time(&self, lock: LockIx) -> Duration {
        self.lock_stop_times.get(lock.index()).copied().unwrap_or_default()
    }

    /// The jobs that end before a job stops (S10).
    pub(crate) fn stops_before(&self, job: JobIx) -> &[JobIx] {
        list(&self.requirements.before, job.index())
    }

    /// The jobs that stop after a job has ended (S10).
    pub(crate) fn stops_after(&self, job: JobIx) -> &[JobIx] {
        list(&self.requirements.after, job.index())
    }

    /// Returns true if the supervisor keeps running until the job is complete.
    pub(crate) fn holds_open(&self, job: JobIx) -> bool {
        self.holds_open.get(job.index()).copied().unwrap_or(false)
    }

    /// The jobs that send the event of a job's nth pattern.
    pub(crate) fn jobs_of_pattern(&self, job: JobIx, nth: usize) -> &[JobIx] {
        match self.keys(job).get(nth) {
            Some(SourceKey::Name(id)) => self.jobs_named(*id),
            _ => &[],
        }
    }

    /// The source of a job's nth pattern; of several jobs with one name, the first. `None` if it does not exist.
    pub(crate) fn origin_of_pattern(&self, job: JobIx, nth: usize) -> Option<Origin> {
        match self.keys(job).get(nth)? {
            SourceKey::Global => Some(Origin::Global),
            SourceKey::Name(id) => self.jobs_named(*id).first().map(|job| Origin::Job(*job)),
            SourceKey::Watch(watch) => Some(Origin::Watch(*watch)),
            SourceKey::File(file) => Some(Origin::File(*file)),
            SourceKey::Lock(lock) => Some(Origin::Lock(*lock)),
            SourceKey::Signal(signal) => Some(Origin::Signal(*signal)),
            SourceKey::Unknown => None,
        }
    }
}

impl Requirements {
    /// Has `later` stop after `sooner`.
    fn order(&mut self, later: &[JobIx], sooner: &[JobIx]) {
        for after in later {
            for before in sooner.iter().filter(|before| *before != after) {
                for (lists, at, job) in [(&mut self.before, after, before), (&mut self.after, before, after)]
                {
                    if let Some(list) = lists.get_mut(at.index())
                        && !list.contains(job)
                    {
                        list.push(*job);
                    }
                }
            }
        }
    }
}

fn list(lists: &[Vec<JobIx>], index: usize) -> &[JobIx] {
    lists.get(index).map(Vec::as_slice).unwrap_or_default()
}

/// Adds a job to a list, once. Jobs are added in ascending order.
fn add(lists: &mut [Vec<JobIx>], index: usize, job: JobIx) {
    if let Some(list) = lists.get_mut(index)
        && list.last() != Some(&job)
    {
        list.push(job);
    }
}

/// For each watch of a service of the embedded catalog, the jobs with that service (D2).
fn advertisers(plan: &Plan) -> Vec<Option<Vec<JobIx>>> {
    let of = |watch: &Watch| {
        let jobs = plan.jobs.iter().enumerate().filter(|(_, job)| job.is_seen_by(watch));
        (plan.catalog == Catalog::Embedded && watch.kind.is_in_catalog())
            .then(|| jobs.map(|(index, _)| JobIx::at(index)).collect())
    };
    plan.watches.iter().map(of).collect()
}
