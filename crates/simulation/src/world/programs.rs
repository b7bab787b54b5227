//! Programs and checks, as the script has them.

use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::ids::{CheckIx, CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, StartError, StartErrorKind};
use containerpilot_core::plan::{Check, Job, Probe, Signal};

use super::{Coming, Program, World};
use crate::habits;
use crate::scenario::{Answers, CheckAnswer, Lasting, Run};

impl World<'_> {
    pub(super) fn spawn(&mut self, job: JobIx, run: RunId) {
        let plan = Arc::clone(&self.plan);
        let Some(planned) = plan.jobs.get(job.index()) else { return };
        let runs =
            self.scenario.jobs.get(&planned.name).map(|script| script.runs.as_slice()).unwrap_or_default();
        let nth = self.runs.entry(planned.name.clone()).or_default();
        let script = runs.get(*nth).or(runs.last()).copied().unwrap_or_default();
        *nth += 1;
        let program = Program {
            job: planned.name.clone(),
            script,
            lasts: script.lasts.unwrap_or_else(|| {
                // One that is said to end somehow does end.
                let ends = script.status.map(|_| Lasting::For(habits::TASK));
                ends.unwrap_or_else(|| habits::lasts(&plan, planned))
            }),
            exit: None,
            status: script.status.unwrap_or(ExitStatus::Code(0)),
        };
        self.programs.insert(run, program);
        self.add(script.starts_in, Coming::Start(run));
    }

    pub(super) fn start(&mut self, run: RunId) -> Input {
        let Some(program) = self.programs.get(&run) else { return Input::Tick };
        if let Some(kind) = program.script.fails {
            let message = self.failure(&program.job, kind);
            self.programs.remove(&run);
            return Input::StartFailed { run, why: StartError { kind, message } };
        }
        let (lasts, script, job) = (program.lasts, program.script, program.job.clone());
        self.since.insert(job, (script, self.now));
        if let Lasting::For(time) = lasts {
            let place = self.add(time, Coming::Exit(run));
            if let Some(program) = self.programs.get_mut(&run) {
                program.exit = Some(place);
            }
        }
        let pid = i32::try_from(run.0).unwrap_or(i32::MAX - 100).saturating_add(100);
        Input::Started { run, pid }
    }

    fn failure(&self, job: &str, kind: StartErrorKind) -> String {
        let planned = self.plan.jobs.iter().find(|planned| planned.name == job);
        let program = planned.and_then(|job| job.exec.as_ref()).map_or("program", |exec| &exec.program);
        let words = match kind {
            StartErrorKind::NotFound => "No such file or directory",
            StartErrorKind::NotExecutable => "Permission denied",
            StartErrorKind::NoResources => "Resource temporarily unavailable",
            StartErrorKind::Other => "it cannot be started",
        };
        format!("{program}: {words}")
    }

    pub(super) fn exit(&mut self, run: RunId) -> Input {
        let Some(program) = self.programs.remove(&run) else { return Input::Tick };
        self.since.remove(&program.job);
        Input::Exited { run, status: program.status, orphans: false }
    }

    pub(super) fn signal(&mut self, run: RunId, signal: Signal) {
        let Some(program) = self.programs.get(&run) else { return };
        let obeys = program.script.stops_in.unwrap_or(Lasting::For(habits::OBEYS));
        let (after, status) = match (signal, obeys) {
            (Signal::KILL, _) => (Duration::ZERO, ExitStatus::Signal(signal)),
            // What programs do not end at by themselves.
            (Signal(17 | 18 | 23 | 28), _) | (_, Lasting::Forever) => return,
            (_, Lasting::For(time)) => {
                let code = program.script.stop_exit;
                (time, code.map_or(ExitStatus::Signal(signal), ExitStatus::Code))
            }
        };
        if program.exit.is_some_and(|(at, _)| at <= self.now + after) {
            return;
        }
        if let Some(place) = program.exit {
            self.coming.remove(place);
        }
        let place = self.add(after, Coming::Exit(run));
        if let Some(program) = self.programs.get_mut(&run) {
            (program.exit, program.status) = (Some(place), status);
        }
    }

    pub(super) fn probe(&mut self, job: JobIx, check: CheckIx, run: CheckRunId) {
        let plan = Arc::clone(&self.plan);
        let Some(planned) = plan.jobs.get(job.index()) else { return };
        let checks = planned.health.as_ref().map(|health| health.checks.as_slice()).unwrap_or_default();
        let Some(check) = checks.get(check.index()) else { return };
        let (answer, takes) = self.answer(planned, check);
        let result = match answer {
            CheckAnswer::Pass => Ok(()),
            CheckAnswer::Fail => Err(complaint(check)),
            CheckAnswer::Hang => Err("it was cut short".to_owned()),
        };
        self.answers.insert(run, result);
        if answer != CheckAnswer::Hang {
            let place = self.add(takes, Coming::Check(run));
            self.probes.insert(run, place);
        }
    }

    fn answer(&mut self, job: &Job, check: &Check) -> (CheckAnswer, Duration) {
        if check.probe == Probe::Running {
            return (CheckAnswer::Pass, Duration::ZERO);
        }
        let now = self.elapsed();
        let scripted = self.scenario.jobs.get(&job.name).and_then(|script| {
            let fits = |answers: &&Answers| {
                answers.span.contains(now) && answers.check.as_ref().is_none_or(|name| *name == check.name)
            };
            script.checks.iter().rev().find(fits)
        });
        if let Some(scripted) = scripted {
            return (scripted.answer, scripted.takes);
        }
        let (run, since) = *self.since.entry(job.name.clone()).or_insert((Run::default(), self.now));
        let passes = match run.healthy_after {
            None => true,
            Some(Lasting::Forever) => false,
            Some(Lasting::For(time)) => self.now.since(since) >= time,
        };
        (if passes { CheckAnswer::Pass } else { CheckAnswer::Fail }, habits::CHECK)
    }

    pub(super) fn cancel(&mut self, run: CheckRunId) {
        if !self.answers.contains_key(&run) {
            return;
        }
        if let Some(place) = self.probes.remove(&run) {
            self.coming.remove(place);
        }
        self.answers.insert(run, Err("it was cut short".to_owned()));
        let place = self.add(Duration::ZERO, Coming::Check(run));
        self.probes.insert(run, place);
    }
}

/// What a failed check says.
fn complaint(check: &Check) -> String {
    match &check.probe {
        Probe::Http(_) => "the answer was 503".to_owned(),
        Probe::Tcp { .. } => "the connection was refused".to_owned(),
        Probe::Exec(_) | Probe::Running => "it exited with code 1".to_owned(),
    }
}
