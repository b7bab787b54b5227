//! Service discovery: Consul, or the embedded catalog inside this process (D1–D9).
//!
//! With Consul nothing here blocks: the event loop sets the desired state, tasks on the network thread send requests,
//! and results are sent back as messages to the loop. Each service, each watch and each lock has a task. What to
//! request and when is decided by state machines of the core ([`containerpilot_core::catalog`]).

mod api;
mod client;
mod connectivity_log;
mod embedded;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod key_values;
mod lock_api;
mod locks;
mod services;
#[cfg(test)]
mod tls_tests;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use containerpilot_core::catalog::connectivity::{Known, Trouble};
use containerpilot_core::catalog::watch_queries::QuerySlots;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, LockIx, WatchIx};
use containerpilot_core::inserted;
use containerpilot_core::plan::{Catalog, Consul, ConsulAddress, Job, Lock, Plan, Service, Watch};
use containerpilot_core::{Input, Time};
use containerpilot_process::boot_clock::BootClock;
use containerpilot_views::catalog::{CatalogKnowledge, ConsulReport, DesiredServices};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use self::client::{ConsulClient, ConsulResponse};
use self::connectivity_log::{ConnectivityLog, Failure, FailureKind};
use self::embedded::Embedded;
use self::locks::{LockHandle, LockTask};
use self::services::{Definition, ServiceCommand, ServiceHandle, ServiceTask};
use self::watches::{CONCURRENT_QUERIES, WatchTask};
use crate::messages::LoopSender;

/// Requests about services at the same time.
const CONCURRENT_REQUESTS: usize = 8;
/// Pause before a task starts over after a panic.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// The catalog in which services are registered and watched.
#[derive(Debug)]
pub(crate) struct Discovery {
    settings: Catalog,
    backend: Backend,
    /// The desired state of each service by its id, and since when, for a reload that changes the catalog.
    desired: DesiredServices,
    /// The origin of the core's time.
    clock: BootClock,
    /// The mark of this supervisor in its registrations (D10).
    mark: String,
}

#[derive(Debug)]
enum Backend {
    Embedded(Embedded),
    Consul(Box<ConsulBackend>),
}

impl Discovery {
    /// The catalog of a plan. Consul needs the runtime of the network thread. `clock` has the origin of the core's
    /// time.
    pub(crate) fn new(plan: &Plan, runtime: Option<&Handle>, sender: &LoopSender, clock: BootClock) -> Self {
        let mark = format!("{:016x}", RandomState::new().build_hasher().finish());
        Self {
            settings: plan.catalog.clone(),
            backend: Backend::new(&plan.catalog, runtime, sender, clock, &mark),
            desired: DesiredServices::default(),
            clock,
            mark,
        }
    }

    pub(crate) fn needs_network(plan: &Plan) -> bool {
        matches!(plan.catalog, Catalog::Consul(_))
    }

    /// Whether this is the catalog of the plan.
    pub(crate) fn follows(&self, plan: &Plan) -> bool {
        self.settings == plan.catalog
    }

    /// Applies a plan, at the start or after a reload: follows its watches, and registers the services again if the
    /// catalog has changed. Without the runtime that Consul needs, the catalog stays as it was. Returns inputs that are
    /// known at once.
    pub(crate) fn adopt(&mut self, plan: &Plan, runtime: Option<&Handle>, sender: &LoopSender) -> Vec<Input> {
        let mut inputs = Vec::new();
        let is_possible = runtime.is_some() || !Self::needs_network(plan);
        if is_possible && !self.follows(plan) {
            self.settings = plan.catalog.clone();
            let before = std::mem::replace(
                &mut self.backend,
                Backend::new(&plan.catalog, runtime, sender, self.clock, &self.mark),
            );
            if let Backend::Consul(consul) = before {
                drop(consul.shut_down());
            }
            for (nth, job) in plan.jobs.iter().enumerate() {
                let desired = job.service.as_ref().and_then(|service| self.desired.get(&service.id));
                if let Some(desired @ DesiredService::Present(_)) = desired {
                    inputs.extend(self.backend.advertise(plan, JobIx::at(nth), desired));
                }
            }
        }
        // The task of an absent service continues: its deregistration may not be confirmed yet.
        self.desired.forget_absent();
        match &mut self.backend {
            // At the start the catalog is empty. Only files need that answer (D15).
            Backend::Embedded(_) if self.desired.is_empty() && plan.files.is_empty() => {}
            Backend::Embedded(catalog) => inputs.extend(catalog.inputs(plan)),
            Backend::Consul(consul) => consul.follow(plan),
        }
        inputs
    }

