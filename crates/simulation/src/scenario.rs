//! What the world does, and what is expected of it.

use std::fmt;
use std::time::Duration;

use containerpilot_config::duration;
use containerpilot_config::kinds::Choice;
use containerpilot_core::input::{ExitStatus, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};
use std::collections::BTreeMap;

use crate::moment::Moment;
use crate::world::script::Span;

/// What the world does, and what is expected of it.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// When a container that still runs is stopped.
    pub until: Option<Duration>,
    /// What jobs do, by name.
    pub jobs: BTreeMap<String, JobScript>,
    /// What watches see, by name, in the order of time.
    pub watches: BTreeMap<String, Vec<Observation>>,
    /// When the catalog cannot be reached.
    pub away: Vec<Span>,
    /// Which services the catalog forgets, by the name of the job.
    pub forgets: Vec<(Duration, String)>,
    /// What is done to the supervisor.
    pub actions: Vec<(Duration, Action)>,
    /// What must come of it.
    pub expectations: Vec<Expectation>,
}

/// The end of a rehearsal for which nothing else is said.
const USUAL_END: Duration = Duration::from_secs(60);
/// How long it goes on at least behind the last thing that the scenario names.
const AFTERMATH: Duration = Duration::from_secs(30);

impl Scenario {
    /// When a container that still runs is stopped.
    #[must_use]
    pub fn end(&self) -> Duration {
        let last = || {
            let actions = self.actions.iter().map(|(at, _)| *at);
            let observations = self.watches.values().flatten().map(|observation| observation.at);
            let spans = self.away.iter().map(|span| span.to.unwrap_or(span.from));
            let forgets = self.forgets.iter().map(|(at, _)| *at);
            let answers = self.jobs.values().flat_map(|script| &script.checks);
            let answers = answers.map(|answers| answers.span.to.unwrap_or(answers.span.from));
            let expected = self.expectations.iter().filter_map(Expectation::latest);
            let all = actions.chain(observations).chain(spans).chain(forgets).chain(answers).chain(expected);
            all.max().map_or(USUAL_END, |last| last.saturating_add(AFTERMATH).max(USUAL_END))
        };
        self.until.unwrap_or_else(last)
    }

    /// Whether the catalog cannot be reached at a moment, and if so, until when.
    #[must_use]
    pub fn outage_at(&self, at: Duration) -> Option<Option<Duration>> {
        self.away.iter().find(|span| span.contains(at)).map(|span| span.to)
    }
}

/// How long something lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// So long.
    For(Duration),
    /// For ever.
    Forever,
}

impl Lifetime {
    /// The time, unless it is for ever.
    #[must_use]
    pub const fn time(self) -> Option<Duration> {
        match self {
            Self::For(time) => Some(time),
            Self::Forever => None,
        }
    }
}

/// What the programs and the checks of a job do.
#[derive(Clone, Debug, Default)]
pub struct JobScript {
    /// Its runs; the last one stands for all that follow.
    pub runs: Vec<RunScript>,
    /// How its checks answer at which times; the last that fits counts.
    pub checks: Vec<CheckAnswers>,
}

/// One run, as far as something is said of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunScript {
    /// How long it takes until the process is there.
    pub starts_in: Duration,
    /// Why it cannot be started.
    pub fails: Option<StartErrorKind>,
    /// How long it lasts.
    pub lasts: Option<Lifetime>,
    /// How it then ends.
    pub status: Option<ExitStatus>,
    /// How long it takes to obey.
    pub stops_in: Option<Lifetime>,
    /// The code it exits with when it was asked to end.
    pub stop_exit: Option<u8>,
    /// From when on its checks pass.
    pub healthy_after: Option<Lifetime>,
}

/// How checks answer for a while.
#[derive(Clone, Debug)]
pub struct CheckAnswers {
    /// The check's name; nothing stands for all.
    pub check: Option<String>,
    /// When.
    pub span: Span,
    /// How.
    pub answer: CheckAnswer,
    /// How long it takes.
    pub takes: Duration,
}

