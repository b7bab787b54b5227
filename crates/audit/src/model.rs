//! What a deployment says about one container, in the words of all of its formats.

use std::time::Duration;

use containerpilot_config::diagnostics::Severity;

use crate::tree::At;

/// The system that runs the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Kubernetes.
    Kubernetes,
    /// Docker Compose.
    Compose,
    /// Nomad.
    Nomad,
    /// None: an image, which a Dockerfile builds.
    Image,
}

/// How the deployment treats the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It is started again whenever it ends.
    Service,
    /// It is expected to end: a Job, a batch job, an init container.
    Task,
    /// The deployment does not say.
    Unknown,
}

/// A container of a deployment.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// What it belongs to: `Deployment/app`, `job web, group app`.
    pub parent: String,
    /// Where it begins.
    pub line: usize,
    /// The system that runs it.
    pub platform: Platform,
    /// Its image.
    pub image: String,
    /// What is executed in place of the entry point of the image.
    pub command: Option<At<Vec<String>>>,
    /// The arguments, in place of those of the image.
    pub args: Option<At<Vec<String>>>,
    /// The variables whose values are in the file.
    pub env: Vec<(String, String)>,
    /// Paths that are mounted.
    pub mounts: Vec<Mount>,
    /// The time between the start of the stop and SIGKILL; `None` if it is not in the file.
    pub grace: Option<At<Duration>>,
    /// True if `grace` is a default, because the file does not set it.
    pub default_grace: bool,
    /// What runs within the grace period before the stop signal; zero if its time is not known.
    pub pre_stop: Option<At<Duration>>,
    /// The stop signal, if the file sets one.
    pub signal: Option<At<String>>,
    /// The stop signal if the file sets none.
    pub default_signal: &'static str,
    /// Probes and health checks.
    pub probes: Vec<Probe>,
    /// Commands that are executed in the container at its start or stop.
    pub hooks: Vec<At<Vec<String>>>,
    /// The memory limit in bytes.
    pub memory: Option<At<u64>>,
    /// Where the root file system is made read-only.
    pub read_only: Option<usize>,
    /// The user of the container.
    pub user: Option<At<User>>,
    /// Where the capability to switch users is taken away.
    pub no_setuid: Option<usize>,
    /// The setting that makes another process PID 1.
    pub other_pid_1: Option<At<&'static str>>,
    /// The setting that adds another init process.
    pub other_init: Option<At<&'static str>>,
    /// How its end is treated.
    pub lifetime: At<Lifetime>,
    /// Where the message of an exit is expected.
    pub message_path: Option<At<String>>,
    /// Values that the system refuses, or reads in another way than it seems.
    pub mistakes: Vec<Mistake>,
    /// True for a job of Nomad in JSON, whose keys and units are those of its API.
    pub is_nomad_json: bool,
}

/// A value that the system refuses, or reads in another way than it seems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line.
    pub line: usize,
    /// A fault is certain to do harm.
    pub severity: Severity,
    /// What is wrong with the value.
    pub message: String,
    /// What to write.
    pub help: String,
}

impl Container {
    /// A container with nothing but a name.
    #[must_use]
    pub fn new(platform: Platform, parent: &str, name: &str, line: usize) -> Self {
        Self {
            name: name.to_owned(),
            parent: parent.to_owned(),
            line,
            platform,
            image: String::new(),
            command: None,
            args: None,
            env: Vec::new(),
            mounts: Vec::new(),
            grace: None,
            default_grace: false,
            pre_stop: None,
            signal: None,
            default_signal: "SIGTERM",
            probes: Vec::new(),
            hooks: Vec::new(),
            memory: None,
            read_only: None,
            user: None,
            no_setuid: None,
            other_pid_1: None,
            other_init: None,
            lifetime: At { line, value: Lifetime::Unknown },
            message_path: None,
            mistakes: Vec::new(),
            is_nomad_json: false,
        }
    }

    /// Adds a value that the system refuses, or reads in another way than it seems.
    pub(crate) fn mistake(&mut self, severity: Severity, line: usize, message: String, help: String) {
        self.mistakes.push(Mistake { severity, line, message, help });
    }
}

/// A mounted path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The path in the container.
    pub path: String,
    /// True if it can be written to.
    pub writable: bool,
}

/// The user of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// A user with this number.
    Id(u32),
    /// Some user that is not root.
    NotRoot,
}

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A container that fails it is restarted.
    Liveness,
    /// A container that fails it gets no traffic, or is only shown as unhealthy.
    Readiness,
    /// A container that never passes it is restarted.
    Startup,
}

/// A probe.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its name in the file: `livenessProbe`.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it is.
    pub line: usize,
    /// What it does.
    pub action: ProbeAction,
    /// The grace period of a container that fails it.
    pub grace: Option<At<Duration>>,
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAction {
    /// An HTTP request from outside the container.
    Http {
        /// The port; `None` if it is not in the file.
        port: Option<u16>,
        /// The path, without a query.
        path: String,
        /// True for HTTPS.
        tls: bool,
    },
    /// A connection from outside the container.
    Tcp(Option<u16>),
    /// A gRPC health check from outside the container.
    Grpc(Option<u16>),
    /// A command in the container.
    Exec(Vec<String>),
    /// A port with this name, which the container does not have.
    NoSuchPort(String),
}