    /// Sets the desired state of a service. Returns inputs that are known at once.
    pub(crate) fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) -> Vec<Input> {
        if let Some(service) = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref()) {
            self.desired.set(&service.id, desired, Some(self.clock.awake()));
        }
        self.backend.advertise(plan, job, desired)
    }

    /// The index of a lock that is followed. A reload may have moved it, removed it, or moved it to another catalog.
    pub(crate) fn lock(&self, plan: &Plan, lock: &Arc<Lock>) -> Option<LockIx> {
        let Backend::Consul(consul) = &self.backend else { return None };
        consul.locks.iter().find(|handle| handle.is_of(lock))?;
        plan.locks.iter().position(|other| *other == **lock).map(LockIx::at)
    }

    /// Releases a lock whose jobs have ended, in a shutdown (D14).
    pub(crate) fn release_lock(&mut self, plan: &Plan, lock: LockIx) {
        let (Backend::Consul(consul), Some(lock)) = (&mut self.backend, plan.locks.get(lock.index())) else {
            return;
        };
        for handle in consul.locks.iter_mut().filter(|handle| handle.lock() == lock) {
            handle.begin_release();
        }
    }

    /// The input for a confirmed deregistration. A reload may have moved the job to another index, or removed it.
    pub(crate) fn deregistered(plan: &Plan, id: &str, job: JobIx) -> Option<Input> {
        let has = |job: &Job| job.service.as_ref().is_some_and(|service| service.id == id);
        let is_same = |ix: &JobIx| plan.jobs.get(ix.index()).is_some_and(has);
        let anywhere = || plan.jobs.iter().position(has).map(JobIx::at);
        let job = Some(job).filter(is_same).or_else(anywhere)?;
        Some(Input::Deregistered { job })
    }

    /// Reports that a service is still healthy (H6).
    pub(crate) fn heartbeat(&mut self, plan: &Plan, job: JobIx) {
        match &mut self.backend {
            // The embedded catalog has no TTL.
            Backend::Embedded(_) => {}
            Backend::Consul(consul) => consul.send(plan, job, ServiceCommand::Heartbeat),
        }
    }

    /// S6: deregisters every service before the process exits.
    pub(crate) fn deregister_all(self) -> Deregistration {
        match self.backend {
            Backend::Embedded(_) => Deregistration(None),
            Backend::Consul(consul) => Deregistration(Some(consul.shut_down())),
        }
    }
}

/// The deregistration of every service. The receiver is disconnected when it is complete.
#[derive(Debug)]
pub(crate) struct Deregistration(Option<mpsc::Receiver<()>>);

impl Deregistration {
    /// Waits until the deadline. Returns true if every service is deregistered.
    pub(crate) fn wait(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        self.0
            .as_ref()
            .is_none_or(|done| done.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Disconnected))
    }
}

impl CatalogKnowledge for Discovery {
    fn consul(&self) -> Option<ConsulReport> {
        let Backend::Consul(consul) = &self.backend else { return None };
        let contact = consul.shared.connectivity.contact();
        let mut trouble = contact.trouble().cloned();
        let lasts = contact.interruption().is_some_and(|interruption| !interruption.is_over);
        if let (Some(trouble), more @ 2.., false) = (&mut trouble, contact.refused().len(), lasts) {
            trouble.error += &format!(" (and {} more)", more - 1);
        }
        Some(ConsulReport { up: contact.is_up(), trouble })
    }

