//! A scenario: what the world does, and what is expected.

use std::fmt;
use std::time::Duration;

use containerpilot_config::duration::exact;
use containerpilot_config::values::Keyword;
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};
use std::collections::BTreeMap;

use crate::defaults;
use crate::moment::Moment;
use crate::world::script::{Period, SignalSet};

/// What the world does, and what is expected.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// When the supervisor is stopped, if it still runs.
    pub until: Option<Duration>,
    /// The system clock at the start: the time since 1970.
    pub clock: Option<Duration>,
    /// What jobs do, by name.
    pub jobs: BTreeMap<String, JobScript>,
    /// What watches see, by name, in the order of time.
    pub watches: BTreeMap<String, Vec<Observation>>,
    /// From when on the supervisor has a lock or not, by name, in the order of time.
    pub locks: BTreeMap<String, LockChanges>,
    /// What happens when files are rendered, by name.
    pub files: BTreeMap<String, FileScript>,
    /// When the catalog is unreachable.
    pub outages: Vec<Period>,
    /// When the catalog loses a service, by the name of its job.
    pub forgets: Vec<(Duration, String)>,
    /// The actions on the supervisor.
    pub actions: Vec<(Duration, Action)>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
}

/// From when on the supervisor has a lock, or does not, in the order of time.
pub type LockChanges = Vec<(Duration, bool)>;

impl Scenario {
    /// When the supervisor is stopped, if it still runs.
    #[must_use]
    pub fn end(&self) -> Duration {
        let last = || {
            let actions = self.actions.iter().map(|(at, _)| *at);
            let observations = self.watches.values().flatten().map(|observation| observation.at);
            let outages = self.outages.iter().map(|period| period.to.unwrap_or(period.from));
            let forgets = self.forgets.iter().map(|(at, _)| *at);
            let locks = self.locks.values().flatten().map(|(at, _)| *at);
            // Those of a run have no place in time.
            let answers = self.jobs.values().flat_map(|script| &script.checks);
            let answers = answers.map(|answers| answers.period.to.unwrap_or(answers.period.from));
            let files = self.files.values().flat_map(|script| {
                let tests = script.tests.iter().map(|test| test.period);
                script.fails.iter().copied().chain(tests)
            });
            let files = files.map(|period| period.to.unwrap_or(period.from));
            let expected = self.expectations.iter().filter_map(Expectation::latest);
            let all = actions
                .chain(observations)
                .chain(outages)
                .chain(forgets)
                .chain(answers)
                .chain(files)
                .chain(expected)
                .chain(locks);
            defaults::end(all.max())
        };
        self.until.unwrap_or_else(last)
    }

    /// The end of the outage of the catalog at a time, if there is an outage.
    #[must_use]
    pub fn outage_at(&self, at: Duration) -> Option<Option<Duration>> {
        self.outages.iter().find(|period| period.contains(at)).map(|period| period.to)
    }
}

/// How long something lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// This time.
    For(Duration),
    /// Without an end.
    Forever,
}

impl Lifetime {
    /// The time, if there is an end.
    #[must_use]
    pub const fn time(self) -> Option<Duration> {
        match self {
            Self::For(time) => Some(time),
            Self::Forever => None,
        }
    }
}

/// What the programs and the checks of a job do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobScript {
    /// Its runs; the last one is repeated.
    pub runs: Vec<RunScript>,
    /// The results of its checks at certain times; the last that applies counts.
    pub checks: Vec<CheckAnswers>,
}

/// One run. `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunScript {
    /// How long it takes to start.
    pub starts_in: Option<Lifetime>,
    /// Why it cannot be started.
    pub fails: Option<StartErrorKind>,
    /// How long it lasts.
    pub lasts: Option<Lifetime>,
    /// How it exits then.
    pub status: Option<ExitStatus>,
    /// How long it takes to exit on a signal.
    pub stops_in: Option<Lifetime>,
    /// Its exit code on a stop signal.
    pub stop_exit: Option<u8>,
    /// The signals that it goes on after.
    pub ignores: SignalSet,
    /// How long other processes of its process group go on after its exit (S14).
    pub outlived_for: Option<Lifetime>,
    /// When its checks start to pass, counted from its start.
    pub healthy_after: Option<Lifetime>,
    /// When it says that it is ready, counted from its start.
    pub ready: Option<Lifetime>,
    /// When it stops to send `WATCHDOG=1`, counted from its start.
    pub watchdog_stops: Option<Lifetime>,
    /// How long its drain program takes (S11).
    pub drain: Option<Lifetime>,
    /// True if its drain program fails.
    pub drain_fails: bool,
    /// The results of its checks at certain times, counted from its start; the last that applies counts.
    pub checks: Vec<CheckAnswers>,
}

/// What happens when a file is rendered (D15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileScript {
    /// How long a rendering takes, and then the writing.
    pub takes: Duration,
    /// When its template has an error.
    pub fails: Vec<Period>,
    /// The results of its test.
    pub tests: Vec<CheckAnswers>,
}

/// The result of checks for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckAnswers {
    /// The name of the check; all checks without one.
    pub check: Option<String>,
    /// When.
    pub period: Period,
    /// The result.
    pub answer: CheckAnswer,
    /// How long it takes.
    pub takes: Duration,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    /// It passes.
    Pass,
    /// It fails.
    Fail,
    /// It hangs until it is canceled.
    Hang,
}

