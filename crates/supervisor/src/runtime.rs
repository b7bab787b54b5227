//! The event loop: source → [`Input`] → core → [`Effect`]s. It makes no decisions and never blocks.
//!
//! The loop waits in one `ppoll` for signals, exited children, messages of other threads, the control socket, the
//! results of starts, the connections of checks, changes of the system clock and the core's next deadline. Without an
//! event it does not wake up. The asynchronous runtime for the control socket, telemetry and Consul has its own thread,
//! where it can neither delay nor break the reaper.
//!
//! The results of effects (a process was started, or could not be) are passed to the core at the end of the iteration;
//! what follows from them waits for the next one. All sources are polled between two iterations, so no job can keep the
//! supervisor from handling signals.

mod apply_plan;
mod clock;
mod decide;
pub(crate) mod effects;
mod event_loop;
mod files;
pub(crate) mod manager;
mod network;
mod notices;
pub(crate) mod oom;
mod panics;
pub(crate) mod probe;
mod queries;
pub(crate) mod reload;
mod shutdown;
pub(crate) mod starts;
mod startup;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use containerpilot_config::template::Environment;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_load::config_source::ConfigSource;
use containerpilot_load::host;
use containerpilot_otlp::Ids;
use containerpilot_process::boot_clock::BootClock;
use containerpilot_process::error_text::describe;
use containerpilot_process::orphans::Orphans;
use containerpilot_process::reaper::{Exited, Reaper};
use containerpilot_process::signals::Signals;
use containerpilot_process::spawn::Spawner;
use containerpilot_process::sys;
use nix::errno::Errno;

use crate::control::ControlServer;
use crate::control::socket::SocketError;
use crate::discovery::Discovery;
use crate::logs::Logs;
use crate::logs::check_output::CheckOutputs;
use crate::messages::{LoopMessage, LoopReceiver};
use crate::net::{LazyNet, Net};
use crate::recording::LiveRecording;
use crate::runtime::clock::SystemClock;
use crate::runtime::effects::EffectExecutor;
use crate::runtime::files::PendingFiles;
use crate::runtime::manager::ServiceManager;
use crate::runtime::network::NetworkUse;
use crate::runtime::notices::Notices;
use crate::runtime::oom::OomCounter;
use crate::runtime::probe::Probes;
use crate::runtime::queries::QueryHandler;
use crate::runtime::reload::Reloads;
use crate::runtime::starts::Starts;
use crate::telemetry::{self, Export, ListenError, Metrics, SensorOutputs, TelemetryServer};
use crate::watches::LocalWatches;

/// Makes the decisions: the core. Tests use a script instead.
pub(crate) trait Decider {
    fn plan(&self) -> Arc<Plan>;
    fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>);
    fn next_deadline(&self) -> Option<Time>;
    /// Notices to the service manager are enabled (H11).
    fn notify_manager(&mut self) {}
    /// The core, if it is one: it answers queries.
    fn core(&self) -> Option<&Core> {
        None
    }
}

impl Decider for Core {
    fn plan(&self) -> Arc<Plan> {
        self.shared_plan()
    }

    fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.step(now, input, effects);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_deadline()
    }

    fn notify_manager(&mut self) {
        self.notify_manager();
    }

    fn core(&self) -> Option<&Core> {
        Some(self)
    }
}

