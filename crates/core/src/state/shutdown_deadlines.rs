//! The deadlines of the phases of a shutdown (S4, S15). All of them take their time from one budget:
//!
//! ```text
//! in order            not in order        T is the global stop timeout, H the longest chain of stop hooks; counted
//!                                         from the start of the shutdown
//! -----------------   -----------------   -----------------------------------------------------------------------
//! H + T               T × 3/4             deregistration, drain and order are over: every process gets its signal
//! H + 2T              T                   every remaining process gets SIGKILL
//! H + 2T + 400 ms     T + 400 ms          killed processes have exited, or are left behind
//! H + 2T + 450 ms     T + 450 ms          so have processes that belong to no job
//! H + 2T + 500 ms     T + 500 ms          the catalog has confirmed the last deregistration, or has not
//! H + 2T + 700 ms     T + 700 ms          the log is written
//! H + 2T + 750 ms     T + 750 ms          connections are closed; what is exported is sent, or dropped
//! H + 2T + 1 s        T + 1 s             the promise; the last quarter of a second is for the scheduler of a busy machine
//! ```
//!
//! A phase that is done early leaves its time to the next ones. A plan with hooks, coprocesses or requirements stops in
//! order. In another one, only deregistration (at most `T` / 4, S2) and `drain` delay a stop signal; a longer drain is
//! cut, so that the process has time to react to its signal. Hooks have times of their own, at which they are killed.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::effect::{Exit, ExitDeadlines};
use crate::log_entry::LogEvent;
use crate::plan::{Level, Plan};
use crate::state::dependency_graph::DependencyGraph;
use crate::state::exit_codes::ExitReason;
use crate::state::longest_stop::hook_time;
use crate::time::Time;

/// The bounds of the last phases, counted from the last SIGKILL.
const REAP: Duration = Duration::from_millis(400);
const DESCENDANTS: Duration = Duration::from_millis(450);
const DEREGISTER: Duration = Duration::from_millis(500);
const LOG: Duration = Duration::from_millis(700);
const CONNECTIONS: Duration = Duration::from_millis(750);

/// How long the exit waits for a collector (T6), even if the shutdown was fast.
const EXPORT: Duration = Duration::from_secs(1);

/// The log gets this long even if the supervisor is late.
const MIN_LOG: Duration = Duration::from_millis(200);

/// The deadlines of a shutdown.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ShutdownDeadlines {
    /// When the order, deregistration and drain are over: every process gets its stop signal.
    pub(crate) signal_by: Time,
    /// When every remaining process gets SIGKILL.
    pub(crate) kill_by: Time,
    /// How long that is after the start of the shutdown.
    pub(crate) longest: Duration,
    /// The part of it that is not for hooks.
    pub(crate) without_hooks: Duration,
}

impl ShutdownDeadlines {
    /// Those of a shutdown that starts now.
    pub(crate) fn new(plan: &Plan, graph: &DependencyGraph, now: Time) -> Self {
        let hooks = hook_time(plan, graph);
        let [signal, kill] = plan.shutdown_timeouts(hooks);
        let without_hooks = kill.saturating_sub(hooks);
        Self { signal_by: now + signal, kill_by: now + kill, longest: kill, without_hooks }
    }

    /// A process gets its stop signal only now. A supervisor that was suspended still gives it time to react.
    pub(crate) fn signalled(&mut self, plan: &Plan, now: Time) {
        self.kill_by = self.kill_by.max(now + plan.stop_timeout / 4);
    }

    /// Everything is killed now: earlier than planned (S1), or later if the supervisor was suspended.
    pub(crate) fn killed(&mut self, now: Time) {
        self.kill_by = now;
    }

    /// How long killed processes are waited for.
    pub(crate) fn reap_by(&self) -> Time {
        self.kill_by + REAP
    }

    /// The deadlines of an exit that starts now.
    pub(crate) fn exit_deadlines(&self, plan: &Plan, now: Time) -> ExitDeadlines {
        // What hooks have not needed is not spent on a log that is not read.
        let kill_by = self.kill_by.min(now + self.without_hooks);
        let log = (kill_by + LOG).max(now + MIN_LOG);
        let connections = log + (CONNECTIONS - LOG);
        ExitDeadlines {
            descendants: (now + Duration::from_secs(1)).min(kill_by + DESCENDANTS),
            deregister: (now + plan.deregister_timeout()).min(kill_by + DEREGISTER),
            log,
            export: connections.min(now + EXPORT),
            connections,
        }
    }
}

impl Exit {
    /// An exit that the core could not decide, because of an internal error, after all jobs were killed.
    #[must_use]
    pub fn at_once(code: u8, plan: &Plan, now: Time) -> Self {
        let none = Duration::ZERO;
        let shutdown = ShutdownDeadlines { signal_by: now, kill_by: now, longest: none, without_hooks: none };
        let reason = ExitReason { code, words: "internal error".into(), cause: LogEvent::Bug.name().into() };
        Self { code, entry: reason.entry(Level::Error), deadlines: shutdown.exit_deadlines(plan, now) }
    }
}
