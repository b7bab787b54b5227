//! What the core waits for, and what may still come from outside.
//!
//! The world of `containerpilot-simulation` schedules one consequence of each effect, at a time that its script
//! decides, while the search has to try all of them in every order. A node is copied for every move and compared by
//! fingerprint, so its world has only the state that decides which moves are possible: no plan, no agents and no
//! times. With the queue of that world each move would have to find its item and replace its result, which is more
//! code and slower than the match below.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_core::effect::{DesiredService, Effect};
use containerpilot_core::ids::{CheckRunId, JobIx, RunId};
use containerpilot_core::plan::Signal;
use containerpilot_core::state::fingerprint::{Fingerprint, Name};

use super::limits::Limits;

/// A run that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Program {
    /// A process was requested. Like a running one, it was sent this signal; of several, SIGKILL or the last.
    Starting(Option<Signal>),
    /// It has executed its program.
    Running(Option<Signal>),
}

/// What the core waits for, and what may still come from outside.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) runs: BTreeMap<RunId, Program>,
    /// The runs of which processes are left although their own has exited.
    pub(super) rests: BTreeSet<RunId>,
    /// The starts of which the core wants to know how they stand.
    pub(super) inspected: BTreeSet<RunId>,
    /// The checks that run, and whether they were cancelled.
    pub(super) checks: BTreeMap<CheckRunId, bool>,
    /// The services whose deregistration is not confirmed.
    pub(super) leaving: BTreeSet<JobIx>,
    /// How many inputs from outside, and how many faults, may still come.
    pub(super) outside: u8,
    pub(super) faults: u8,
    pub(super) terminated: bool,
    pub(super) interrupted: bool,
    pub(super) ready: bool,
    /// True if an input from outside came before the startup. A second one would only be queued behind it.
    pub(super) early: bool,
    /// True if the watched service has an instance.
    pub(super) instance: bool,
    pub(super) maintenance: bool,
    pub(super) requests: u64,
}

impl World {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            runs: BTreeMap::new(),
            rests: BTreeSet::new(),
            inspected: BTreeSet::new(),
            checks: BTreeMap::new(),
            leaving: BTreeSet::new(),
            outside: limits.outside,
            faults: limits.faults,
            terminated: false,
            interrupted: false,
            ready: false,
            early: false,
            instance: false,
            maintenance: false,
            requests: 0,
        }
    }

    /// Carries out an effect. Fails if it is a signal to a process that does not run.
    pub(super) fn carry_out(&mut self, effect: &Effect) -> Result<(), &'static str> {
        match effect {
            Effect::Spawn { run, .. } => {
                self.runs.insert(*run, Program::Starting(None));
            }
            Effect::Kill { run, signal, .. } => match self.runs.get_mut(run) {
                Some(Program::Starting(sent) | Program::Running(sent)) => {
                    *sent = sent.filter(|sent| *sent == Signal::KILL).or(Some(*signal));
                }
                None if self.rests.contains(run) => {}
                None => return Err("a signal is sent to a process that does not run"),
            },
            Effect::KillOrphans { run } => {
                self.rests.remove(run);
            }
            Effect::InspectStart { run } => {
                self.inspected.insert(*run);
            }
            Effect::CancelStart { run } | Effect::Abandon { run } => {
                self.runs.remove(run);
                self.inspected.remove(run);
            }
            Effect::RunCheck { run, .. } | Effect::RunDrain { run, .. } => {
                self.checks.insert(*run, false);
            }
            Effect::CancelCheck { run } => {
                self.checks.entry(*run).and_modify(|cancelled| *cancelled = true);
            }
            Effect::Advertise { job, desired: DesiredService::Absent } => {
                self.leaving.insert(*job);
            }
            Effect::Advertise { job, .. } => {
                self.leaving.remove(job);
            }
            Effect::PlanReplaced { moves, .. } => {
                self.leaving = self.leaving.iter().filter_map(|job| moves.job(*job)).collect();
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns true if the core waits for something other than its timers and inputs from outside.
    pub(super) fn is_pending(&self) -> bool {
        !(self.runs.is_empty() && self.rests.is_empty() && self.checks.is_empty() && self.leaving.is_empty())
    }

    pub(super) fn fingerprint(&self, print: &mut Fingerprint) {
        let Self {
            runs,
            rests,
            inspected,
            checks,
            leaving,
            outside,
            faults,
            terminated,
            interrupted,
            ready,
            // `outside` has counted that input.
            early: _,
            instance,
            maintenance,
            // Any number that is not in use has the same effect.
            requests: _,
        } = self;
        print.add((leaving, outside, faults, terminated, interrupted, ready, instance, maintenance));
        // The order of ids is that of starts, which decides nothing.
        print.named(Name::Run, runs.iter().map(|(run, program)| (run.0, program)));
        print.list(rests, |print, run| print.name(Name::Run, run.0));
        print.list(inspected, |print, run| print.name(Name::Run, run.0));
        print.named(Name::Check, checks.iter().map(|(check, cancelled)| (check.0, cancelled)));
    }
}
