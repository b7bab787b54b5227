//! The catalog: Consul, or the one inside this process (D1–D9). Both are told the same and answer the same.
//!
//! With Consul, nothing here ever waits: the loop says what is desired, tasks on the network's thread make it so, and
//! what they find out comes back through the receiver. Each service and each watch has a task, and each task a machine of
//! the core's that decides what to ask and when ([`containerpilot_core::catalog::reconcile`]); the tasks only ask.

mod ciphers;
mod client;
mod connectivity_log;
mod dial;
mod embedded;
mod services;
mod tls;
mod watches;
mod wire;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use containerpilot_core::catalog::contact::RequestResult;
use containerpilot_core::catalog::follow::QuerySlots;
use containerpilot_core::effect::DesiredService;
use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Catalog, Consul, ConsulAddress, Job, Plan, Watch};
use containerpilot_core::{Input, Time};
use std::collections::BTreeMap;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use self::client::{Answer, Client};
use self::connectivity_log::{Failure, Voice};
use self::embedded::Embedded;
use self::services::{Definition, Keeper, Order};
use self::watches::{PLACES, Watcher};
use crate::net::begin_on;
use crate::runtime::channel::LoopSender;

/// How many requests for services are under way at the same time.
const SERVICE_PLACES: usize = 8;
/// The most that is read of a file of certificates; a system's own bundle is a quarter of a megabyte.
const MOST_FILE: u64 = 8 * 1024 * 1024;
/// After a fault of ours, how long a task waits before it begins anew.
const RECOVERY: Duration = Duration::from_secs(1);
/// How long the end of everything waits at most for Consul, however long the stop time is.
const LAST_CALL: Duration = Duration::from_secs(1);

/// Where services are registered and looked up.
#[derive(Debug)]
pub(crate) struct Discovery {
    settings: Catalog,
    arm: Arm,
    /// What is desired of each service, by its id: another catalog has to be told, too.
    desired: BTreeMap<String, DesiredService>,
}

#[derive(Debug)]
enum Arm {
    /// Inside this process.
    Embedded(Embedded),
    /// A Consul agent.
    Consul(Box<Agent>),
}

impl Discovery {
    /// A catalog for a plan; `tasks` are those of the network's thread, and needed for Consul only.
    pub(crate) fn new(plan: &Plan, tasks: Option<&Handle>, sender: &LoopSender) -> Self {
        Self {
            settings: plan.catalog.clone(),
            arm: Arm::new(&plan.catalog, tasks, sender),
            desired: BTreeMap::new(),
        }
    }

    /// Whether a plan needs the network for its catalog.
    pub(crate) fn needs_network(plan: &Plan) -> bool {
        matches!(plan.catalog, Catalog::Consul(_))
    }

    /// Takes a plan over, the first or another one: follows its watches (those that have not changed are left alone), and
    /// moves what is desired into its catalog, if that is another one. What is known at once comes back at once.
    pub(crate) fn adopt(&mut self, plan: &Plan, tasks: Option<&Handle>, sender: &LoopSender) -> Vec<Input> {
        let mut answers = Vec::new();
        if self.settings != plan.catalog {
            self.settings = plan.catalog.clone();
            let before = std::mem::replace(&mut self.arm, Arm::new(&plan.catalog, tasks, sender));
            if let Arm::Consul(agent) = before {
                drop(agent.retire());
            }
            for (nth, job) in plan.jobs.iter().enumerate() {
                let desired = job.service.as_ref().and_then(|service| self.desired.get(&service.id));
                if let Some(desired @ DesiredService::Present(_)) = desired {
                    answers.extend(self.arm.advertise(plan, JobIx::at(nth), *desired));
                }
            }
        }
        // A service that is gone keeps its task, which alone knows whether Consul has heard of that.
        self.desired.retain(|_, desired| *desired != DesiredService::Absent);
        match &mut self.arm {
            // At the beginning there is nothing in it, and nothing to say.
            Arm::Embedded(_) if self.desired.is_empty() => {}
            Arm::Embedded(catalog) => answers.extend(catalog.answers(plan)),
            Arm::Consul(agent) => agent.follow(plan),
        }
        answers
    }

