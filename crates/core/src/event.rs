//! Events: pairs of a source and a code (E1).

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::signal::Signal;

/// What happened. The names are those of `once`, `each` and `event` in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Code {
    /// The supervisor is ready: configuration loaded, control socket and telemetry server listening.
    Startup,
    /// The supervisor shuts down.
    Shutdown,
    /// Maintenance mode starts: services leave the catalog, checks are suspended.
    EnterMaintenance,
    /// Maintenance mode ends.
    ExitMaintenance,
    /// A run of the job exited with code 0, or with one of `successCodes` (W13).
    ExitSuccess,
    /// A run of the job exited with another code or on a signal, or could not be started.
    ExitFailed,
    /// The job would be started more often than its `startLimit` allows (W14).
    CrashLoop,
    /// The job starts to stop.
    Stopping,
    /// The job has ended and does not run again.
    Stopped,
    /// A check of the job passed and the job is healthy, or a watched service has instances.
    Healthy,
    /// A check of the job failed and the job is unhealthy, or a watched service has no instances.
    Unhealthy,
    /// The job is healthy and was not.
    BecameHealthy,
    /// The job is unhealthy and was not.
    BecameUnhealthy,
    /// The process of the job has reported that it is ready (H11).
    Ready,
    /// The set of healthy instances of a watched service changed, or a rendered file was written.
    Changed,
    /// A file could not be rendered, or its test failed (D15).
    Failed,
    /// This supervisor has got the lock (D14).
    Acquired,
    /// This supervisor does not have the lock any longer, or gives it up before another can get it (D14).
    Lost,
    /// The job's `when.timeout` passed before the job was started.
    TimerExpired,
    /// A signal arrived.
    Signal,
}

impl Code {
    /// Every code that a configuration can name.
    pub const NAMED: [Self; 19] = [
        Self::Startup,
        Self::Shutdown,
        Self::EnterMaintenance,
        Self::ExitMaintenance,
        Self::ExitSuccess,
        Self::ExitFailed,
        Self::CrashLoop,
        Self::Stopping,
        Self::Stopped,
        Self::Healthy,
        Self::Unhealthy,
        Self::BecameHealthy,
        Self::BecameUnhealthy,
        Self::Ready,
        Self::Changed,
        Self::Failed,
        Self::Acquired,
        Self::Lost,
        Self::TimerExpired,
    ];

    /// The codes that jobs send.
    pub const OF_JOBS: [Self; 11] = [
        Self::ExitSuccess,
        Self::ExitFailed,
        Self::CrashLoop,
        Self::Stopping,
        Self::Stopped,
        Self::Healthy,
        Self::Unhealthy,
        Self::BecameHealthy,
        Self::BecameUnhealthy,
        Self::Ready,
        Self::TimerExpired,
    ];

    /// The codes that watches send.
    pub const OF_WATCHES: [Self; 3] = [Self::Changed, Self::Healthy, Self::Unhealthy];

    /// The codes that rendered files send.
    pub const OF_FILES: [Self; 2] = [Self::Changed, Self::Failed];

    /// The codes that locks send.
    pub const OF_LOCKS: [Self; 2] = [Self::Acquired, Self::Lost];

    /// The codes that the supervisor sends.
    pub const GLOBAL: [Self; 4] =
        [Self::Startup, Self::Shutdown, Self::EnterMaintenance, Self::ExitMaintenance];

