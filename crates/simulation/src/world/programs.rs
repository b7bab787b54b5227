//! Programs and checks: they start, run, receive signals and end as the script says.

use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::ids::{CheckIx, CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, StartError, StartErrorKind};
use containerpilot_core::plan::{Job, Probe, Signal};

use super::queue::Slot;
use super::script::{CheckScript, ProgramScript, Reaction, Script};
use super::{Scheduled, World};

/// SIGCHLD, SIGCONT, SIGURG and SIGWINCH: by default they do not end a process.
const HARMLESS: [Signal; 4] = [Signal(17), Signal(18), Signal(23), Signal(28)];

pub(super) struct Program {
    job: String,
    script: ProgramScript,
    start_error: Option<StartError>,
    running: bool,
    exit: Option<Slot>,
    status: ExitStatus,
}

pub(super) struct RunningCheck {
    script: CheckScript,
    done: Option<Slot>,
    result: Result<(), &'static str>,
}

impl<S: Script> World<S> {
    /// Returns true if the program of a run has started and not exited.
    #[must_use]
    pub fn is_running(&self, run: RunId) -> bool {
        self.programs.get(&run).is_some_and(|program| program.running)
    }

    pub(super) fn spawn(&mut self, job: JobIx, run: RunId) {
        let plan = Arc::clone(&self.plan);
        let Some(planned) = plan.jobs.get(job.index()) else { return };
        let script = self.script.program(&plan, job);
        let program = Program {
            job: planned.name.clone(),
            script,
            start_error: script.start_error.map(|kind| start_error(planned, kind)),
            running: false,
            exit: None,
            status: script.status,
        };
        self.programs.insert(run, program);
        self.schedule(script.starts_in, Scheduled::Start(run));
    }

    pub(super) fn start(&mut self, run: RunId) -> Input {
        let Some(program) = self.programs.get_mut(&run) else { return Input::Tick };
        if let Some(why) = program.start_error.take() {
            self.programs.remove(&run);
            return Input::StartFailed { run, why };
        }
        program.running = true;
        self.script.started(&program.job, self.now);
        if let Some(after) = program.script.exits_after {
            program.exit = Some(self.queue.add(self.now + after, Scheduled::Exit(run)));
        }
        Input::Started { run, pid: pid_of(run) }
    }

    pub(super) fn exit(&mut self, run: RunId) -> Input {
        let Some(program) = self.programs.remove(&run) else { return Input::Tick };
        self.script.exited(&program.job);
        Input::Exited { run, status: program.status, orphans: program.script.orphans }
    }

    pub(super) fn signal(&mut self, run: RunId, signal: Signal) {
        let Some(program) = self.programs.get_mut(&run) else { return };
        let exits = match program.script.on_signal {
            _ if signal == Signal::KILL => program.script.dies_after.map(|after| (after, None)),
            _ if HARMLESS.contains(&signal) => None,
            Reaction::Ignores => None,
            Reaction::Exits(after, code) => Some((after, code)),
        };
        let Some((after, code)) = exits else { return };
        let at = self.now + after;
        if program.exit.is_some_and(|exit| exit.at <= at) {
            return;
        }
        if let Some(exit) = program.exit {
            self.queue.remove(exit);
        }
        program.exit = Some(self.queue.add(at, Scheduled::Exit(run)));
        program.status = code.map_or(ExitStatus::Signal(signal), ExitStatus::Code);
    }

    /// Ends every program at once, even one that SIGKILL does not end.
    pub fn end_all_programs(&mut self) {
        let runs: Vec<RunId> = self.programs.keys().copied().collect();
        for run in runs {
            if let Some(program) = self.programs.get_mut(&run) {
                program.script.dies_after = Some(Duration::ZERO);
            }
            self.signal(run, Signal::KILL);
        }
    }

    pub(super) fn run_check(&mut self, job: JobIx, check: CheckIx, run: CheckRunId) {
        let plan = Arc::clone(&self.plan);
        let health = plan.jobs.get(job.index()).and_then(|job| job.health.as_ref());
        let Some(planned) = health.and_then(|health| health.checks.get(check.index())) else { return };
        let script = self.script.check(&plan, job, check, self.now);
        let result = if script.passes { Ok(()) } else { Err(failure_of(&planned.probe)) };
        let done = script.takes.map(|takes| self.schedule(takes, Scheduled::Check(run)));
        self.checks.insert(run, RunningCheck { script, done, result });
    }

    pub(super) fn check_done(&mut self, check: CheckRunId) -> Input {
        let result = self.checks.remove(&check).map_or(Ok(()), |check| check.result);
        Input::CheckDone { check, result: result.map_err(str::to_owned) }
    }

    pub(super) fn cancel_check(&mut self, run: CheckRunId) {
        let Some(check) = self.checks.get_mut(&run) else { return };
        let at = self.now + check.script.cancel_takes;
        if check.done.is_some_and(|done| done.at <= at) {
            return;
        }
        if let Some(done) = check.done {
            self.queue.remove(done);
        }
        check.done = Some(self.queue.add(at, Scheduled::Check(run)));
        check.result = Err("it was canceled");
    }
}

/// The pid of a run's process.
#[must_use]
pub fn pid_of(run: RunId) -> i32 {
    i32::try_from(run.0).unwrap_or(i32::MAX - 100).saturating_add(100)
}

fn start_error(job: &Job, kind: StartErrorKind) -> StartError {
    let program = job.exec.as_ref().map_or("program", |exec| &exec.program);
    let reason = match kind {
        StartErrorKind::NotFound => "No such file or directory",
        StartErrorKind::NotExecutable => "Permission denied",
        StartErrorKind::NoResources => "Resource temporarily unavailable",
        StartErrorKind::Other => "cannot be started",
    };
    StartError { kind, message: format!("{program}: {reason}") }
}

fn failure_of(probe: &Probe) -> &'static str {
    match probe {
        Probe::Http(_) => "the response status was 503",
        Probe::Tcp { .. } => "connection refused",
        Probe::Exec(_) | Probe::Running => "it exited with code 1",
    }
}
