//! The plan: a validated configuration with every default filled in.
//!
//! Nothing in a plan needs further parsing. `crates/config` builds plans from files; `crates/oracle` builds random
//! ones.

mod consul;
mod control;
mod cron;
mod dependencies;
pub mod diff;
mod exec;
mod file;
mod health;
mod http;
mod job;
mod lock;
mod logging;
mod otlp;
mod process;
mod ready;
mod replicas;
mod requires;
mod restart;
mod service;
mod single_program;
mod stop;
mod telemetry;
mod watch;
mod when;
mod word;
mod work;

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::signal::Signal;
pub use consul::{Catalog, Consul, ConsulAddress, NetworkParts, Tls, TokenSource};
pub use control::Control;
pub use cron::{Cron, CronFields, Zone, fmt_utc};
pub use dependencies::{DependencyEdge, DependencyKind, Dependent};
pub use exec::{Action, Exec, Target};
pub use file::{FileData, FileTest, RenderedFile};
pub use health::{Check, Health, OnUnhealthy, Probe};
pub use http::{HttpMethod, HttpProbe, HttpTarget, StatusRange, UnexpectedStatus};
pub use job::{Command, Job, OnCompletion, Role};
pub use lock::{LONGEST_TTL, Lock, SHORTEST_TTL};
pub use logging::{Format, JobLogging, JobOutput, Level, LogFile, Logging, Output, Record};
pub use otlp::Otlp;
pub use process::{Capabilities, Limit, LimitedResource, Principal, Process};
pub use ready::Ready;
pub(crate) use replicas::placeholder_length;
pub use replicas::{
    MAX_REPLICAS, PORT_VARIABLE, PortRange, REPLICA_VARIABLE, Replica, ReplicaGroup, ScaleError,
};
pub use requires::{DependencyCondition, RequiredSource, Requirement};
pub use restart::{Backoff, OnStartLimit, RestartOn, Restarts, StartLimit};
pub use service::{Service, Status, TaggedAddress};
pub use stop::{DEFAULT_STOP_ON, Drain, Escalation, Stop, StopScope, stop_signal_timeout};
pub use telemetry::{Metric, MetricKind, Page, Telemetry};
pub use watch::{DnsRecord, Watch, WatchKind};
pub use when::{EventPattern, FirstTick, Repeat, Trigger, When};
pub use word::Word;

/// Everything a configuration defines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    /// Coprocesses first, because they start first (C6), then the jobs in the order of the file, then the telemetry
    /// job, if there is one.
    #[serde(skip)]
    pub jobs: Vec<Job>,
    /// The definitions of the jobs that are replicas (W20).
    pub replicas: Vec<ReplicaGroup>,
    /// What is watched outside the jobs.
    pub watches: Vec<Watch>,
    /// The files that are rendered from templates.
    pub files: Vec<RenderedFile>,
    /// What at most a certain number of supervisors may have at the same time (D14).
    pub locks: Vec<Lock>,
    /// Where services are registered and looked up.
    pub catalog: Catalog,
    /// The control socket.
    pub control: Control,
    /// The log.
    pub logging: Logging,
    /// The recording.
    pub record: Record,
    /// The telemetry server.
    pub telemetry: Option<Telemetry>,
    /// The OpenTelemetry collector.
    pub otlp: Option<Otlp>,
    /// The global stop timeout: when it passes during a shutdown, the remaining jobs are killed (S4).
    pub stop_timeout: Duration,
    /// What every process has (P10, P11). The program on the command line has nothing else.
    pub process: Process,
    /// The signals that shut down the supervisor, unless all signals are forwarded (S1, S7, S8).
    pub stop_on: Vec<Signal>,
    /// True if every signal is forwarded to the main program (S7).
    pub pass_signals: bool,
    /// True for the maintenance mode of ContainerPilot 2 (C8): SIGUSR1 toggles it, and it pauses periodic jobs and the
    /// events of watches. Otherwise SIGUSR1 only reopens the log file. SIGHUP needs no such flag: it reloads unless a
    /// job waits for it (R1).
    pub legacy_maintenance: bool,
}
