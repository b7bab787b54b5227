//! Plans, and everything their world does.

use std::time::Duration;

use containerpilot_core::Time;
use containerpilot_core::ids::{CheckIx, JobIx, WatchIx};
use containerpilot_core::input::Instance;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Catalog, Plan, Signal};
use containerpilot_core::request::Request;
use containerpilot_simulation::world::script::{
    AgentFault, AgentScript, CheckEnd, CheckScript, ProgramScript, ResponseScript, Script, WatchScript,
};

/// A plan, and what its programs, checks and services do while it is in force.
#[derive(Clone, Debug)]
pub struct Version {
    /// The plan.
    pub plan: Plan,
    /// What the programs and checks of each job do.
    pub scripts: Vec<JobScript>,
    /// If it is another version with this number of replicas: which one. Only `scale` leads to it, and reloads that keep the number (W20).
    pub scaled_from: Option<(usize, u16)>,
}

/// Plans, and everything their world does.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The first plan, and the plans that reloads may use.
    pub versions: Vec<Version>,
    /// The actions on the supervisor, and when they happen.
    pub actions: Vec<(Duration, Action)>,
    /// When the supervisor is ready.
    pub ready_at: Duration,
    /// The seed of the order of items that happen at the same instant.
    pub order: u64,
    /// True if the core is called some time after its deadlines.
    pub late: bool,
    /// After this many steps the runner sends SIGTERM to the supervisor.
    pub max_steps: u32,
    /// True if the core has a [`crate::twin::Twin`].
    pub has_twin: bool,
    /// The memory of a recording that is made of the core's steps.
    pub recorded: Option<usize>,
}

/// What the programs and checks of one job do. Each list is used from the start again when it ends.
#[derive(Clone, Debug)]
pub struct JobScript {
    /// Its runs.
    pub runs: Vec<ProgramScript>,
    /// The runs of each of its checks.
    pub checks: Vec<Vec<CheckScript>>,
    /// How the catalog treats its service.
    pub catalog: CatalogScript,
}

/// How the catalog treats a service.
#[derive(Clone, Debug)]
pub enum CatalogScript {
    /// There is no agent. A deregistration is confirmed after this time; without one, never.
    Direct(Option<Duration>),
    /// The real reconciler and a fake agent that is slow, fails, forgets, freezes or confirms falsely.
    Agent {
        /// When the agent deregisters the service after that has become critical.
        deregister_critical_after: Option<Duration>,
        /// How the agent responds to the first requests; it carries out the others.
        responses: Vec<ResponseScript>,
        /// The agent's faults, by milliseconds; in order.
        faults: Vec<(u64, AgentFault)>,
        /// The seed of delays.
        seed: u64,
    },
}

/// An action on the supervisor.
#[derive(Clone, Debug)]
pub enum Action {
    /// A signal.
    Signal(Signal),
    /// A command. Its job is an index in the plan that is in force by then.
    Request(Request),
    /// A reload to one of the versions, modulo their number.
    Reload(usize),
    /// The answer of the catalog to a watch of the plan that is in force by then.
    Instances(usize, Vec<Instance>),
    /// The core is called without a reason.
    Nothing,
    /// The system clock is set to this time since 1970, or the machine was asleep (W15).
    Clock(Duration),
    /// The machine is paused for this long, and everything that is due meanwhile comes late.
    Pause(Duration),
}

/// The system clock at the start: half a second before a whole minute.
pub const CLOCK: Duration = Duration::from_millis(1_767_225_599_500);

/// The response of an agent for which nothing is scripted.
pub const USUAL_RESPONSE: ResponseScript = ResponseScript::Done(1);

/// A scenario, and how far it has come.
pub(crate) struct Progress<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The version in force.
    pub(crate) version: usize,
    runs: Vec<usize>,
    checks: Vec<Vec<usize>>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let scripts = &scenario.versions[0].scripts;
        let checks = scripts.iter().map(|script| vec![0; script.checks.len()]).collect();
        Self { scenario, version: 0, runs: vec![0; scripts.len()], checks }
    }

    fn script(&self, job: JobIx) -> &'a JobScript {
        &self.scenario.versions[self.version].scripts[job.index()]
    }
}

impl Script for Progress<'_> {
    /// The index of an action.
    type Event = usize;

    fn program(&mut self, _plan: &Plan, job: JobIx, _now: Time) -> ProgramScript {
        let scripts = &self.script(job).runs;
        let nth = &mut self.runs[job.index()];
        let script = scripts[*nth % scripts.len()];
        *nth += 1;
        script
    }

    fn check(&mut self, _plan: &Plan, job: JobIx, check: CheckIx, _now: Time) -> CheckScript {
        let scripts = &self.script(job).checks[check.index()];
        let nth = &mut self.checks[job.index()][check.index()];
        let script = scripts[*nth % scripts.len()];
        *nth += 1;
        script
    }

    /// A drain program lasts as long as the run of its job would by itself.
    fn drain(&mut self, _plan: &Plan, job: JobIx) -> CheckScript {
        let scripts = &self.script(job).runs;
        let script = scripts[self.runs[job.index()].saturating_sub(1) % scripts.len()];
        let end = CheckEnd::passes(script.status.is_success());
        CheckScript { takes: script.exits_after, end, cancel_takes: Duration::ZERO }
    }

    fn agent(&self, plan: &Plan, job: JobIx) -> Option<AgentScript> {
        match &self.script(job).catalog {
            CatalogScript::Agent { deregister_critical_after, responses, faults, seed }
                if plan.catalog != Catalog::Embedded =>
            {
                Some(AgentScript {
                    deregister_critical_after: *deregister_critical_after,
                    responses: responses.clone(),
                    usual: USUAL_RESPONSE,
                    outages: Vec::new(),
                    faults: faults.clone(),
                    seed: *seed,
                })
            }
            _ => None,
        }
    }

    fn confirms_deregistration_after(&self, job: JobIx) -> Option<Duration> {
        match self.script(job).catalog {
            CatalogScript::Direct(after) => after,
            CatalogScript::Agent { .. } => None,
        }
    }

    /// The embedded catalog answers by itself; the answers of Consul are actions.
    fn watch(&self, plan: &Plan, _watch: WatchIx, _now: Time) -> WatchScript {
        if plan.catalog == Catalog::Embedded { WatchScript::Catalog } else { WatchScript::NoAnswer }
    }

    fn replanned(&mut self, _plan: &Plan, moves: &Moves) {
        let scripts = &self.scenario.versions[self.version].scripts;
        let mut runs = vec![0; scripts.len()];
        let mut checks: Vec<Vec<usize>> = scripts.iter().map(|it| vec![0; it.checks.len()]).collect();
        for (old, to) in moves.jobs.iter().enumerate() {
            let Some(to) = to.map(JobIx::index) else { continue };
            runs[to] = self.runs[old];
            for (new, old) in checks[to].iter_mut().zip(&self.checks[old]) {
                *new = *old;
            }
        }
        (self.runs, self.checks) = (runs, checks);
    }
}