    /// Makes a service as it is desired. What is known at once comes back at once.
    #[inline(never)]
    pub(crate) fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) -> Vec<Input> {
        if let Some(service) = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref()) {
            self.desired.insert(service.id.clone(), desired);
        }
        self.arm.advertise(plan, job, desired)
    }

    /// What a watch sees, told to it where it is now: a plan may have come since it looked. Nothing if it is no more.
    pub(crate) fn seen(plan: &Plan, watch: &Watch, ix: WatchIx, instances: Vec<Instance>) -> Option<Input> {
        let is_there = |ix: &WatchIx| plan.watches.get(ix.index()) == Some(watch);
        let anywhere = || plan.watches.iter().position(|other| other == watch).map(WatchIx::at);
        let watch = Some(ix).filter(is_there).or_else(anywhere)?;
        Some(Input::Instances { watch, instances })
    }

    /// A service is out, told to its job where that is now. Nothing if it is no more.
    pub(crate) fn withdrawn(plan: &Plan, id: &str, job: JobIx) -> Option<Input> {
        let has = |job: &Job| job.service.as_ref().is_some_and(|service| service.id == id);
        let is_there = |ix: &JobIx| plan.jobs.get(ix.index()).is_some_and(has);
        let anywhere = || plan.jobs.iter().position(has).map(JobIx::at);
        let job = Some(job).filter(is_there).or_else(anywhere)?;
        Some(Input::Deregistered { job })
    }

    /// Tells that a service is still healthy (H6).
    #[inline(never)]
    pub(crate) fn heartbeat(&mut self, plan: &Plan, job: JobIx) {
        match &mut self.arm {
            // It believes in a service until it is told otherwise.
            Arm::Embedded(_) => {}
            Arm::Consul(agent) => agent.send(plan, job, Order::Beat),
        }
    }

    /// S6: takes every service out before the process leaves, and waits for that, but not for every price.
    pub(crate) fn leave(self, stop_timeout: Duration) {
        if let Arm::Consul(agent) = self.arm {
            // Nothing is ever sent: it is the end of the last sender that is waited for.
            let _ = agent.retire().recv_timeout(LAST_CALL.min(stop_timeout / 4));
        }
    }
}

impl Arm {
    fn new(settings: &Catalog, tasks: Option<&Handle>, sender: &LoopSender) -> Self {
        match (settings, tasks) {
            (Catalog::Consul(consul), Some(tasks)) => {
                Self::Consul(Box::new(Agent::new(consul, tasks.clone(), sender.clone())))
            }
            _ => Self::Embedded(Embedded::default()),
        }
    }

    fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) -> Vec<Input> {
        match self {
            Self::Embedded(catalog) => catalog.advertise(plan, job, desired),
            Self::Consul(agent) => {
                agent.advertise(plan, job, desired);
                Vec::new()
            }
        }
    }
}

/// What all tasks have in common.
#[derive(Debug)]
struct Shared {
    client: Client,
    voice: Voice,
    sender: LoopSender,
    places: Semaphore,
    began: Instant,
    random: RandomState,
}

impl Shared {
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// A seed for somebody's jitter: another one in every process and for everybody.
    fn seed(&self) -> u64 {
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.now().as_nanos());
        hasher.finish()
    }

    /// What an answer other than yes means. After a refusal the token is read again, if it has a file.
    fn failure(&self, answer: &Answer) -> Failure {
        let mut why = self.client.words(answer);
        let refused = (400..500).contains(&answer.status) && answer.status != 429;
        if matches!(answer.status, 401 | 403)
            && let Err(unreadable) = self.client.renew_token()
        {
            why = format!("{why}; {unreadable}");
        }
        Failure { result: if refused { RequestResult::Refused } else { RequestResult::Unavailable }, why }
    }
}

/// A Consul agent, as the loop sees it.
#[derive(Debug)]
struct Agent {
    shared: Arc<Shared>,
    tasks: Handle,
    /// The tasks of the services, by the services' ids, which outlive every plan.
    keepers: BTreeMap<String, UnboundedSender<Order>>,
    watchers: Vec<(Followed, AbortHandle)>,
}

