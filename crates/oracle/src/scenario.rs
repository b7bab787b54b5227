//! Plans, and everything their world will do.

use std::time::Duration;

use containerpilot_core::input::{ExitStatus, Instance, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::request::Request;

use crate::catalog::{Fate, Incident};

/// A plan, and what its programs, its checks and its catalog do while it is in force.
#[derive(Clone, Debug)]
pub struct Version {
    /// The plan.
    pub plan: Plan,
    /// For each job, what its programs and its checks do.
    pub scripts: Vec<Script>,
}

/// Plans, and everything their world will do.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The plan it begins with, and those that reloads may put in its place.
    pub versions: Vec<Version>,
    /// What comes from outside, each at its time.
    pub happenings: Vec<(Duration, Happening)>,
    /// When everything is ready.
    pub ready_at: Duration,
    /// Decides which of several inputs of the same instant comes first.
    pub order: u64,
    /// Whether the world is slow: the core is called after its deadlines.
    pub late: bool,
    /// After so many steps the world asks the supervisor to stop.
    pub patience: u32,
}

/// What the programs and the checks of one job do: the nth time what stands nth, and then from the beginning.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its runs.
    pub runs: Vec<RunScript>,
    /// The runs of each of its checks.
    pub checks: Vec<Vec<CheckScript>>,
    /// What keeps its service in the catalog.
    pub catalog: Keeping,
}

/// What keeps a service in the catalog, and lets it go.
#[derive(Clone, Debug)]
pub enum Keeping {
    /// Nobody looks at what the catalog has; it takes so long to let a service go, and some are never heard of again.
    Told(Option<Duration>),
    /// The real reconciler, and an agent that fares as it is written: slow, failing, forgetting, freezing, lying.
    Kept {
        /// When the agent drops it after it has turned critical.
        dropped_after: Option<Duration>,
        /// What becomes of the first requests; the others are well.
        fates: Vec<Fate>,
        /// What happens beside them, by milliseconds; in order.
        incidents: Vec<(u64, Incident)>,
        /// The seed of the delays.
        seed: u64,
    },
}

/// One run of a program.
#[derive(Clone, Copy, Debug)]
pub struct RunScript {
    /// How long it takes until it is known that it has started, or could not be.
    pub latency: Duration,
    /// Why it cannot be started.
    pub fails: Option<StartErrorKind>,
    /// After which time it ends by itself.
    pub ends_after: Option<Duration>,
    /// How it then ends.
    pub status: ExitStatus,
    /// What it makes of a signal that asks it to end.
    pub asked: Reaction,
    /// How long it takes to die of SIGKILL; some cannot die.
    pub dies_after: Option<Duration>,
    /// Whether something of its process group outlives it.
    pub orphans: bool,
}

/// What a program makes of a signal that asks it to end.
#[derive(Clone, Copy, Debug)]
pub enum Reaction {
    /// It does not care.
    Ignores,
    /// It ends after a while, with a code of its own or by the signal.
    Ends(Duration, Option<u8>),
}

/// One run of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckScript {
    /// How long it takes; some hang until they are cut short.
    pub takes: Option<Duration>,
    /// Whether it passes.
    pub passes: bool,
    /// How long it takes to be cut short.
    pub cancel: Duration,
}

/// Something from outside.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A signal to the supervisor.
    Signal(Signal),
    /// Somebody asks for something; jobs are meant by their places in the plan that is in force by then.
    Request(Request),
    /// A reload to one of the versions; counted from the first again when there are fewer.
    Reload(usize),
    /// The catalog's answer to a watch of the plan that is in force by then.
    Instances(usize, Vec<Instance>),
    /// The core is called for nothing.
    Nothing,
    /// Nothing happens for so long, because the supervisor does not get to run: what was due meanwhile comes at once.
    Standstill(Duration),
}