    fn known(&self, service: &Service) -> Option<Known> {
        Some(match &self.backend {
            Backend::Embedded(_) => self.desired.known(service),
            Backend::Consul(consul) => match consul.services.get(&service.id) {
                None => Known::default(),
                Some(task) => {
                    let contact = consul.shared.connectivity.contact();
                    contact.known(consul.shared.now(), task.name(), task.confirmation())
                }
            },
        })
    }

    fn watch_trouble(&self, watch: &str) -> Option<Trouble> {
        let Backend::Consul(consul) = &self.backend else { return None };
        consul.shared.connectivity.contact().trouble_of(&watches::requester(watch)).cloned()
    }

    fn lock_trouble(&self, lock: &str) -> Option<Trouble> {
        let Backend::Consul(consul) = &self.backend else { return None };
        consul.shared.connectivity.contact().trouble_of(&locks::requester(lock)).cloned()
    }
}

impl Backend {
    fn new(
        settings: &Catalog,
        runtime: Option<&Handle>,
        sender: &LoopSender,
        clock: BootClock,
        mark: &str,
    ) -> Self {
        match (settings, runtime) {
            (Catalog::Consul(consul), Some(runtime)) => {
                let consul = ConsulBackend::new(consul, runtime.clone(), sender.clone(), clock, mark);
                Self::Consul(Box::new(consul))
            }
            _ => Self::Embedded(Embedded::default()),
        }
    }

    fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) -> Vec<Input> {
        match self {
            Self::Embedded(catalog) => catalog.advertise(plan, job, desired),
            Self::Consul(consul) => {
                consul.advertise(plan, job, desired);
                Vec::new()
            }
        }
    }
}

/// Shared by all tasks.
#[derive(Debug)]
struct Shared {
    client: ConsulClient,
    connectivity: ConnectivityLog,
    sender: LoopSender,
    request_slots: Semaphore,
    clock: BootClock,
    random: RandomState,
    /// The mark of this supervisor in its registrations (D10).
    mark: String,
}

impl Shared {
    fn now(&self) -> Time {
        self.clock.awake()
    }

    /// A seed for the jitter of a task, different for every task and process.
    fn seed(&self) -> u64 {
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.now().as_nanos());
        hasher.finish()
    }

    /// What an error response means. After a refusal the token file is read again.
    fn failure(&self, response: &ConsulResponse) -> Failure {
        let mut reason = self.client.describe(response);
        let refused = (400..500).contains(&response.status) && response.status != 429;
        if matches!(response.status, 401 | 403) {
            reason = format!("{reason} ({})", self.client.describe_token());
            if let Err(error) = self.client.reload_token() {
                reason = format!("{reason}; the token file: {error}");
            }
        }
        let kind = if refused { FailureKind::Refused } else { FailureKind::Unavailable };
        Failure { kind, reason }
    }
}

/// The event loop's part of a Consul agent.
#[derive(Debug)]
struct ConsulBackend {
    shared: Arc<Shared>,
    runtime: Handle,
    /// The tasks of services by service id. A reload does not change ids.
    services: BTreeMap<String, ServiceHandle>,
    watches: Vec<(Followed, AbortHandle)>,
    locks: Vec<LockHandle>,
}

/// A watch that is followed. If any of this changes, its task is replaced.
#[derive(Clone, Debug, PartialEq)]
struct Followed {
    watch: Watch,
    ix: WatchIx,
    slots: QuerySlots,
}

impl ConsulBackend {
    fn new(consul: &Consul, runtime: Handle, sender: LoopSender, clock: BootClock, mark: &str) -> Self {
        let address = match &consul.address {
            ConsulAddress::Network(address) => address.clone(),
            ConsulAddress::Unix(path) => format!("unix://{path}"),
        };
        let shared = Shared {
            client: ConsulClient::new(consul),
            connectivity: ConnectivityLog::new(address, sender.clone()),
            sender,
            request_slots: Semaphore::new(CONCURRENT_REQUESTS),
            clock,
            random: RandomState::new(),
            mark: mark.to_owned(),
        };
        Self {
            shared: Arc::new(shared),
            runtime,
            services: BTreeMap::new(),
            watches: Vec::new(),
            locks: Vec::new(),
        }
    }

