//! The words for conditions, exits, deadlines and the longest stop. `explain`, `status`, `check` and `simulate` build
//! their sentences from these functions, so that one fact has one wording.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use crate::event::{Code, Source};
use crate::input::ExitStatus;
use crate::plan::{Job, Plan, RestartOn, Restarts};
use crate::report::deadlines::DeadlineKind;
use crate::state::journal::EndReason;
use crate::state::longest_stop::{LongestStop, StopStep};
use crate::time::fmt_duration;

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
        Code::CrashLoop => format!("{source} reaches its start limit"),
        Code::Stopping => format!("{source} is stopping"),
        Code::Stopped => format!("{source} has stopped"),
        Code::Healthy => format!("{source} is healthy"),
        Code::Unhealthy => format!("{source} is unhealthy"),
        Code::BecameHealthy => format!("{source} becomes healthy"),
        Code::BecameUnhealthy => format!("{source} becomes unhealthy"),
        Code::Ready => format!("{source} is ready"),
        Code::Changed => format!("{source} changes"),
        Code::Failed => format!("{source} cannot be rendered"),
        Code::Acquired => format!("{source} is acquired"),
        Code::Lost => format!("{source} is lost"),
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

/// What has not happened, as a clause before "within": `db was not healthy`, `migrate did not exit successfully`.
#[must_use]
pub fn missed(source: &str, code: Code) -> String {
    match code {
        Code::Startup => "the supervisor did not start".into(),
        Code::Shutdown => "no shutdown started".into(),
        Code::EnterMaintenance => "maintenance mode did not start".into(),
        Code::ExitMaintenance => "maintenance mode did not end".into(),
        Code::ExitSuccess => format!("{source} did not exit successfully"),
        Code::ExitFailed => format!("{source} did not fail"),
        Code::CrashLoop => format!("{source} did not reach its start limit"),
        Code::Stopping | Code::Stopped => format!("{source} did not stop"),
        Code::Healthy => format!("{source} was not healthy"),
        Code::Unhealthy => format!("{source} was not unhealthy"),
        Code::BecameHealthy => format!("{source} did not become healthy"),
        Code::BecameUnhealthy => format!("{source} did not become unhealthy"),
        Code::Ready => format!("{source} was not ready"),
        Code::Changed => format!("{source} did not change"),
        Code::Failed => format!("{source} could be rendered"),
        Code::Acquired => format!("{source} was not acquired"),
        Code::Lost => format!("{source} was not lost"),
        Code::TimerExpired => format!("{source} did not give up waiting"),
        Code::Signal => format!("{source} did not arrive"),
    }
}

/// A condition that a job waits for and that is not met, as a clause after "until", with the state of its source.
/// `seen` is true if its event has come before: the job waits for the next one.
#[must_use]
pub fn unmet(condition: &str, state: &str, possible: bool, seen: bool) -> String {
    let again = if seen { " again" } else { "" };
    match (possible, state) {
        (false, _) => format!("{condition}, which can no longer happen"),
        (true, "") => format!("{condition}{again}"),
        (true, state) => format!("{condition}{again} ({state})"),
    }
}

/// Returns true if an unmet condition matters: of several of which any starts a job, those that can no longer happen do
/// not, as long as another one can.
#[must_use]
pub const fn matters(possible: bool, needs_all: bool, any_possible: bool) -> bool {
    possible || needs_all || !any_possible
}

/// What a job waits for, for [`waiting`].
#[derive(Debug, Default)]
pub struct Waits<'a> {
    /// The name of the job if only a user starts it.
    pub manual: Option<&'a str>,
    /// True if its start waits for its turn.
    pub queued: bool,
    /// Its unmet conditions, as [`unmet`] words them, and whether each can still happen.
    pub unmet: Vec<(String, bool)>,
    /// True if it needs all conditions, not any of them.
    pub needs_all: bool,
    /// True if it has conditions, met or unmet.
    pub has_conditions: bool,
    /// What it requires that is not there, as [`missing_requirement`] words it.
    pub missing: Vec<String>,
    /// What must end first, as [`pending_hook`] and [`must_end`] word it.
    pub ends: Vec<String>,
}