    /// The name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Shutdown => "shutdown",
            Self::EnterMaintenance => "enterMaintenance",
            Self::ExitMaintenance => "exitMaintenance",
            Self::ExitSuccess => "exitSuccess",
            Self::ExitFailed => "exitFailed",
            Self::CrashLoop => "crashLoop",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::BecameHealthy => "becameHealthy",
            Self::BecameUnhealthy => "becameUnhealthy",
            Self::Ready => "ready",
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::Acquired => "acquired",
            Self::Lost => "lost",
            Self::TimerExpired => "timerExpired",
            Self::Signal => "signal",
        }
    }

    /// The name that 3.8 uses in metrics.
    #[must_use]
    pub const fn legacy_name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Shutdown => "Shutdown",
            Self::EnterMaintenance => "EnterMaintenance",
            Self::ExitMaintenance => "ExitMaintenance",
            Self::ExitSuccess => "ExitSuccess",
            Self::ExitFailed => "ExitFailed",
            Self::CrashLoop => "CrashLoop",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Healthy => "StatusHealthy",
            Self::Unhealthy => "StatusUnhealthy",
            Self::BecameHealthy => "BecameHealthy",
            Self::BecameUnhealthy => "BecameUnhealthy",
            Self::Ready => "Ready",
            Self::Changed => "StatusChanged",
            Self::Failed => "Failed",
            Self::Acquired => "Acquired",
            Self::Lost => "Lost",
            Self::TimerExpired => "TimerExpired",
            Self::Signal => "Signal",
        }
    }

    /// The code of that name. Case matters, as in 3.8.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|code| code.name() == name)
    }

    /// Returns true if the supervisor sends it, so that `source` may be left out.
    #[must_use]
    pub fn is_global(self) -> bool {
        Self::GLOBAL.contains(&self)
    }

    /// The event of the same source after which a condition with this event no longer holds (W12).
    #[must_use]
    pub const fn ended_by(self) -> Option<Self> {
        match self {
            Self::Healthy | Self::BecameHealthy => Some(Self::Unhealthy),
            Self::Acquired => Some(Self::Lost),
            _ => None,
        }
    }

    /// Returns true if the source of the event is all replicas of a job, not any of them (W20).
    #[must_use]
    pub const fn needs_all_replicas(self) -> bool {
        matches!(self, Self::Healthy | Self::BecameHealthy | Self::Ready | Self::ExitSuccess | Self::Stopped)
    }

    /// Returns true if a job sends it only after a start.
    #[must_use]
    pub const fn needs_a_run(self) -> bool {
        match self {
            Self::ExitSuccess
            | Self::ExitFailed
            | Self::CrashLoop
            | Self::Healthy
            | Self::Unhealthy
            | Self::BecameHealthy
            | Self::BecameUnhealthy
            | Self::Ready => true,
            Self::Startup
            | Self::Shutdown
            | Self::EnterMaintenance
            | Self::ExitMaintenance
            | Self::Stopping
            | Self::Stopped
            | Self::Changed
            | Self::Failed
            | Self::Acquired
            | Self::Lost
            | Self::TimerExpired
            | Self::Signal => false,
        }
    }

    /// Returns true if it marks that something stops. Jobs triggered by it still run during a shutdown (S3).
    #[must_use]
    pub const fn is_stop_event(self) -> bool {
        matches!(self, Self::Stopping | Self::Stopped | Self::Shutdown)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Where an event comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The supervisor.
    Global,
    /// The job, or the jobs, of this name.
    Job(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// The watch of this name.
    Watch(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// The rendered file of this name.
    File(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// The lock of this name.
    Lock(#[serde(serialize_with = "crate::recorded::as_is")] String),
    /// A signal to the supervisor.
    Signal(Signal),
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => out.write_str("global"),
            Self::Job(name) => out.write_str(name),
            Self::Watch(name) => write!(out, "watch.{name}"),
            Self::File(name) => write!(out, "file.{name}"),
            Self::Lock(name) => write!(out, "lock.{name}"),
            Self::Signal(signal) => signal.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_every_code_is_found_by_its_name() {
        for code in Code::NAMED {
            assert_eq!(Code::from_name(code.name()), Some(code));
        }
        assert_eq!(Code::from_name("exitsuccess"), None);
        assert_eq!(Code::from_name("signal"), None);
    }

    #[test]
    fn e1_sources_are_shown_as_in_a_configuration() {
        use alloc::string::ToString;
        assert_eq!(Source::Watch("db".into()).to_string(), "watch.db");
        assert_eq!(Source::Signal(Signal::HUP).to_string(), "SIGHUP");
    }
}