/// What is followed, and among how many.
#[derive(Clone, Debug, PartialEq)]
struct Followed {
    watch: Watch,
    ix: WatchIx,
    slots: QuerySlots,
}

impl Agent {
    fn new(consul: &Consul, tasks: Handle, sender: LoopSender) -> Self {
        let address = match &consul.address {
            ConsulAddress::Network(address) => address.clone(),
            ConsulAddress::Unix(path) => format!("unix://{path}"),
        };
        let shared = Shared {
            client: Client::new(consul),
            voice: Voice::new(address, sender.clone()),
            sender,
            places: Semaphore::new(SERVICE_PLACES),
            began: Instant::now(),
            random: RandomState::new(),
        };
        Self { shared: Arc::new(shared), tasks, keepers: BTreeMap::new(), watchers: Vec::new() }
    }

    fn follow(&mut self, plan: &Plan) {
        let watches = u32::try_from(plan.watches.len()).unwrap_or(u32::MAX);
        let slots = QuerySlots { slots: PLACES, watches };
        let desired = plan.watches.iter().enumerate();
        let desired: Vec<Followed> = desired
            .map(|(nth, watch)| Followed { watch: watch.clone(), ix: WatchIx::at(nth), slots })
            .collect();
        let (kept, ended): (Vec<_>, Vec<_>) = std::mem::take(&mut self.watchers)
            .into_iter()
            .partition(|(followed, _)| desired.contains(followed));
        self.watchers = kept;
        for (followed, task) in ended {
            task.abort();
            self.shared.voice.forget(&format!("watch {}", followed.watch.name));
        }
        let places = Arc::new(Semaphore::new(PLACES as usize));
        for followed in desired {
            if self.watchers.iter().any(|(other, _)| *other == followed) {
                continue;
            }
            let watcher = Watcher {
                shared: Arc::clone(&self.shared),
                watch: Arc::new(followed.watch.clone()),
                ix: followed.ix,
                places: Arc::clone(&places),
                slots,
            };
            let task = begin_on(&self.tasks, watcher.work()).abort_handle();
            self.watchers.push((followed, task));
        }
    }

    fn advertise(&mut self, plan: &Plan, job: JobIx, desired: DesiredService) {
        let Some(definition) = plan.jobs.get(job.index()).and_then(definition) else { return };
        let id = definition.service.id.clone();
        let definition = Arc::new(definition);
        if !self.keepers.contains_key(&id) {
            let (sender, orders) = unbounded_channel();
            let keeper = Keeper::new(Arc::clone(&self.shared), job, Arc::clone(&definition));
            drop(begin_on(&self.tasks, keeper.work(orders)));
            self.keepers.insert(id, sender);
        }
        self.send(plan, job, Order::Want(job, desired, definition));
    }

    fn send(&self, plan: &Plan, job: JobIx, order: Order) {
        let service = plan.jobs.get(job.index()).and_then(|job| job.service.as_ref());
        if let Some(keeper) = service.and_then(|service| self.keepers.get(&service.id)) {
            // A task that has ended has nothing to keep any more.
            let _ = keeper.send(order);
        }
    }

    /// Takes every service out, and ends everything. What comes back is closed when that is done.
    fn retire(self) -> mpsc::Receiver<()> {
        for (_, task) in &self.watchers {
            task.abort();
        }
        let (leaving, left) = mpsc::channel();
        for keeper in self.keepers.values() {
            let _ = keeper.send(Order::Leave(leaving.clone()));
        }
        left
    }
}

/// How a job is advertised, if it is: its service, and the pace at which its health is heard of.
fn definition(job: &Job) -> Option<Definition> {
    let service = job.service.clone()?;
    let health = job.health.as_ref();
    let checks = health.and_then(|health| health.checks.iter().map(|check| check.interval).min());
    let pace = health.and_then(|health| health.heartbeat).or(checks);
    Some(Definition { pace: pace.unwrap_or(service.ttl / 3), service })
}

/// Reads a file of secrets or certificates. Only a file: anything else might make everybody here wait.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(format!("{} is no file", path.display()));
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut content = Vec::new();
    file.take(MOST_FILE).read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}
