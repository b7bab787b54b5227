//! Programs and checks: they start, run, receive signals and end as the script says.

use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::ids::{CheckIx, CheckRunId, JobIx, RunId};
use containerpilot_core::input::{CheckError, ExitStatus, Input, Remains, StartError, StartErrorKind};
use containerpilot_core::plan::{Job, Probe, Ready, Signal};
use containerpilot_core::{Notice, Time};

use super::queue::Slot;
use super::script::{CheckEnd, CheckScript, ProgramScript, Reaction, Rest, Script};
use super::{Scheduled, World};

/// SIGCHLD, SIGCONT, SIGURG and SIGWINCH: by default they do not end a process.
pub(crate) const HARMLESS: [Signal; 4] = [Signal(17), Signal(18), Signal(23), Signal(28)];

/// The name of what is left of a run.
const REST: &str = "other processes";

/// How long a program takes to reload its own configuration.
const RELOAD: Duration = Duration::from_millis(50);

pub(super) struct Program {
    job: String,
    script: ProgramScript,
    start_error: Option<StartError>,
    /// When the start succeeds or fails.
    start: Option<Slot>,
    /// The signal that ends the process before it executes its program.
    pending_signal: Option<Signal>,
    running: bool,
    exit: Option<Slot>,
    status: ExitStatus,
    /// True if it was sent a signal that ends the run.
    ends: bool,
    /// True if it was sent SIGKILL.
    killed: bool,
    /// How its job wants to be told that it is ready.
    ready: Option<Ready>,
    started: Time,
}

/// What is left of a run whose program has exited.
pub(super) struct RestOfRun {
    /// When nothing is left, if that is known.
    gone: Option<Slot>,
    /// How long it takes to die of SIGKILL.
    dies_after: Option<Duration>,
}

pub(super) struct RunningCheck {
    script: CheckScript,
    done: Option<Slot>,
    result: Result<(), CheckError>,
}

impl Program {
    /// Returns true if the process has not executed its program.
    const fn is_before_exec(&self) -> bool {
        !self.running && !self.script.executes_early
    }
}

impl<S: Script> World<S> {
    /// Returns true if a run has a process, also one that has not executed its program, and one that outlives the program.
    #[must_use]
    pub fn has_process(&self, run: RunId) -> bool {
        self.programs.contains_key(&run) || self.rests.contains_key(&run)
    }

    /// Returns true if a process exists at a time, whether or not its exit was reported.
    #[must_use]
    pub fn has_processes_at(&self, now: Time) -> bool {
        self.programs.values().any(|program| program.exit.is_none_or(|exit| now < exit.at))
    }

    pub(super) fn spawn(&mut self, job: JobIx, run: RunId) {
        let plan = Arc::clone(&self.plan);
        let Some(planned) = plan.jobs.get(job.index()) else { return };
        let script = self.script.program(&plan, job, self.now);
        let program = Program {
            job: planned.name.clone(),
            script,
            start_error: script.start_error.map(|kind| start_error(planned, kind)),
            start: script.starts_in.map(|after| self.schedule(after, Scheduled::Start(run))),
            pending_signal: None,
            running: false,
            exit: None,
            status: script.status,
            ends: false,
            killed: false,
            ready: planned.ready.clone(),
            started: self.now,
        };
        self.programs.insert(run, program);
    }

    pub(super) fn start(&mut self, run: RunId) -> Input {
        let Some(program) = self.programs.get_mut(&run) else { return Input::Tick };
        program.start = None;
        if let Some(why) = program.start_error.take() {
            return self.start_failed(run, why);
        }
        if let Some(signal) = program.pending_signal {
            return self.start_failed(run, killed_before_exec(signal));
        }
        program.running = true;
        self.script.started(&program.job, self.now);
        program.started = self.now;
        let reports = program.script.reports;
        if program.ready.is_some() {
            let reload = reports.reloads.map(|at| (at, Notice::Reloading));
            let reloaded = reports
                .reloads
                .map(|at| (at + RELOAD, Notice::Ready))
                .filter(|_| reports.ready <= reports.reloads);
            let ready = reports.ready.map(|at| (at, Notice::Ready));
            let stopping = reports.stopping.map(|at| (at, Notice::Stopping));
            for (after, notice) in [ready, reload, reloaded, stopping].into_iter().flatten() {
                self.queue.add(self.now + after, Scheduled::Notice(run, notice));
            }
        }
        if let Some(after) = program.script.exits_after {
            program.exit = Some(self.queue.add(self.now + after, Scheduled::Exit(run)));
        }
        Input::Started { run, pid: pid_of(run) }
    }