/// What a job waits for in one sentence; `None` if it waits for nothing but its timers.
#[must_use]
pub fn waiting(waits: Waits<'_>) -> Option<String> {
    let Waits { manual, queued, unmet, needs_all, has_conditions, missing, ends } = waits;
    if let Some(job) = manual {
        return Some(self::manual(job));
    }
    if queued {
        return Some(QUEUED.into());
    }
    let any_possible = unmet.iter().any(|(_, possible)| *possible);
    let mut conditions = String::new();
    for (text, _) in unmet.iter().filter(|(_, possible)| matters(*possible, needs_all, any_possible)) {
        match conditions.as_str() {
            "" => conditions = format!("{WAITING_UNTIL}{text}"),
            _ => conditions += &format!(" {} {text}", conjunction(needs_all)),
        }
    }
    match (missing.is_empty(), conditions.as_str()) {
        (false, "") => Some(missing.join("; ")),
        (false, _) => Some(format!("{conditions}; {}", missing.join("; "))),
        (true, "") if !ends.is_empty() => Some(format!("{WAITING_UNTIL}{}", ends.join(" and "))),
        (true, "") => has_conditions.then(|| ALL_MET.into()),
        (true, _) => Some(conditions),
    }
}

/// The word between two conditions of a job that waits for all or for any of them.
#[must_use]
pub const fn conjunction(needs_all: bool) -> &'static str {
    if needs_all { "and" } else { "or" }
}

/// All conditions of a job that runs each time they become true are met (W12).
pub const ALL_MET: &str = "all conditions are met; it runs again when one has ended and is met again";

/// What a job is doing whose start waits for its turn (P14).
pub const QUEUED: &str = "waiting for its turn to start";

/// Why a start waits for its turn: how many processes are being started, and how many starts come before it.
#[must_use]
pub fn turn(starting: usize, before: usize) -> String {
    let processes = if starting == 1 { "process is" } else { "processes are" };
    match before {
        0 => format!("{starting} {processes} being started; it is next"),
        1 => format!("{starting} {processes} being started; 1 other start comes first"),
        _ => format!("{starting} {processes} being started; {before} other starts come first"),
    }
}

/// A hook that a stopping job waits for (S2), as a clause after "until".
#[must_use]
pub fn pending_hook(hook: &str) -> String {
    format!("{hook} is complete")
}

/// A job that must end before another one stops (S10), as a clause after "until".
#[must_use]
pub fn must_end(job: &str) -> String {
    format!("{job} has ended")
}

/// A requirement that does not hold (W18), with what its source is doing: `waiting for db, which is starting`.
#[must_use]
pub fn missing_requirement(source: &str, state: &str) -> String {
    format!("waiting for {source}, which {state}")
}

/// What a timer of a job will do, and when. `runs` is true if the job has a process: its next tick may be skipped.
#[must_use]
pub fn deadline(kind: DeadlineKind, runs: bool, left: impl Display) -> String {
    match kind {
        DeadlineKind::StartTimeout => format!("gives up in {left} unless started"),
        DeadlineKind::Tick if runs => format!("next tick in {left}"),
        DeadlineKind::Tick => format!("next run in {left}"),
        DeadlineKind::Restart => format!("restarting in {left}"),
        DeadlineKind::ExecTimeout => format!("gives up in {left} unless its program is executed"),
        DeadlineKind::RunTimeout => format!("times out in {left}"),
        DeadlineKind::Hooks => format!("waiting for hooks, {left} left"),
        DeadlineKind::Deregister => format!("waiting for deregistration, {left} left"),
        DeadlineKind::Drain => format!("draining, {left} left"),
        DeadlineKind::Escalate => format!("next stop signal in {left} unless it exits"),
        DeadlineKind::Kill => format!("SIGKILL in {left} unless it exits"),
    }
}

/// A job that only a user starts (W17).
#[must_use]
pub fn manual(job: &str) -> String {
    format!("manual: start it with `start {job}`")
}

/// The next time of a schedule (W15), as a suffix: `, at 2026-03-29T01:00:00Z (0 3 * * *, Europe/Berlin)`.
#[must_use]
pub fn cron(next: Option<&str>, text: &str, zone: &str) -> String {
    let at = next.map_or_else(String::new, |next| format!(", at {next}"));
    format!("{at} ({text}, {zone})")
}

