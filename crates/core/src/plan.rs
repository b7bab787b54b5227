//! The plan: everything a configuration asks for, typed and checked.
//!
//! A plan holds no text that still has to be understood. Whoever makes one (`crates/config` from a file,
//! `crates/oracle` from chance) has settled every default; whoever reads one can match without a doubt.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use crate::event::{Code, Source};
use alloc::collections::BTreeMap;

/// Everything the supervisor is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The coprocesses first, because they start before the others (C6); then the jobs in the order they are written;
    /// the telemetry job, if any, is the last.
    pub jobs: Vec<Job>,
    /// The services of the catalog that are followed.
    pub watches: Vec<Watch>,
    /// Where services are registered and looked up.
    pub catalog: Catalog,
    /// The control socket.
    pub control: Control,
    /// How and where the log is written.
    pub logging: Logging,
    /// The telemetry server, if there is one.
    pub telemetry: Option<Telemetry>,
    /// How long a shutdown may take before what is left is killed (S4).
    pub stop_timeout: Duration,
    /// Whether every signal goes on to the main program instead of meaning something here (S7).
    pub pass_signals: bool,
    /// Whether SIGUSR1 enters maintenance and leaves it again, as in ContainerPilot 2 (C8). Otherwise it only has the
    /// log's file opened anew. That SIGHUP reloads needs no word: no job of such a file waits for it (R1).
    pub toggle_maintenance: bool,
}

/// A process with rules for when it runs, how it is checked and how it is advertised.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The name, which is also the source of its events.
    pub name: String,
    /// What it is to the whole: work, the main program, or something that goes with them (W10).
    pub role: Role,
    /// What is run; a job without it only advertises and checks (W11).
    pub exec: Option<Command>,
    /// When it runs.
    pub when: When,
    /// How long one run may take (P5).
    pub timeout: Option<Duration>,
    /// How often it runs again after a run has ended (W6).
    pub restarts: Restarts,
    /// How restarts are spaced (W8); `None` is 3.8's restart without delay.
    pub backoff: Option<Backoff>,
    /// How it is stopped (S2).
    pub stop: Stop,
    /// What its end in failure means for the container (S5).
    pub on_failure: AtEnd,
    /// What its end in success means for the container (S5).
    pub on_success: AtEnd,
    /// How its health is found out, if at all.
    pub health: Option<Health>,
    /// How it is advertised, if at all.
    pub service: Option<Service>,
    /// Whom and how the process runs as (P9).
    pub process: Process,
    /// Whether its output goes straight to the supervisor's own streams (L2).
    pub raw_output: bool,
}

/// Whose job it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// One that the configuration lists.
    User,
    /// The program of the command line, with whose end everything ends (S7).
    Main,
    /// One that runs alongside the others and is secondary to them: it starts before them, is stopped after them, and
    /// neither holds the supervisor nor ends it (C6).
    Coprocess,
    /// The one that advertises the telemetry server.
    Telemetry,
    /// One whose output is a number: a value of the metric at this place of the telemetry's metrics (T2). It works for
    /// whoever looks at the metrics, so it neither holds the supervisor open nor speaks for it at its end.
    Sensor(u32),
}

impl Role {
    /// Whether the container is there for something else.
    #[must_use]
    pub const fn is_secondary(self) -> bool {
        matches!(self, Self::Coprocess | Self::Telemetry | Self::Sensor(_))
    }
}

/// A program and its arguments (P8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program, searched in `PATH` when it holds no slash.
    pub program: String,
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
}

/// When a job runs, and how long it waits for that.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// What starts it.
    pub trigger: Trigger,
    /// How long it waits for the trigger before it gives up (W5).
    pub timeout: Option<Duration>,
}

impl When {
    /// The events that count for it.
    #[must_use]
    pub fn patterns(&self) -> &[EventPattern] {
        match &self.trigger {
            Trigger::Event { event, .. } => core::slice::from_ref(event),
            Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => conditions,
            Trigger::Interval(_) | Trigger::Never => &[],
        }
    }

    /// How often they count. A turn of a periodic job counts every time.
    #[must_use]
    pub fn repeat(&self) -> Repeat {
        match &self.trigger {
            Trigger::Event { repeat, .. } | Trigger::All { repeat, .. } | Trigger::Any { repeat, .. } => {
                *repeat
            }
            Trigger::Interval(_) => Repeat::Each,
            Trigger::Never => Repeat::Once,
        }
    }
}

/// What starts a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// An event (W1–W3).
    Event {
        /// The event.
        event: EventPattern,
        /// At the first one, or at every one.
        repeat: Repeat,
    },
    /// At startup and then at every interval (W4).
    Interval(Duration),
    /// All of these conditions hold (W12).
    All {
        /// The conditions.
        conditions: Vec<EventPattern>,
        /// Once, or each time they come to hold.
        repeat: Repeat,
    },
    /// Any of these events comes (W12).
    Any {
        /// The events.
        conditions: Vec<EventPattern>,
        /// Once, or each time.
        repeat: Repeat,
    },
    /// Nothing: the file names no event that could ever come. 3.8 accepts that, and so the job waits.
    Never,
}

