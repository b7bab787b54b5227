//! A core for tests: processes start at once, everything else is triggered by the test.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::ids::{CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Remains};
use containerpilot_core::plan::Plan;
use containerpilot_core::report::graph::{Graph, Scope};
use containerpilot_core::{Core, Effect, Input, Request, RequestId, Time};
use containerpilot_process::orphans::RunProcesses;
use containerpilot_views::catalog::CatalogReport;
use containerpilot_views::clock::WallClock;
use containerpilot_views::snapshot::{PublicSnapshot, Snapshot};

/// A plan from a configuration.
pub(super) fn plan(text: &str) -> Plan {
    let input = ConfigFile { name: "test".to_owned(), text: text.as_bytes().to_vec() };
    let loaded = load(vec![input], &StaticHost::default(), Options { version: "4" });
    loaded.plan.unwrap_or_else(|| panic!("{:?}", loaded.report))
}

pub(super) struct TestCore {
    core: Core,
    now: Time,
    runs: Vec<(JobIx, RunId)>,
    checks: Vec<(JobIx, CheckRunId)>,
}

impl TestCore {
    pub(super) fn new(text: &str) -> Self {
        Self { core: Core::new(plan(text)), now: Time::ZERO, runs: Vec::new(), checks: Vec::new() }
    }

    pub(super) fn start(&mut self) {
        self.step(Input::Ready);
    }

    pub(super) fn step(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            self.core.step(self.now, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Spawn { job, run, .. } => {
                        self.runs.push((job, run));
                        inputs.push(Input::Started { run, pid: 100 });
                    }
                    Effect::RunCheck { job, run, .. } => self.checks.push((job, run)),
                    Effect::CancelCheck { run } => {
                        self.checks.retain(|(_, other)| *other != run);
                        inputs.push(Input::CheckDone { check: run, result: Err("cut short".into()) });
                    }
                    _ => {}
                }
            }
        }
    }

    pub(super) fn advance(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.step(Input::Tick);
    }

    fn named(&self, name: &str) -> JobIx {
        self.core.job_named(name).unwrap()
    }

    /// Finishes the running check of a job.
    pub(super) fn check(&mut self, name: &str, result: Result<(), String>) {
        let job = self.named(name);
        let place = self.checks.iter().position(|(of, _)| *of == job).expect("a running check");
        let (_, check) = self.checks.remove(place);
        self.step(Input::CheckDone { check, result: result.map_err(Into::into) });
    }

    /// Ends the process of a job.
    pub(super) fn exit(&mut self, name: &str, code: u8) {
        let job = self.named(name);
        let place = self.runs.iter().position(|(of, _)| *of == job).expect("a running process");
        let (_, run) = self.runs.remove(place);
        self.step(Input::Exited { run, status: ExitStatus::Code(code), remains: Remains::Nothing });
    }

    pub(super) fn maintenance(&mut self, on: bool) {
        self.step(Input::Request { id: RequestId(1), request: Request::Maintenance(on) });
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let started_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        Snapshot::new(&self.core, WallClock(started_at), CatalogReport::default(), RunProcesses::default())
    }

    pub(super) fn public_snapshot(&self) -> PublicSnapshot {
        let graph = Graph::of(self.core.plan(), Scope::Running);
        PublicSnapshot { snapshot: self.snapshot(), graph, renamed: BTreeMap::new() }
    }
}
