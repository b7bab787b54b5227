//! The health checks of a job.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Command, HttpProbe};

/// The health checks of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The checks. The job is healthy when all of them pass (H2).
    pub checks: Vec<Check>,
    /// The TTL of the service's check in the catalog.
    pub ttl: Duration,
    /// The interval of heartbeats while the job is healthy. `None` sends one for every passing check (H6).
    pub heartbeat: Option<Duration>,
    /// What happens when the job becomes unhealthy (H8).
    pub on_unhealthy: OnUnhealthy,
}

/// One health check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Its name in the log.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// What is checked.
    pub probe: Probe,
    /// The time between two checks.
    pub interval: Duration,
    /// How long one check may take.
    pub timeout: Duration,
    /// How many failures in a row make the job unhealthy (H8).
    pub failures: u32,
    /// How many passes in a row it takes to become healthy (H9).
    pub successes: u32,
    /// How long after the start of the process failures do not count (H9).
    pub start_period: Duration,
    /// True if its output is written unchanged to the supervisor's stdout and stderr.
    pub raw_output: bool,
}

/// What is checked (H1, H5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Probe {
    /// The job is healthy as long as it runs.
    Running,
    /// The process has reported that it is ready (H11), and has not missed its watchdog (H12).
    Ready,
    /// A program must exit with code 0.
    Exec(Command),
    /// A URL must answer as expected (H10).
    Http(HttpProbe),
    /// An address must accept a connection.
    Tcp {
        /// Host name or address.
        #[serde(serialize_with = "crate::recorded::as_is")]
        host: String,
        /// Port.
        port: u16,
    },
}

impl Probe {
    /// Returns true if it runs no program and opens no connection: the core has the result.
    #[must_use]
    pub const fn is_passive(&self) -> bool {
        matches!(self, Self::Running | Self::Ready)
    }
}

/// What happens when a job becomes unhealthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnUnhealthy {
    /// Only its events are sent.
    Report,
    /// The job is restarted, within its `restarts`.
    Restart,
}
