//! The words for conditions, exits and deadlines. `explain`, `status`, `check` and `simulate` build their
//! sentences from these functions, so that one fact has one wording.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Display;

use crate::event::{Code, Source};
use crate::input::ExitStatus;
use crate::plan::Restarts;
use crate::report::status::DeadlineKind;

/// The start of every sentence about an unmet condition.
pub const WAITING_UNTIL: &str = "waiting until ";

/// What must happen, as a clause after "when" or "until": `db is healthy`, `migrate exits successfully`.
#[must_use]
pub fn condition(source: &str, code: Code) -> String {
    match code {
        Code::Startup => "the supervisor has started".into(),
        Code::Shutdown => "shutdown starts".into(),
        Code::EnterMaintenance => "maintenance mode starts".into(),
        Code::ExitMaintenance => "maintenance mode ends".into(),
        Code::ExitSuccess => format!("{source} exits successfully"),
        Code::ExitFailed => format!("{source} fails"),
        Code::Stopping => format!("{source} is stopping"),
        Code::Stopped => format!("{source} has stopped"),
        Code::Healthy => format!("{source} is healthy"),
        Code::Unhealthy => format!("{source} is unhealthy"),
        Code::Changed => format!("{source} changes"),
        Code::TimerExpired => format!("{source} gives up waiting"),
        Code::Signal => format!("{source} arrives"),
    }
}

/// An event as `source code`; the source is left out for the supervisor's own events, and the code for signals.
#[must_use]
pub fn event(source: &str, code: &str) -> String {
    if source == Source::Global.to_string() {
        code.into()
    } else if code == Code::Signal.name() {
        source.into()
    } else {
        format!("{source} {code}")
    }
}

/// A condition that a job waits for and that is not met, with the state of its source.
#[must_use]
pub fn unmet(condition: &str, state: &str, possible: bool) -> String {
    match (possible, state) {
        (false, _) => format!("{WAITING_UNTIL}{condition}, which can no longer happen"),
        (true, "") => format!("{WAITING_UNTIL}{condition}"),
        (true, state) => format!("{WAITING_UNTIL}{condition} ({state})"),
    }
}

/// A hook that a stopping job waits for (S2).
#[must_use]
pub fn pending_hook(hook: &str) -> String {
    format!("{WAITING_UNTIL}{hook} is complete")
}

/// What a timer of a job will do, and when.
#[must_use]
pub fn deadline(kind: DeadlineKind, left: impl Display) -> String {
    match kind {
        DeadlineKind::StartTimeout => format!("gives up in {left} unless started"),
        DeadlineKind::Tick => format!("next run in {left}"),
        DeadlineKind::Restart => format!("restarting in {left}"),
        DeadlineKind::ExecTimeout => format!("gives up in {left} unless its program is executed"),
        DeadlineKind::RunTimeout => format!("times out in {left}"),
        DeadlineKind::Hooks => format!("waiting for hooks, {left} left"),
        DeadlineKind::Deregister => format!("waiting for deregistration, {left} left"),
        DeadlineKind::Drain => format!("draining, {left} left"),
        DeadlineKind::Kill => format!("SIGKILL in {left} unless it exits"),
    }
}

/// How a run ended.
#[must_use]
pub fn exit(status: ExitStatus) -> String {
    format!("exited {status}")
}

/// A run that could not be started, and why.
#[must_use]
pub fn failed_start(ago: impl Display, why: &str) -> String {
    format!("failed to start {ago} ago: {why}")
}

/// A health check that fails, and why. The default name of a check already says that it is one.
#[must_use]
pub fn failing_check(name: &str, failures: u64, message: &str) -> String {
    let times = if failures > 1 { format!(" {failures} times in a row") } else { String::new() };
    let why = if message.is_empty() { String::new() } else { format!(": {message}") };
    let what = if name.starts_with("check.") { "" } else { "check " };
    format!("{what}{name} failed{times}{why}")
}

/// The restart policy of a job.
#[must_use]
pub fn restarts(restarts: Restarts) -> String {
    match restarts {
        Restarts::Limited(0) => "never restarted".into(),
        Restarts::Limited(1) => "restarted once".into(),
        Restarts::Limited(count) => format!("restarted {count} times"),
        Restarts::Unlimited => "restarted without limit".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Signal;

    #[test]
    fn x5_every_condition_is_a_clause() {
        assert_eq!(condition("migrate", Code::ExitSuccess), "migrate exits successfully");
        assert_eq!(condition("watch.db", Code::Healthy), "watch.db is healthy");
        assert_eq!(condition("SIGHUP", Code::Signal), "SIGHUP arrives");
        assert_eq!(unmet("db is healthy", "running", true), "waiting until db is healthy (running)");
        assert_eq!(
            unmet("db is healthy", "failed", false),
            "waiting until db is healthy, which can no longer happen"
        );
    }

    #[test]
    fn x5_a_failing_check_is_called_a_check_once() {
        assert_eq!(failing_check("check.web", 1, "no"), "check.web failed: no");
        assert_eq!(failing_check("alive", 2, ""), "check alive failed 2 times in a row");
    }

    #[test]
    fn x5_an_exit_on_a_signal_names_it() {
        assert_eq!(exit(ExitStatus::Signal(Signal::KILL)), "exited on SIGKILL");
    }
}