/// An event that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPattern {
    /// Where it comes from.
    pub source: Source,
    /// What it says.
    pub code: Code,
}

/// How often a trigger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The first time only.
    Once,
    /// Every time.
    Each,
}

/// How often a job runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// At most so many times; 0 is never.
    Limited(u64),
    /// Without end.
    Unlimited,
}

/// The spacing of restarts: the first is at once, then the delay doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first delay.
    pub initial: Duration,
    /// The longest delay.
    pub max: Duration,
    /// A run that lasted longer than this starts the count anew.
    pub reset: Duration,
}

impl Backoff {
    /// The one of a job that says nothing about it (W8).
    pub const USUAL: Self = Self {
        initial: Duration::from_millis(100),
        max: Duration::from_secs(10),
        reset: Duration::from_secs(10),
    };
}

/// How a job is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The signal that asks it to end.
    pub signal: Signal,
    /// How long it waits for the jobs that run at its `stopping`; `None` is until the global stop time.
    pub timeout: Option<Duration>,
    /// How long it goes on after its service has left the catalog.
    pub drain: Duration,
}

/// A signal, by its Linux number (1 to 64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub u8);

impl Signal {
    /// The signal at which the configuration is read anew, unless a job waits for it (R1).
    pub const HUP: Self = Self(1);
    /// The signal at which a log file is opened anew.
    pub const USR1: Self = Self(10);
    /// The signal that nothing can ignore.
    pub const KILL: Self = Self(9);
    /// The signal that asks a process to end.
    pub const TERM: Self = Self(15);
}

/// What the end of a job means for the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// The others go on.
    Continue,
    /// Everything stops.
    Shutdown,
}

/// How the health of a job is found out and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The checks; the job is healthy when all of them pass (H2).
    pub checks: Vec<Check>,
    /// How long the catalog trusts a heartbeat.
    pub ttl: Duration,
    /// The pace of heartbeats while healthy, if it is not the checks' own (H6).
    pub heartbeat: Option<Duration>,
    /// What happens when the job becomes unhealthy (H8).
    pub on_unhealthy: OnUnhealthy,
}

/// One check of a job's health.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its name in logs.
    pub name: String,
    /// How it is made.
    pub probe: Probe,
    /// The time between two of them.
    pub interval: Duration,
    /// How long one may take.
    pub timeout: Duration,
    /// How many failures in a row make it fail (H8).
    pub failures: u32,
    /// Whether its output goes straight to the supervisor's own streams.
    pub raw_output: bool,
}

/// How a check is made (H1, H5).
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// The job is healthy as long as it runs.
    Running,
    /// A program that exits with 0.
    Exec(Command),
    /// A URL that answers with 2xx or 3xx.
    Http(HttpTarget),
    /// An address that accepts a connection.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// The parts of a URL that is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTarget {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, beginning with a slash.
    pub path: String,
}

/// What happens when a job becomes unhealthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnhealthy {
    /// Its events are sent, nothing more.
    Report,
    /// It is restarted, within `restarts`.
    Restart,
}

/// How a job is advertised in the catalog (D3).
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The service's name: the job's.
    pub name: String,
    /// The instance: `NAME-HOSTNAME`.
    pub id: String,
    /// Where it can be reached.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata.
    pub meta: BTreeMap<String, String>,
    /// How long the catalog trusts a heartbeat.
    pub ttl: Duration,
    /// The status it is registered with before its health is known (D4).
    pub initial_status: Option<Status>,
    /// Whether others may change its tags.
    pub enable_tag_override: bool,
    /// When the catalog drops it after it has turned critical.
    pub deregister_critical_after: Option<Duration>,
}

/// The status of a service in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Healthy.
    Passing,
    /// Healthy, with a doubt.
    Warning,
    /// Not healthy.
    Critical,
}

/// Whom and how a process runs as (P9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The user, by name or number.
    pub user: Option<Principal>,
    /// The group, by name or number.
    pub group: Option<Principal>,
    /// The working directory.
    pub cwd: Option<String>,
    /// Variables beside those of P7.
    pub env: BTreeMap<String, String>,
    /// The mask for new files.
    pub umask: Option<u16>,
    /// Resource limits.
    pub limits: Vec<Limit>,
    /// Whether the process and its children can never gain privileges.
    pub no_new_privileges: bool,
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// By name, looked up when the process starts.
    Name(String),
    /// By number.
    Id(u32),
}

/// One resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub resource: Resource,
    /// The limit that counts.
    pub soft: Option<u64>,
    /// How far the process may raise it.
    pub hard: Option<u64>,
}