    /// A process says something about itself, unless it is gone. One with a watchdog says that it is alive, twice as often as
    /// it must.
    pub(super) fn notice(&mut self, run: RunId, notice: Notice) -> Option<Input> {
        let now = self.now;
        let program = self.programs.get(&run).filter(|program| program.running)?;
        let hangs = program.script.reports.hangs;
        let is_alive = hangs.is_none_or(|after| now.since(program.started) < after);
        if notice == Notice::Watchdog && !is_alive {
            return None;
        }
        if matches!(notice, Notice::Ready | Notice::Watchdog)
            && let Some(time) = program.ready.as_ref().and_then(Ready::watchdog)
        {
            let pace = (time / 2).max(Duration::from_millis(1));
            self.queue.add(now + pace, Scheduled::Notice(run, Notice::Watchdog));
        }
        Some(Input::Notified { run, notice })
    }

    /// How a start stands whose time is over.
    pub(super) fn inspected(&mut self, run: RunId) -> Input {
        let program = self.programs.get_mut(&run);
        let lacks = program.is_some_and(|program| std::mem::take(&mut program.script.lacks_processor));
        if lacks { Input::StartDelayed { run } } else { Input::StartPending { run } }
    }

    fn start_failed(&mut self, run: RunId, why: StartError) -> Input {
        self.cancel_start(run);
        Input::StartFailed { run, why }
    }

    /// The supervisor gives up a start.
    pub(super) fn cancel_start(&mut self, run: RunId) {
        let Some(program) = self.programs.remove(&run) else { return };
        for slot in [program.start, program.exit].into_iter().flatten() {
            self.queue.remove(slot);
        }
    }

    pub(super) fn exit(&mut self, run: RunId) -> Input {
        let now = self.now;
        match self.programs.get_mut(&run) {
            Some(program) if program.is_before_exec() => {
                program.exit = None;
                return self.start_failed(run, killed_before_exec(Signal::KILL));
            }
            // E3: the start is reported first.
            Some(program) if !program.running => {
                if let Some(start) = program.start.take() {
                    self.queue.remove(start);
                }
                // Its exit, by a signal, is the one that is due now.
                program.script.exits_after = None;
                program.start_error = None;
                let again = self.queue.add(now, Scheduled::Exit(run));
                let started = self.start(run);
                if let Some(program) = self.programs.get_mut(&run) {
                    program.exit = Some(again);
                }
                return started;
            }
            _ => {}
        }
        let Some(program) = self.programs.remove(&run) else { return Input::Tick };
        self.ended(run, &program);
        Input::Exited { run, status: program.status, remains: self.leave_rest(run, &program) }
    }

    /// What a program leaves behind. Daemons are known only later, if the run was being ended.
    fn leave_rest(&mut self, run: RunId, program: &Program) -> Remains {
        let (remains, after) = match (program.script.rest, program.script.daemons) {
            (Rest::For(time), daemons) => {
                (Remains::Group(REST.into()), Some(time.max(daemons.unwrap_or_default())))
            }
            (Rest::UntilKilled, _) => (Remains::Group(REST.into()), None),
            (Rest::Nothing, Some(found)) if program.ends => (Remains::Unknown, Some(found + found)),
            (Rest::Nothing, _) => return Remains::Nothing,
        };
        // SIGKILL was for all of them.
        let after = if program.killed { program.script.dies_after } else { after };
        let gone = after.map(|after| self.schedule(after, Scheduled::Gone(run)));
        self.rests.insert(run, RestOfRun { gone, dies_after: program.script.dies_after });
        remains
    }

    /// Nothing is left of a run.
    pub(super) fn gone(&mut self, run: RunId) -> Input {
        self.rests.remove(&run);
        Input::OrphansGone { run }
    }

    /// The supervisor has killed what is left of a run, and forgotten it.
    pub(super) fn forget_rest(&mut self, run: RunId) {
        if let Some(slot) = self.rests.remove(&run).and_then(|rest| rest.gone) {
            self.queue.remove(slot);
        }
    }

    fn kill_rest(&mut self, run: RunId) {
        let Some(RestOfRun { gone, dies_after: Some(after) }) = self.rests.get_mut(&run) else { return };
        let at = self.now + *after;
        if gone.is_some_and(|gone| gone.at <= at) {
            return;
        }
        if let Some(gone) = gone.take() {
            self.queue.remove(gone);
        }
        *gone = Some(self.queue.add(at, Scheduled::Gone(run)));
    }

    /// The supervisor no longer waits for a program that SIGKILL does not end.
    pub(super) fn abandon(&mut self, run: RunId) {
        let Some(program) = self.programs.remove(&run) else { return };
        if let Some(exit) = program.exit {
            self.queue.remove(exit);
        }
        self.ended(run, &program);
    }

