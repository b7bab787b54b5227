//! Events: what happens to jobs and watches, as pairs of a source and a code (E1).

use alloc::string::String;
use core::fmt;

/// What happened. The names are those a configuration writes in `once`, `each` and `event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The supervisor is ready: configuration loaded, control socket and telemetry listening.
    Startup,
    /// The supervisor has been told to stop.
    Shutdown,
    /// Maintenance has begun: services leave the catalog, checks stop.
    EnterMaintenance,
    /// Maintenance is over.
    ExitMaintenance,
    /// A run of the job ended with code 0.
    ExitSuccess,
    /// A run of the job ended with another code, by a signal, or could not be started.
    ExitFailed,
    /// The job is about to be stopped, or is about to be complete.
    Stopping,
    /// The job is complete and will not run again.
    Stopped,
    /// The job, or a watched service, has become healthy.
    Healthy,
    /// The job, or a watched service, is not healthy.
    Unhealthy,
    /// The set of healthy instances of a watched service is another one.
    Changed,
    /// The job's `when.timeout` passed before it was started.
    TimerExpired,
    /// A signal has arrived.
    Signal,
}

impl Code {
    /// Every code that a configuration can name.
    pub const NAMED: [Self; 12] = [
        Self::Startup,
        Self::Shutdown,
        Self::EnterMaintenance,
        Self::ExitMaintenance,
        Self::ExitSuccess,
        Self::ExitFailed,
        Self::Stopping,
        Self::Stopped,
        Self::Healthy,
        Self::Unhealthy,
        Self::Changed,
        Self::TimerExpired,
    ];

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
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Changed => "changed",
            Self::TimerExpired => "timerExpired",
            Self::Signal => "signal",
        }
    }

    /// The name that 3.8 has for it where no configuration is read: in metrics.
    #[must_use]
    pub const fn old_name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Shutdown => "Shutdown",
            Self::EnterMaintenance => "EnterMaintenance",
            Self::ExitMaintenance => "ExitMaintenance",
            Self::ExitSuccess => "ExitSuccess",
            Self::ExitFailed => "ExitFailed",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Healthy => "StatusHealthy",
            Self::Unhealthy => "StatusUnhealthy",
            Self::Changed => "StatusChanged",
            Self::TimerExpired => "TimerExpired",
            Self::Signal => "Signal",
        }
    }

    /// The code of that name; case matters, as it always did.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|code| code.name() == name)
    }

    /// Whether the supervisor itself sends it, so that no `source` is needed.
    #[must_use]
    pub const fn is_global(self) -> bool {
        matches!(self, Self::Startup | Self::Shutdown | Self::EnterMaintenance | Self::ExitMaintenance)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A signal that jobs can wait for (W3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UserSignal {
    /// `SIGHUP`
    Hup,
    /// `SIGUSR2`
    Usr2,
}

impl UserSignal {
    /// The name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hup => "SIGHUP",
            Self::Usr2 => "SIGUSR2",
        }
    }

    /// The signal of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Hup, Self::Usr2].into_iter().find(|signal| signal.name() == name)
    }
}

/// Where an event comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The supervisor.
    Global,
    /// The job, or the jobs, of this name.
    Job(String),
    /// The watch of this name.
    Watch(String),
    /// A signal to the supervisor.
    Signal(UserSignal),
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => out.write_str("global"),
            Self::Job(name) => out.write_str(name),
            Self::Watch(name) => write!(out, "watch.{name}"),
            Self::Signal(signal) => out.write_str(signal.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_every_code_is_found_by_its_name_and_no_other() {
        for code in Code::NAMED {
            assert_eq!(Code::from_name(code.name()), Some(code));
        }
        assert_eq!(Code::from_name("exitsuccess"), None);
        assert_eq!(Code::from_name("signal"), None);
    }

    #[test]
    fn e1_a_watch_is_shown_with_its_prefix() {
        use alloc::string::ToString;
        assert_eq!(Source::Watch("db".into()).to_string(), "watch.db");
        assert_eq!(Source::Signal(UserSignal::Hup).to_string(), "SIGHUP");
    }
}