/// A service in the catalog (D11): its desired state, the one that the catalog has confirmed (`unknown` if none), since
/// when, and the last error.
#[must_use]
pub fn service(desired: &str, confirmed: &str, since: Option<impl Display>, error: Option<&str>) -> String {
    let since = since.map_or_else(String::new, |since| format!(" for {since}"));
    match (confirmed, desired, error) {
        ("unknown", "absent", None) => "not advertised".into(),
        ("unknown", _, None) => format!("wanted: {desired}; not confirmed by the catalog yet"),
        ("unknown", _, Some(error)) => {
            format!("wanted: {desired}; not confirmed by the catalog{since}: {error}")
        }
        ("absent", "absent", _) => format!("not in the catalog{since}"),
        ("absent", ..) => format!("wanted: {desired}; not in the catalog{since}"),
        (same, _, _) if same == desired => format!("{desired} in the catalog{since}"),
        _ => format!("wanted: {desired}; {confirmed} in the catalog{since}"),
    }
}

/// How a run ended.
#[must_use]
pub fn exit(status: ExitStatus) -> String {
    format!("exited {status}")
}

/// How a run ended that the supervisor may have ended.
#[must_use]
pub fn run_exit(status: ExitStatus, ended_by: Option<&str>) -> String {
    let short = match status {
        ExitStatus::Code(code) => format!("code {code}"),
        ExitStatus::Signal(signal) => signal.to_string(),
    };
    match ended_by {
        Some(reason) if reason == EndReason::Timeout.name() => format!("timed out ({short})"),
        Some(reason) if reason == EndReason::Unhealthy.name() => format!("{} after {reason}", exit(status)),
        _ => exit(status),
    }
}

/// How many runs in a row have failed, if several have (X9).
#[must_use]
pub fn failures_in_a_row(failed_runs: u64) -> Option<String> {
    (failed_runs > 1).then(|| format!("{failed_runs} failures in a row"))
}

/// How the last run ended, and how many runs in a row have failed (X9).
#[must_use]
pub fn last_run(ending: String, failed_runs: u64) -> String {
    match failures_in_a_row(failed_runs) {
        Some(count) => format!("{ending}, {count}"),
        None => ending,
    }
}

/// A run that could not be started.
pub const FAILED_START: &str = "failed to start";

/// An action that was refused.
pub const REFUSED: &str = "was refused";

/// An action that was refused, and why.
#[must_use]
pub fn refused(ago: impl Display, why: &str) -> String {
    format!("{REFUSED} {ago} ago: {why}")
}

/// A last run without a process, whose reason is not known.
pub const NOT_STARTED: &str = "could not be started";

/// A process that is not ready (H11).
pub const NOT_READY: &str = "not ready yet";

/// A lock (D14): its fencing number while it is held, otherwise why it is not. `age` is empty, or begins with a space.
#[must_use]
pub fn lock(fencing: Option<u64>, age: &str, why: Option<&str>) -> String {
    match (fencing, why) {
        (Some(fencing), _) => format!("held{age}, fencing number {fencing}"),
        (None, Some(why)) => format!("not held{age}: {why}"),
        (None, None) => format!("not held{age}"),
    }
}

/// A run that could not be started, and why.
#[must_use]
pub fn failed_start(ago: impl Display, why: &str) -> String {
    format!("{FAILED_START} {ago} ago: {why}")
}

/// A health check that fails, and why. Until `needed` failures in a row the job is not unhealthy. The default name of a
/// check already says that it is one.
#[must_use]
pub fn failing_check(name: &str, failures: u64, needed: u64, message: &str) -> String {
    let times = match failures {
        failures if (1..needed).contains(&failures) => format!(" ({failures} of {needed} failures)"),
        2.. => format!(" {failures} times in a row"),
        _ => String::new(),
    };
    let why = if message.is_empty() { String::new() } else { format!(": {message}") };
    let what = if name.starts_with("check.") { "" } else { "check " };
    format!("{what}{name} failed{times}{why}")
}

