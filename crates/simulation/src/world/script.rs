//! A [`Script`] decides what programs, checks and the catalog do.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::ids::{CheckIx, FileIx, JobIx, WatchIx};
use containerpilot_core::input::{Answer, ExitStatus, StartErrorKind};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Plan, Signal};

/// Decides how programs, checks and the catalog behave. By default nothing fails and nothing takes time.
pub trait Script {
    /// Something the script schedules itself, such as a signal to the supervisor.
    type Event;

    /// What the next run of a job's program does.
    fn program(&mut self, _plan: &Plan, _job: JobIx, _now: Time) -> ProgramScript {
        ProgramScript::default()
    }

    /// The program of a job has started.
    fn started(&mut self, _job: &str, _now: Time) {}

    /// The program of a job has exited.
    fn exited(&mut self, _job: &str) {}

    /// What the next run of a check does.
    fn check(&mut self, _plan: &Plan, _job: JobIx, _check: CheckIx, _now: Time) -> CheckScript {
        CheckScript::default()
    }

    /// What the next rendering of a file does (D15).
    fn render(&mut self, _plan: &Plan, _file: FileIx, _now: Time) -> RenderScript {
        RenderScript::default()
    }

    /// What the next run of the test of a file does.
    fn test(&mut self, _plan: &Plan, _file: FileIx, _now: Time) -> CheckScript {
        CheckScript::default()
    }

    /// What the drain program of a job does (S11).
    fn drain(&mut self, _plan: &Plan, _job: JobIx) -> CheckScript {
        CheckScript::default()
    }

    /// The Consul agent behind a job's service. Without one the catalog accepts every change at once.
    fn agent(&self, _plan: &Plan, _job: JobIx) -> Option<AgentScript> {
        None
    }

    /// Without an agent: how long the catalog takes to confirm a deregistration; `None` if it never does.
    fn confirms_deregistration_after(&self, _job: JobIx) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    /// What a watch sees now.
    fn watch(&self, _plan: &Plan, _watch: WatchIx, _now: Time) -> WatchScript {
        WatchScript::NoAnswer
    }

    /// Another plan is in force.
    fn replanned(&mut self, _plan: &Plan, _moves: &Moves) {}
}

/// One run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramScript {
    /// How long it takes until the start succeeds or fails; `None` if it never does, as on a file system that does not
    /// answer.
    pub starts_in: Option<Duration>,
    /// True if the program is executed at once, and only the report takes time: signals reach the program. Otherwise they
    /// kill the process before it executes its program.
    pub executes_early: bool,
    /// True if the process has no processor for the first ten seconds, so that its time begins again (P14).
    pub lacks_processor: bool,
    /// Why the start fails.
    pub start_error: Option<StartErrorKind>,
    /// When it exits by itself, counted from its start.
    pub exits_after: Option<Duration>,
    /// How it exits then.
    pub status: ExitStatus,
    /// What it does on a stop signal.
    pub on_signal: Reaction,
    /// The signals, besides harmless ones, that it goes on after.
    pub ignores: SignalSet,
    /// How long it takes to die of SIGKILL; `None` if it does not, as in an uninterruptible system call.
    pub dies_after: Option<Duration>,
    /// The other processes of its group.
    pub rest: Rest,
    /// How long after its end other processes of it are found, if there are any.
    pub daemons: Option<Duration>,
    /// What it says about itself, if its job has `ready`.
    pub reports: ReportScript,
}

impl Default for ProgramScript {
    /// It starts at once, runs until a signal, and exits by it.
    fn default() -> Self {
        Self {
            starts_in: Some(Duration::ZERO),
            executes_early: false,
            lacks_processor: false,
            start_error: None,
            exits_after: None,
            status: ExitStatus::Code(0),
            on_signal: Reaction::Exits(Duration::ZERO, None),
            ignores: SignalSet::default(),
            dies_after: Some(Duration::ZERO),
            rest: Rest::Nothing,
            daemons: None,
            reports: ReportScript { ready: Some(Duration::ZERO), ..ReportScript::default() },
        }
    }
}

/// What a program says about itself (H11, H12). All times count from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportScript {
    /// When it is ready; `None` if it never is.
    pub ready: Option<Duration>,
    /// When it reloads its own configuration, for a moment.
    pub reloads: Option<Duration>,
    /// When it says that it stops.
    pub stopping: Option<Duration>,
    /// When it hangs and sends no further `WATCHDOG=1`; `None` if it never does.
    pub hangs: Option<Duration>,
}

/// The other processes of a program's group, when it has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There are none.
    Nothing,
    /// They exit after this time.
    For(Duration),
    /// Only SIGKILL ends them.
    UntilKilled,
}