/// A resource that can be limited, by the name `getrlimit(2)` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of getrlimit(2), where they are explained")]
pub enum Resource {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}

/// A service of the catalog that is followed (D7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The service; its events come from `watch.NAME`.
    pub name: String,
    /// The longest time between two looks.
    pub interval: Duration,
    /// Only instances with this tag count.
    pub tag: Option<String>,
    /// The data centre that is asked.
    pub dc: Option<String>,
}

/// Where services are registered and looked up.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a plan has one of it")]
pub enum Catalog {
    /// Inside this process (D2).
    Embedded,
    /// A Consul agent (D1).
    Consul(Consul),
}

/// How the Consul agent is reached (D1).
#[derive(Clone, PartialEq, Eq)]
pub struct Consul {
    /// Where it listens.
    pub address: ConsulAddress,
    /// Whether the connection is encrypted.
    pub https: bool,
    /// The ACL token.
    pub token: Option<String>,
    /// The file that holds it, if it is not written out.
    pub token_file: Option<String>,
    /// The encryption's settings.
    pub tls: Tls,
}

impl core::fmt::Debug for Consul {
    /// Leaves the token out, so that no log can show it (L5).
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Consul")
            .field("address", &self.address)
            .field("https", &self.https)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("token_file", &self.token_file)
            .field("tls", &self.tls)
            .finish()
    }
}

/// Where a Consul agent listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsulAddress {
    /// `host:port`, with a path prefix if one was written.
    Network(String),
    /// The path of a unix socket.
    Unix(String),
}

/// The parts of an address on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkParts<'a> {
    /// Host and port as they are written.
    pub authority: &'a str,
    /// Host name or address, without brackets.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// What is put before every path; empty, or beginning with a slash.
    pub prefix: &'a str,
}

impl ConsulAddress {
    /// The parts of an address on the network, if it is one. Without a port, it is that of HTTP or HTTPS, as in Go.
    #[must_use]
    pub fn network_parts(&self, https: bool) -> Option<NetworkParts<'_>> {
        let Self::Network(text) = self else { return None };
        let (authority, prefix) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text.as_str(), ""),
        };
        let usual = if https { 443 } else { 80 };
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, usual),
            Some((host, port)) => (host, port.strip_prefix(':')?.parse().ok()?),
            None => match authority.split_once(':') {
                None => (authority, usual),
                // More than one colon is an address of version 6, which needs brackets to have a port.
                Some((_, rest)) if rest.contains(':') => (authority, usual),
                Some((host, port)) => (host, port.parse().ok()?),
            },
        };
        let good = !host.is_empty() && port != 0 && !text.contains(char::is_whitespace);
        good.then_some(NetworkParts { authority, host, port, prefix })
    }
}

/// Settings of an encrypted connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// File with the certificates that are trusted.
    pub ca_file: Option<String>,
    /// Directory with such files.
    pub ca_path: Option<String>,
    /// File with the client's certificate.
    pub client_cert: Option<String>,
    /// File with the client's key.
    pub client_key: Option<String>,
    /// The name the server's certificate must have, if not the host's.
    pub server_name: Option<String>,
    /// Whether the server's certificate is verified.
    pub verify: bool,
}

/// The control socket (X1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its path.
    pub socket: String,
    /// Whether nothing is to begin without it, because somebody has asked for this path.
    pub required: bool,
    /// Its mode.
    pub mode: u16,
    /// The group it belongs to.
    pub group: Option<Principal>,
}

/// How and where the log is written (L1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// The least level that is written.
    pub level: Level,
    /// The form of a line.
    pub format: Format,
    /// Where lines go.
    pub output: Output,
}

/// How much an entry of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// What happens in the ordinary course.
    Info,
    /// What should be looked at.
    Warn,
    /// What went wrong.
    Error,
    /// What ends the supervisor.
    Fatal,
    /// What should never happen.
    Panic,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, job, pid, text.
    Default,
    /// logfmt.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, reopened at SIGUSR1.
    File(String),
}

/// The telemetry server (T1).
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The address it listens on.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// The tags it is advertised with.
    pub tags: Vec<String>,
    /// The metrics that jobs may send.
    pub metrics: Vec<Metric>,
}

/// A metric that jobs may send (T2).
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name on the metrics page: the parts joined by `_`, empty ones left out.
    pub name: String,
    /// The name as 3.8 joined it, with empty parts, by which a value may be sent too.
    pub legacy_key: String,
    /// What it is about.
    pub help: String,
    /// How values are kept.
    pub kind: MetricKind,
}

/// How the values of a metric are kept.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricKind {
    /// Added up.
    Counter,
    /// The last one counts.
    Gauge,
    /// Counted in buckets with these upper bounds.
    Histogram {
        /// The bounds, rising.
        buckets: Vec<f64>,
    },
    /// Quantiles over a sliding window.
    Summary,
}