/// What comes of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckAnswer {
    /// It passes.
    Pass,
    /// It fails.
    Fail,
    /// Nothing, until it is abort short.
    Hang,
}

impl Choice for CheckAnswer {
    const NAMES: &'static [&'static str] = &["pass", "fail", "hang"];
    const VALUES: &'static [Self] = &[Self::Pass, Self::Fail, Self::Hang];
    const OTHERS: &'static [(&'static str, &'static str)] =
        &[("ok", "pass"), ("healthy", "pass"), ("error", "fail"), ("unhealthy", "fail"), ("timeout", "hang")];
}

/// Why a program cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartFailure(pub StartErrorKind);

impl Choice for StartFailure {
    const NAMES: &'static [&'static str] = &["notFound", "notExecutable", "noResources", "other"];
    const VALUES: &'static [Self] = &[
        Self(StartErrorKind::NotFound),
        Self(StartErrorKind::NotExecutable),
        Self(StartErrorKind::NoResources),
        Self(StartErrorKind::Other),
    ];
}

/// What a watch sees from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When.
    pub at: Duration,
    /// How many healthy instances there are.
    pub instances: u16,
    /// How often they were replaced by others.
    pub generation: u32,
}

/// Something that is done to the supervisor.
#[derive(Clone, Debug)]
pub enum Action {
    /// A signal arrives.
    Signal(Signal),
    /// Maintenance begins or ends.
    Maintenance(bool),
    /// Somebody asks something of a job.
    Job(JobAction, String),
    /// Another configuration is loaded.
    Reload(String, Box<Plan>),
}

/// What is asked of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    /// To run now.
    Start,
    /// To stop.
    Stop,
    /// To stop, and to run anew.
    Restart,
    /// To take a signal.
    Send(Signal),
}

/// Something that must come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What.
    pub claim: Claim,
    /// What it is good for.
    pub why: Option<String>,
}

/// What must come of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// A moment comes, for the first time within a window; or so many times in it.
    See(Moment, Window, Option<u64>),
    /// A moment does not come within a window.
    Never(Moment, Window),
    /// A moment comes within a time of each of another that lies in a window.
    Follows(Moment, Duration, Moment, Window),
    /// A job is in a state, at a time or at the end.
    State(String, ExpectedState, Option<Duration>),
    /// The supervisor exits with a code, within a window.
    Exit(u8, Window),
}

/// The time between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// What it begins with.
    pub after: Option<Bound>,
    /// What it ends with.
    pub before: Option<Bound>,
}

/// A time, or something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A time.
    Time(Duration),
    /// The first of these.
    Moment(Moment),
}

/// How a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the words of `containerpilot status`")]
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
}

impl Choice for ExpectedState {
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
    /// The last time it names.
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

/// A time, as one writes it.
#[must_use]
pub fn time(time: Duration) -> String {
    duration::display(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
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
            Self::Time(at) => out.write_str(&time(*at)),
            Self::Moment(moment) => moment.fmt(out),
        }
    }
}

impl fmt::Display for Claim {
    /// The expectation in words.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::See(moment, window, None) => write!(out, "{moment}{window}"),
            Self::See(moment, window, Some(1)) => write!(out, "{moment} once{window}"),
            Self::See(moment, window, Some(times)) => write!(out, "{moment} {times} times{window}"),
            Self::Never(moment, window) => write!(out, "never {moment}{window}"),
            Self::Follows(moment, within, of, window) => {
                write!(out, "{moment} within {} of {of}{window}", time(*within))
            }
            Self::State(job, is, None) => write!(out, "{job} is {is} at the end"),
            Self::State(job, is, Some(at)) => write!(out, "{job} is {is} at {}", time(*at)),
            Self::Exit(code, window) => write!(out, "exit with {code}{window}"),
        }
    }
}