/// Why the supervisor cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartupError {
    #[error("cannot open the descriptors for starting programs: {}", describe(.0))]
    Spawner(io::Error),
    #[error("cannot open the descriptors for signals: {}", describe(.0))]
    Signals(io::Error),
    #[error("cannot create the channel of the event loop: {}", describe(.0))]
    Channel(io::Error),
    #[error(transparent)]
    Logs(io::Error),
    #[error("cannot start the network thread: {}", describe(.0))]
    Network(io::Error),
    #[error(transparent)]
    Telemetry(#[from] ListenError),
    #[error(transparent)]
    Control(#[from] SocketError),
}

/// The supervisor.
pub(crate) struct Runtime<D> {
    core: D,
    /// The plan that job and watch indices refer to.
    plan: Arc<Plan>,
    /// The origin of the core's time.
    origin: Instant,
    signals: Signals,
    clock: SystemClock,
    receiver: LoopReceiver,
    network: NetworkUse,
    metrics: Metrics,
    telemetry: Option<TelemetryServer>,
    /// The export to an OpenTelemetry collector (T6), and the ids of its trace.
    export: Option<Export>,
    trace_ids: Option<Ids>,
    control: Option<ControlServer>,
    executor: EffectExecutor,
    recording: LiveRecording,
    /// Results of effects that the core has not seen yet.
    results: VecDeque<Input>,
    /// Messages of other threads that are not handled yet.
    messages: VecDeque<LoopMessage>,
    /// Exited processes that the core does not know about yet.
    exited: Vec<Exited>,
    effects: Vec<Effect>,
    /// Read when the first jobs are started.
    oom: Option<OomCounter>,
    /// When unused memory is returned to the kernel, once after the start.
    release_at: Option<Instant>,
    /// When exited children are collected next; SIGCHLD is ignored until then. See [`Reaper::collect`].
    reap_at: Option<Instant>,
    /// The core's deadlines, new connections and checks are ignored until then, after an internal error.
    paused_until: Option<Instant>,
}

impl<D: Decider> Runtime<D> {
    /// Prepares everything. The signals must be blocked already.
    pub(crate) fn new(
        mut core: D,
        mut environment: Environment,
        source: Option<ConfigSource>,
    ) -> Result<Self, StartupError> {
        let manager = ServiceManager::take_from(&mut environment);
        if manager.is_there() {
            core.notify_manager();
        }
        let spawner = Spawner::new(environment).map_err(StartupError::Spawner)?;
        let named = sys::set_name(c"containerpilot");
        let subreaper = if std::process::id() == 1 { Ok(()) } else { sys::become_subreaper() };
        let signals = Signals::open().map_err(StartupError::Signals)?;
        let receiver = LoopReceiver::new().map_err(StartupError::Channel)?;
        let probes = Probes::new(receiver.sender());
        let notices = Notices::new(receiver.sender());
        let files = PendingFiles::new(receiver.sender());
        let orphans = Orphans::new({
            let sender = receiver.sender();
            move |report| {
                sender.send(LoopMessage::OrphansRead(report));
            }
        });
        let plan = core.plan();
        let reloads = Reloads::new(source, host::supervisor_environment, receiver.sender());
        let logs = Logs::start(&plan.logging).map_err(StartupError::Logs)?;
        let metrics = Metrics::new(telemetry::definitions(&plan)).with_tails(logs.tails());
        warn(&logs, "cannot set the process name", named);
        warn(&logs, "cannot become a child subreaper", subreaper);
        let mut net = LazyNet::default();
        let origin = Instant::now();
        let boot = BootClock::new(origin);
        let runtime = Discovery::needs_network(&plan).then(|| net.get().map(Net::handle)).transpose();
        let catalog =
            Discovery::new(&plan, runtime.map_err(StartupError::Network)?, &receiver.sender(), boot);
        panics::install_hook(receiver.sender());
        let recording = LiveRecording::new(&plan.record, receiver.sender());
        Ok(Self {
            core,
            plan,
            origin,
            signals,
            clock: SystemClock::new(boot),
            receiver,
            network: NetworkUse::default(),
            metrics: metrics.clone(),
            telemetry: None,
            export: None,
            trace_ids: None,
            control: None,
            executor: EffectExecutor {
                spawner,
                reaper: Reaper::new(orphans),
                starts: Starts::default(),
                notices,
                probes,
                files,
                net,
                catalog,
                watches: LocalWatches::default(),
                logs,
                check_outputs: CheckOutputs::default(),
                queries: QueryHandler::new(SystemTime::now()),
                sensors: SensorOutputs::new(metrics),
                reloads,
                manager,
                pids: BTreeMap::new(),
                trace: None,
            },
            recording,
            results: VecDeque::new(),
            messages: VecDeque::new(),
            exited: Vec::new(),
            effects: Vec::new(),
            oom: None,
            release_at: None,
            reap_at: None,
            paused_until: None,
        })
    }

    /// Writes a log entry about the supervisor itself.
    fn log(&self, level: Level, message: &str) {
        self.executor.logs.entry(level, None, message);
    }
}

/// Logs a refused system call that the supervisor can do without.
fn warn(logs: &Logs, what: &str, result: Result<(), Errno>) {
    if let Err(errno) = result {
        logs.entry(Level::Warn, None, &format!("{what}: {errno:?}"));
    }
}

#[cfg(test)]
mod tests;