impl Keyword for CheckAnswer {
    const NAMES: &'static [&'static str] = &["pass", "fail", "hang"];
    const VALUES: &'static [Self] = &[Self::Pass, Self::Fail, Self::Hang];
    const OTHERS: &'static [(&'static str, &'static str)] =
        &[("ok", "pass"), ("healthy", "pass"), ("error", "fail"), ("unhealthy", "fail"), ("timeout", "hang")];
}

/// Why a program cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartFailure(pub StartErrorKind);

impl Keyword for StartFailure {
    const NAMES: &'static [&'static str] =
        &["notFound", "notExecutable", "noDescriptors", "noResources", "other"];
    const VALUES: &'static [Self] = &[
        Self(StartErrorKind::NotFound),
        Self(StartErrorKind::NotExecutable),
        Self(StartErrorKind::NoDescriptors),
        Self(StartErrorKind::NoResources),
        Self(StartErrorKind::Other),
    ];
}

/// What a watch sees from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When.
    pub at: Duration,
    /// How many healthy instances there are. For a watch of another kind, 0 if what it watches is gone or down.
    pub instances: u16,
    /// The contents of a file or a response.
    pub value: Option<String>,
    /// How often they were replaced by others.
    pub generation: u32,
}

/// An action on the supervisor.
#[derive(Clone, Debug)]
pub enum Action {
    /// A signal arrives.
    Signal(Signal),
    /// Maintenance mode starts or ends.
    Maintenance(bool),
    /// A command for a job.
    Job(JobAction, String),
    /// A job gets another number of replicas.
    Scale(String, u16),
    /// Another configuration is loaded, by its path.
    Reload(String, Box<Plan>),
    /// A variable is set for processes that start from now on, or unset.
    PutVariable(String, Option<String>),
    /// The system clock is set, or the machine was asleep: the time since 1970.
    Clock(Duration),
}

/// A command for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Stop it and start it again.
    Restart,
    /// Restart its replicas one at a time.
    RollingRestart,
    /// Send it a signal.
    Send(Signal),
}

/// An expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What.
    pub claim: Claim,
    /// Why the user expects it.
    pub why: Option<String>,
}

/// What is expected.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// A moment happens for the first time within a window; or this many times in it.
    See(Moment, Window, Option<u64>),
    /// A moment does not happen within a window.
    Never(Moment, Window),
    /// A moment follows each occurrence of another moment in a window within a time.
    Follows(Moment, Duration, Moment, Window),
    /// A job is in a state, at a time or at the end.
    State(String, ExpectedState, Option<Duration>),
    /// The supervisor exits with a code, within a window.
    Exit(u8, Window),
}

/// The time between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Its start.
    pub after: Option<Bound>,
    /// Its end.
    pub before: Option<Bound>,
}

/// A time, or a moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A time.
    Time(Duration),
    /// The first occurrence of a moment.
    Moment(Moment),
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of `containerpilot status`")]
pub enum ExpectedState {
    Waiting,
    Starting,
    Running,
    Healthy,
    Unhealthy,
    Restarting,
    Stopping,
    Stopped,
    Complete,
    Failed,
    Skipped,
}

impl Keyword for ExpectedState {
    const NAMES: &'static [&'static str] = &[
        "waiting",
        "starting",
        "running",
        "healthy",
        "unhealthy",
        "restarting",
        "stopping",
        "stopped",
        "complete",
        "failed",
        "skipped",
    ];
    const VALUES: &'static [Self] = &[
        Self::Waiting,
        Self::Starting,
        Self::Running,
        Self::Healthy,
        Self::Unhealthy,
        Self::Restarting,
        Self::Stopping,
        Self::Stopped,
        Self::Complete,
        Self::Failed,
        Self::Skipped,
    ];
    const OTHERS: &'static [(&'static str, &'static str)] =
        &[("up", "running"), ("done", "complete"), ("finished", "complete"), ("started", "running")];
}

impl fmt::Display for ExpectedState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::VALUES.iter().zip(Self::NAMES).find(|(value, _)| *value == self);
        out.write_str(name.map_or("", |(_, name)| name))
    }
}

impl Expectation {
    /// The latest time it names.
    fn latest(&self) -> Option<Duration> {
        let of = |window: &Window| {
            let bounds = [&window.after, &window.before];
            let times = bounds.into_iter().flatten().filter_map(|bound| match bound {
                Bound::Time(time) => Some(*time),
                Bound::Moment(_) => None,
            });
            times.max()
        };
        match &self.claim {
            Claim::See(_, window, _)
            | Claim::Never(_, window)
            | Claim::Exit(_, window)
            | Claim::Follows(_, _, _, window) => of(window),
            Claim::State(_, _, at) => *at,
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(after) = &self.after {
            write!(out, " after {after}")?;
        }
        if let Some(before) = &self.before {
            let and = if self.after.is_some() { " and" } else { "" };
            write!(out, "{and} before {before}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(at) => out.write_str(&exact(*at)),
            Self::Moment(moment) => moment.fmt(out),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::See(moment, window, None) => write!(out, "{moment}{window}"),
            Self::See(moment, window, Some(1)) => write!(out, "{moment} once{window}"),
            Self::See(moment, window, Some(times)) => write!(out, "{moment} {times} times{window}"),
            Self::Never(moment, window) => write!(out, "never {moment}{window}"),
            Self::Follows(moment, within, of, window) => {
                write!(out, "{moment} within {} of {of}{window}", exact(*within))
            }
            Self::State(job, is, None) => write!(out, "{job} is {is} at the end"),
            Self::State(job, is, Some(at)) => write!(out, "{job} is {is} at {}", exact(*at)),
            Self::Exit(code, window) => write!(out, "exit with {code}{window}"),
        }
    }
}
