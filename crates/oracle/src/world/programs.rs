//! Programs and checks: they start, run, hear signals and end as it is written.

use std::time::Duration;

use containerpilot_core::ids::{CheckRunId, RunId};
use containerpilot_core::input::{ExitStatus, Input, StartError};
use containerpilot_core::plan::Signal;

use super::{Coming, Place, World, pid_of};
use crate::scenario::{CheckScript, Reaction, RunScript};

pub(super) struct Program {
    script: RunScript,
    pub(super) started: bool,
    exit: Option<Place>,
    status: ExitStatus,
}

pub(super) struct Probe {
    script: CheckScript,
    done: Option<Place>,
    passes: bool,
}

impl World<'_> {
    pub(super) fn start(&mut self, run: RunId) -> Input {
        let fails = self.programs.get(&run).and_then(|program| program.script.fails);
        if let Some(kind) = fails {
            self.programs.remove(&run);
            let why = StartError { kind, message: "/bin/program: the system's own words".into() };
            return Input::StartFailed { run, why };
        }
        if let Some(program) = self.programs.get_mut(&run) {
            program.started = true;
        }
        Input::Started { run, pid: pid_of(run) }
    }

    /// A program that has started ends some time later, so that its start is known first.
    pub(super) fn follow_up(&mut self, input: &Input) {
        let Input::Started { run, .. } = input else { return };
        let Some(ends_after) = self.programs.get(run).and_then(|program| program.script.ends_after) else {
            return;
        };
        let place = self.add(ends_after, Coming::Exit(*run));
        if let Some(program) = self.programs.get_mut(run) {
            program.exit = Some(place);
        }
    }

    pub(super) fn exit(&mut self, run: RunId) -> Input {
        let (status, orphans) = self
            .programs
            .remove(&run)
            .map_or((ExitStatus::Code(0), false), |program| (program.status, program.script.orphans));
        Input::Exited { run, status, orphans }
    }

    pub(super) fn check(&mut self, check: CheckRunId) -> Input {
        let passes = self.probes.remove(&check).is_some_and(|probe| probe.passes);
        Input::CheckDone { check, result: if passes { Ok(()) } else { Err("it did not pass".into()) } }
    }

    pub(super) fn spawn(&mut self, job: usize, run: RunId) {
        self.course.runs += 1;
        let scripts = &self.version().scripts[job].runs;
        let script = scripts[self.runs_of[job] % scripts.len()];
        self.runs_of[job] += 1;
        self.programs.insert(run, Program { script, started: false, exit: None, status: script.status });
        self.add(script.latency, Coming::Start(run));
    }

    pub(super) fn signal(&mut self, run: RunId, signal: Signal) {
        let Some(program) = self.programs.get(&run) else { return };
        let ends = if signal == Signal::KILL {
            program.script.dies_after.map(|after| (after, ExitStatus::Signal(signal)))
        } else {
            match program.script.asked {
                Reaction::Ignores => None,
                Reaction::Ends(after, code) => {
                    Some((after, code.map_or(ExitStatus::Signal(signal), ExitStatus::Code)))
                }
            }
        };
        let Some((after, status)) = ends else { return };
        let sooner = program.exit.is_none_or(|(at, _, _)| self.now + after < at);
        if !sooner {
            return;
        }
        if let Some(place) = program.exit {
            self.coming.remove(&place);
        }
        let place = self.add(after, Coming::Exit(run));
        if let Some(program) = self.programs.get_mut(&run) {
            (program.exit, program.status) = (Some(place), status);
        }
    }

    pub(super) fn end_all_programs(&mut self) {
        let runs: Vec<RunId> = self.programs.keys().copied().collect();
        for run in runs {
            if let Some(program) = self.programs.get_mut(&run) {
                program.script.dies_after = Some(Duration::ZERO);
            }
            self.signal(run, Signal::KILL);
        }
    }

    pub(super) fn probe(&mut self, job: usize, check: usize, run: CheckRunId) {
        let scripts = &self.version().scripts[job].checks[check];
        let nth = &mut self.checks_of[job][check];
        let script = scripts[*nth % scripts.len()];
        *nth += 1;
        let done = script.takes.map(|takes| self.add(takes, Coming::Check(run)));
        self.probes.insert(run, Probe { script, done, passes: script.passes });
    }

    pub(super) fn cancel(&mut self, run: CheckRunId) {
        let Some(probe) = self.probes.get(&run) else { return };
        let after = probe.script.cancel;
        if probe.done.is_some_and(|(at, _, _)| at <= self.now + after) {
            return;
        }
        if let Some(place) = probe.done {
            self.coming.remove(&place);
        }
        let place = self.add(after, Coming::Check(run));
        if let Some(probe) = self.probes.get_mut(&run) {
            (probe.done, probe.passes) = (Some(place), false);
        }
    }
}