/// What a program does on a stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It ignores the signal.
    Ignores,
    /// It exits after a while, with a code of its own or by the signal.
    Exits(Duration, Option<u8>),
    /// It exits at this time, or at once if that has passed.
    ExitsAt(Time, Option<u8>),
}

/// A set of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    /// Adds a signal.
    pub const fn insert(&mut self, signal: Signal) {
        self.0 |= Self::bit(signal);
    }

    /// Returns true if a signal is in it.
    #[must_use]
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & Self::bit(signal) != 0
    }

    /// Returns true if no signal is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signals, by number.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        (1..=64).map(Signal).filter(move |signal| self.contains(*signal))
    }

    /// Signals are numbered from 1 to 64.
    const fn bit(signal: Signal) -> u64 {
        1_u64.rotate_left((signal.0 as u32).wrapping_sub(1))
    }
}

impl FromIterator<Signal> for SignalSet {
    fn from_iter<T: IntoIterator<Item = Signal>>(signals: T) -> Self {
        let mut set = Self::default();
        signals.into_iter().for_each(|signal| set.insert(signal));
        set
    }
}

/// How a check ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEnd {
    /// It passes.
    Passes,
    /// It fails.
    Fails,
    /// The supervisor has no descriptor for it (H3).
    NotRun,
}

impl CheckEnd {
    /// It passes, or fails.
    #[must_use]
    pub const fn passes(passes: bool) -> Self {
        if passes { Self::Passes } else { Self::Fails }
    }
}

/// One run of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckScript {
    /// How long it takes; `None` if it hangs until it is canceled.
    pub takes: Option<Duration>,
    /// How it ends.
    pub end: CheckEnd,
    /// How long it takes to end once it is canceled.
    pub cancel_takes: Duration,
}

impl Default for CheckScript {
    /// It passes at once.
    fn default() -> Self {
        Self { takes: Some(Duration::ZERO), end: CheckEnd::Passes, cancel_takes: Duration::ZERO }
    }
}

/// How the rendering of a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderEnd {
    /// There is a text.
    Renders,
    /// The template has an error.
    Fails,
    /// The system refuses to write the temporary file.
    Refused,
}

/// One rendering of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderScript {
    /// How long the rendering takes, and then the replacing of the file.
    pub takes: Duration,
    /// How the rendering ends.
    pub end: RenderEnd,
    /// False if the file cannot be replaced.
    pub installs: bool,
}

impl Default for RenderScript {
    fn default() -> Self {
        Self { takes: Duration::ZERO, end: RenderEnd::Renders, installs: true }
    }
}

/// What a watch sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchScript {
    /// The passing services in the catalog of this world.
    Catalog,
    /// This answer.
    Answer(Answer),
    /// Nothing new: the catalog does not answer.
    NoAnswer,
    /// The catalog is unreachable and answers at this time.
    AnswerAt(Time),
}

/// A period. Without an end it lasts until the simulation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// Its first instant.
    pub from: Duration,
    /// The instant after its last one.
    pub to: Option<Duration>,
}

impl Period {
    /// Returns true if an instant lies in it.
    #[must_use]
    pub fn contains(self, at: Duration) -> bool {
        self.from <= at && self.to.is_none_or(|to| at < to)
    }
}

/// How a Consul agent treats one service.
#[derive(Clone, Debug)]
pub struct AgentScript {
    /// When it deregisters the service after that has become critical.
    pub deregister_critical_after: Option<Duration>,
    /// How it responds to the first requests.
    pub responses: Vec<ResponseScript>,
    /// How it responds to all others.
    pub usual: ResponseScript,
    /// While it is unreachable every request is refused, after the usual time.
    pub outages: Vec<Period>,
    /// Faults, by milliseconds since the start; in order.
    pub faults: Vec<(u64, AgentFault)>,
    /// The seed of retry delays, and of the order in which a frozen agent carries out its requests.
    pub seed: u64,
}

/// How an agent responds to a request. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseScript {
    /// It carries out the request after this time, and confirms it.
    Done(u64),
    /// It refuses after this time, and does nothing.
    Refused(u64),
    /// It carries out the request at once, but the response is lost.
    ResponseLost,
    /// It carries out the request this time after the request has timed out.
    Late(u64),
    /// It confirms the request, but does not carry it out. A deregistration is carried out: a false confirmation of
    /// one could never be detected.
    FalselyConfirmed,
}

/// Faults of an agent, besides its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFault {
    /// It is restarted without its data.
    Forget,
    /// It is frozen for this many milliseconds, and then carries out the requests that arrived meanwhile.
    Freeze(u64),
}