    fn ended(&mut self, run: RunId, program: &Program) {
        self.script.exited(&program.job);
        if let Some(after) = program.script.daemons {
            self.schedule_input(after, Input::OrphansFound { run });
        }
    }

    pub(super) fn signal(&mut self, run: RunId, signal: Signal, ends: bool) {
        let Some(program) = self.programs.get_mut(&run) else {
            if signal == Signal::KILL {
                self.kill_rest(run);
            }
            return;
        };
        program.ends |= ends || signal == Signal::KILL;
        program.killed |= signal == Signal::KILL;
        if program.is_before_exec() && signal != Signal::KILL {
            // It waits until the process accepts signals, just before it executes its program.
            if !HARMLESS.contains(&signal) && !program.script.ignores.contains(signal) {
                program.pending_signal = program.pending_signal.or(Some(signal));
            }
            return;
        }
        let exits = match program.script.on_signal {
            _ if signal == Signal::KILL => program.script.dies_after.map(|after| (after, None)),
            _ if HARMLESS.contains(&signal) => None,
            _ if program.script.ignores.contains(signal) => None,
            Reaction::Ignores => None,
            Reaction::Exits(after, code) => Some((after, code)),
            Reaction::ExitsAt(at, code) => Some((at.since(self.now), code)),
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
            self.signal(run, Signal::KILL, true);
        }
        let runs: Vec<RunId> = self.rests.keys().copied().collect();
        for run in runs {
            if let Some(rest) = self.rests.get_mut(&run) {
                rest.dies_after = Some(Duration::ZERO);
            }
            self.kill_rest(run);
        }
    }

    pub(super) fn run_check(&mut self, job: JobIx, check: CheckIx, run: CheckRunId) {
        let plan = Arc::clone(&self.plan);
        let health = plan.jobs.get(job.index()).and_then(|job| job.health.as_ref());
        let Some(planned) = health.and_then(|health| health.checks.get(check.index())) else { return };
        let script = self.script.check(&plan, job, check, self.now);
        self.begin_check(run, script, failure_of(&planned.probe));
    }

    pub(super) fn run_drain(&mut self, job: JobIx, run: CheckRunId) {
        let plan = Arc::clone(&self.plan);
        let script = self.script.drain(&plan, job);
        self.begin_check(run, script, "exited with code 1");
    }

    /// Runs a check, the test of a file or a drain program.
    pub(super) fn begin_check(&mut self, run: CheckRunId, script: CheckScript, failure: &'static str) {
        let result = match script.end {
            CheckEnd::Passes => Ok(()),
            CheckEnd::Fails => Err(CheckError::Failed(failure.to_owned())),
            CheckEnd::NotRun => {
                Err(CheckError::NotRun("cannot create a pipe: Too many open files".to_owned()))
            }
        };
        let done = script.takes.map(|takes| self.schedule(takes, Scheduled::Check(run)));
        self.checks.insert(run, RunningCheck { script, done, result });
    }

    pub(super) fn check_done(&mut self, check: CheckRunId) -> Input {
        let result = self.checks.remove(&check).map_or(Ok(()), |check| check.result);
        Input::CheckDone { check, result }
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
        check.result = Err("it was canceled".into());
    }
}

/// The pid of a run's process.
#[must_use]
pub fn pid_of(run: RunId) -> i32 {
    i32::try_from(run.0).unwrap_or(i32::MAX - 100).saturating_add(100)
}

fn start_error(job: &Job, kind: StartErrorKind) -> StartError {
    let program = job.exec.program().map_or("program".into(), |exec| exec.program.text());
    let reason = match kind {
        StartErrorKind::NotFound => "No such file or directory",
        StartErrorKind::NotExecutable => "Permission denied",
        StartErrorKind::NoDescriptors => "Too many open files",
        StartErrorKind::NoResources => "Resource temporarily unavailable",
        StartErrorKind::Other | StartErrorKind::Killed(_) => "cannot be started",
    };
    StartError { kind, message: format!("{program}: {reason}") }
}

fn killed_before_exec(signal: Signal) -> StartError {
    let message = format!("killed by {signal} before it executed its program");
    StartError { kind: StartErrorKind::Killed(signal), message }
}

fn failure_of(probe: &Probe) -> &'static str {
    match probe {
        Probe::Http(_) => "the response status was 503",
        Probe::Tcp { .. } => "connection refused",
        Probe::Exec(_) | Probe::Running | Probe::Ready => "it exited with code 1",
    }
}
