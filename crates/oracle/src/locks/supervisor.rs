//! A supervisor with one job that requires the lock: the real core and the real requests, with a simulated process.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::catalog::lock_requests::LockRequests;
use containerpilot_core::ids::{LockIx, RunId};
use containerpilot_core::input::ExitStatus;
use containerpilot_core::lock_report::LockReport;
use containerpilot_core::plan::{Lock, Plan, RequiredSource, Requirement, Restarts, Signal};
use containerpilot_core::{Core, Effect, Input, Time};

use super::Program;
use crate::random::{consul, plain_job, plain_plan};

/// One life of a supervisor.
pub(super) struct Supervisor {
    core: Core,
    pub(super) requests: LockRequests,
    reported: Option<LockReport>,
    /// The number of the request in progress.
    pub(super) request: u64,
    pub(super) frozen_until: Time,
    program: Program,
    next_pid: i32,
    /// When each process exits, if that is known.
    pub(super) processes: BTreeMap<RunId, Option<Time>>,
    pub(super) is_over: bool,
}

/// What the world must know of.
pub(super) enum Consequence {
    /// A process was started, with this fencing number.
    Spawned(Option<u64>),
    /// A process exits at this time.
    Exits(RunId, Time, ExitStatus),
}

pub(super) fn plan(lock: &Lock, program: Program) -> Plan {
    let mut job = plain_job("app");
    job.restarts = Restarts::Unlimited;
    job.requires = vec![Requirement { source: RequiredSource::Lock(lock.name.clone()), bind: true }];
    job.stop.drain = containerpilot_core::plan::Drain::For(program.drain);
    Plan { locks: vec![lock.clone()], catalog: consul(), ..plain_plan(vec![job]) }
}

impl Supervisor {
    pub(super) fn new(lock: &Lock, program: Program, seed: u64) -> Self {
        let plan = plan(lock, program);
        let stop_time = plan.lock_stop_times().first().copied().unwrap_or_default();
        Self {
            requests: LockRequests::new(lock, stop_time, seed),
            core: Core::new(plan),
            reported: None,
            request: 0,
            frozen_until: Time::ZERO,
            program,
            next_pid: 1,
            processes: BTreeMap::new(),
            is_over: false,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.core.next_deadline()
    }

    /// Returns true if a process runs.
    pub(super) fn runs_at(&self, now: Time) -> bool {
        self.processes.values().any(|exits| exits.is_none_or(|exits| now < exits))
    }

    /// Passes on what is known about the lock, if that has changed.
    pub(super) fn report(&mut self, now: Time, out: &mut Vec<Consequence>) {
        let report = self.requests.report();
        if self.reported.as_ref() != Some(&report) {
            self.reported = Some(report.clone());
            self.input(now, Input::Lock { lock: LockIx(0), report }, out);
        }
    }

    pub(super) fn input(&mut self, now: Time, input: Input, out: &mut Vec<Consequence>) {
        let mut effects = Vec::new();
        self.core.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Spawn { run, environment, .. } => {
                    let mut all = environment.iter();
                    let number = all.find(|(name, _)| name.starts_with("CONTAINERPILOT_LOCK_"));
                    out.push(Consequence::Spawned(number.and_then(|(_, value)| value.parse().ok())));
                    self.next_pid += 1;
                    let pid = self.next_pid;
                    let exits = self.program.exits_after.map(|after| now + after);
                    self.processes.insert(run, exits);
                    if let Some(at) = exits {
                        out.push(Consequence::Exits(run, at, ExitStatus::Code(0)));
                    }
                    self.input(now, Input::Started { run, pid }, out);
                }
                Effect::Kill { run, signal, .. } => {
                    let after = if signal == Signal::KILL {
                        Some(self.program.dies_after)
                    } else {
                        self.program.on_term
                    };
                    self.exit_after(now, run, after, signal, out);
                }
                Effect::CancelStart { run } => {
                    self.processes.insert(run, Some(now));
                }
                Effect::ReleaseLock { .. } => self.requests.release(now),
                Effect::Exit(_) => {
                    self.is_over = true;
                    self.requests.release(now);
                }
                _ => {}
            }
        }
    }

    fn exit_after(
        &mut self,
        now: Time,
        run: RunId,
        after: Option<Duration>,
        signal: Signal,
        out: &mut Vec<Consequence>,
    ) {
        let (Some(after), Some(exits)) = (after, self.processes.get_mut(&run)) else { return };
        let at = now + after;
        if exits.is_none_or(|exits| at < exits) {
            *exits = Some(at);
            out.push(Consequence::Exits(run, at, ExitStatus::Signal(signal)));
        }
    }
}