/// The restart policy of a job: how often, after which runs (W13) and up to which limit (W14).
#[must_use]
pub fn restart_policy(job: &Job) -> String {
    let after = match job.restart_on {
        RestartOn::Exit => "",
        RestartOn::Failure => " after a failure",
        RestartOn::Success => " after a success",
    };
    let limit = job.start_limit.map_or_else(String::new, |limit| {
        format!(", at most {} starts within {}", limit.count, fmt_duration(limit.within))
    });
    format!("{}{after}{limit}", restarts(job.restarts))
}

/// How often a job is restarted.
#[must_use]
pub fn restarts(restarts: Restarts) -> String {
    match restarts {
        Restarts::Limited(0) => "never restarted".into(),
        Restarts::Limited(1) => "restarted once".into(),
        Restarts::Limited(count) => format!("restarted {count} times"),
        Restarts::Unlimited => "restarted without limit".into(),
    }
}

impl LongestStop {
    /// What takes the time: `app gets SIGTERM after 5s and SIGKILL 10s later, then …`
    #[must_use]
    pub fn words(&self, plan: &Plan) -> String {
        let words = |step: &StopStep| {
            let job = plan.jobs.get(step.job.index())?;
            let (name, signal) = (&job.name, job.stop.signal);
            let length = fmt_duration(step.to.saturating_sub(step.from));
            let start = match step.from.is_zero() {
                true => "at once".into(),
                false => format!("after {}", fmt_duration(step.from)),
            };
            Some(match step.is_hook {
                true => format!("{name} runs {start}, for up to {length}"),
                false => format!("{name} gets {signal} {start} and SIGKILL {length} later"),
            })
        };
        let mut parts: Vec<String> = self.steps.iter().filter_map(words).collect();
        parts.push("the supervisor exits within 1s".into());
        parts.join(", then ")
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use super::*;
    use crate::plan::Signal;

    #[test]
    fn x5_every_condition_is_a_clause() {
        assert_eq!(condition("migrate", Code::ExitSuccess), "migrate exits successfully");
        assert_eq!(condition("watch.db", Code::Healthy), "watch.db is healthy");
        assert_eq!(condition("SIGHUP", Code::Signal), "SIGHUP arrives");
        assert_eq!(unmet("db is healthy", "running", true, false), "db is healthy (running)");
        assert_eq!(unmet("db has stopped", "stopped", true, true), "db has stopped again (stopped)");
        assert_eq!(
            unmet("db is healthy", "failed", false, true),
            "db is healthy, which can no longer happen"
        );
    }

    #[test]
    fn x5_what_a_job_waits_for_is_one_sentence() {
        let unmet = || vec![("a fails".to_owned(), true), ("b fails".to_owned(), false)];
        let either = Waits { unmet: unmet(), has_conditions: true, ..Waits::default() };
        assert_eq!(waiting(either).as_deref(), Some("waiting until a fails"));
        let missing = vec!["waiting for c, which is starting".to_owned()];
        let both = Waits { unmet: unmet(), needs_all: true, missing, ..Waits::default() };
        assert_eq!(
            waiting(both).as_deref(),
            Some("waiting until a fails and b fails; waiting for c, which is starting")
        );
        let ends = vec![pending_hook("x"), must_end("y")];
        let stop = Waits { ends, ..Waits::default() };
        assert_eq!(waiting(stop).as_deref(), Some("waiting until x is complete and y has ended"));
        assert_eq!(waiting(Waits { has_conditions: true, ..Waits::default() }).as_deref(), Some(ALL_MET));
        assert_eq!(waiting(Waits::default()), None);
    }

    #[test]
    fn x5_a_failing_check_is_called_a_check_once() {
        assert_eq!(failing_check("check.web", 1, 1, "no"), "check.web failed: no");
        assert_eq!(failing_check("alive", 2, 1, ""), "check alive failed 2 times in a row");
        assert_eq!(failing_check("alive", 2, 3, "no"), "check alive failed (2 of 3 failures): no");
    }

    #[test]
    fn x5_an_exit_on_a_signal_names_it() {
        let killed = ExitStatus::Signal(Signal::KILL);
        assert_eq!(exit(killed), "exited on SIGKILL");
        assert_eq!(run_exit(killed, Some("timeout")), "timed out (SIGKILL)");
        assert_eq!(run_exit(killed, Some("failed checks")), "exited on SIGKILL after failed checks");
        assert_eq!(run_exit(ExitStatus::Code(1), None), "exited with code 1");
    }
}