    fn follow(&mut self, plan: &Plan) {
        self.follow_locks(plan);
        let services = plan.jobs.iter().filter_map(|job| job.service.as_ref());
        let ids: BTreeSet<&str> = inserted(services.map(|service| service.id.as_str()));
        // The task of a service that is not deregistered yet is kept until a later reload: if its id comes back, the
        // same task must register it.
        self.services.retain(|id, task| ids.contains(id.as_str()) || !task.is_gone());
        let watches = plan.watches.iter().filter(|watch| watch.kind.is_in_catalog()).count();
        let watches = u32::try_from(watches).unwrap_or(u32::MAX);
        let slots = QuerySlots { slots: CONCURRENT_QUERIES, watches };
        let desired = plan.watches.iter().enumerate().filter(|(_, watch)| watch.kind.is_in_catalog());
        let desired: Vec<Followed> = desired
            .map(|(nth, watch)| Followed { watch: watch.clone(), ix: WatchIx::at(nth), slots })
            .collect();
        let (kept, removed): (Vec<_>, Vec<_>) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition(|(followed, _)| desired.contains(followed));
        self.watches = kept;
        for (followed, task) in removed {
            task.abort();
            self.shared.connectivity.forget(&watches::requester(&followed.watch.name));
        }
        let query_slots = Arc::new(Semaphore::new(CONCURRENT_QUERIES as usize));
        for followed in desired {
            if self.watches.iter().any(|(other, _)| *other == followed) {
                continue;
            }
            let task = WatchTask {
                shared: Arc::clone(&self.shared),
                watch: Arc::new(followed.watch.clone()),
                ix: followed.ix,
                query_slots: Arc::clone(&query_slots),
                slots,
            };
            let task = self.runtime.spawn(task.run()).abort_handle();
            self.watches.push((followed, task));
        }
    }

    fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) {
        let Some(definition) = plan.jobs.get(job.index()).and_then(Definition::of) else { return };
        let id = definition.service.id.clone();
        let definition = Arc::new(definition);
        if !self.services.contains_key(&id) {
            let shared = Arc::clone(&self.shared);
            let task = ServiceTask::start(&self.runtime, shared, job, Arc::clone(&definition));
            self.services.insert(id, task);
        }
        self.send(plan, job, ServiceCommand::SetDesired(job, desired, definition));
    }

    fn send(&self, plan: &Plan, job: JobIx, command: ServiceCommand) {
        let service = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref());
        if let Some(task) = service.and_then(|service| self.services.get(&service.id)) {
            task.send(command);
        }
    }

    /// D14: releases the locks that the plan does not have, and follows the others. The jobs that required them have
    /// ended.
    fn follow_locks(&mut self, plan: &Plan) {
        self.locks.retain(|handle| plan.locks.contains(handle.lock()));
        for (lock, stop_time) in plan.locks.iter().zip(plan.lock_stop_times()) {
            if let Some(handle) = self.locks.iter().find(|handle| handle.lock() == lock) {
                handle.set_stop_time(stop_time);
            } else {
                let shared = Arc::clone(&self.shared);
                self.locks.push(LockTask::start(&self.runtime, shared, lock, stop_time));
            }
        }
    }

    /// Deregisters every service and stops all tasks. The receiver is disconnected when that is done.
    fn shut_down(self) -> mpsc::Receiver<()> {
        for (_, task) in &self.watches {
            task.abort();
        }
        let (deregistered, done) = mpsc::channel();
        for task in self.services.values() {
            task.send(ServiceCommand::Deregister(deregistered.clone()));
        }
        for lock in &self.locks {
            lock.release(deregistered.clone());
        }
        done
    }
}
