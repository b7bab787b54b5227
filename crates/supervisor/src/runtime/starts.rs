//! Starts in progress (P3): from the creation of a process until it has executed its program, or has failed to.
//!
//! The loop never waits for a child. It polls the result pipe of each start like any other source, and the core gives
//! up a start that takes too long.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use containerpilot_core::Input;
use containerpilot_core::SortedMap;
use containerpilot_core::effect::Exit;
use containerpilot_core::ids::{CheckRunId, JobIx, RunId};
use containerpilot_core::input::{StartError, StartErrorKind};
use containerpilot_core::plan::{Command, JobLogging, JobOutput, Plan, Process, Role};
use containerpilot_core::variables::ProcessEnvironment;
use containerpilot_process::orphans;
use containerpilot_process::reaper::{Exited, Owner};
use containerpilot_process::spawn::{ProcessStart, Progress, Reports, SpawnRequest};
use containerpilot_process::sys::{self, PollFd};

use super::{Decider, Runtime};
use crate::logs::{LogSource, ReadyLine};
use crate::runtime::effects::EffectExecutor;
use crate::runtime::probe::ProbeResult;
use crate::telemetry;

/// The starts in progress.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    pending: SortedMap<Owner, PendingStart>,
    /// Those whose descriptors were polled, in that order.
    polled: Vec<Owner>,
    /// Starts that have failed or were given up, while their processes may use memory of the supervisor.
    ending: Vec<ProcessStart>,
}

#[derive(Debug)]
struct PendingStart {
    start: ProcessStart,
    /// What the lines of its output are labelled with.
    source: LogSource,
    /// The metric of a sensor, whose output is the value.
    metric: Option<String>,
    /// The line of output that makes it ready.
    line: Option<ReadyLine>,
}

/// A program that is not a job: that of a check, of a drain or of the test of a file.
pub(super) struct AuxiliaryProgram<'a> {
    pub(super) command: &'a Command,
    pub(super) process: &'a Process,
    /// The job or file it belongs to, with which its lines in the log are labelled.
    pub(super) source: &'a str,
    pub(super) name: &'a str,
    pub(super) raw_output: bool,
    /// The run that it belongs to.
    pub(super) run: Option<RunId>,
}

/// How the lines of a process are logged, and under which names.
struct Labels<'a> {
    job: &'a str,
    check: Option<&'a str>,
    logging: JobLogging,
    run: Option<RunId>,
}

impl Starts {
    pub(crate) fn contains(&self, owner: Owner) -> bool {
        self.pending.contains_key(&owner)
    }

    /// Returns true if a job is being started.
    pub(crate) fn is_busy(&self) -> bool {
        self.pending.keys().any(|owner| matches!(owner, Owner::Run(_)))
    }

    /// Adds the descriptors to poll. Those of checks are needed while other starts wait for them (P14); otherwise it is
    /// early enough to look when a check exits or is killed.
    pub(crate) fn add_poll_fds(&mut self, with_checks: bool, fds: &mut Vec<PollFd>) {
        let starts = self.pending.iter();
        let starts = starts.filter(|(owner, _)| with_checks || matches!(owner, Owner::Run(_)));
        self.polled.clear();
        for (owner, fd) in starts.filter_map(|(owner, pending)| Some((*owner, pending.start.poll_fd()?))) {
            self.polled.push(owner);
            fds.push(sys::poll_fd(fd, sys::POLLIN));
        }
    }

    /// The starts that have progress. `fds` begins with the descriptors of the last [`Self::add_poll_fds`].
    pub(crate) fn ready(&self, fds: &[PollFd]) -> Vec<Owner> {
        self.polled.iter().zip(fds).filter(|(_, fd)| fd.revents != 0).map(|(owner, _)| *owner).collect()
    }
}

impl<D: Decider> Runtime<D> {
    /// Continues the starts that have progress.
    pub(super) fn handle_starts(&mut self, ready: &[Owner]) -> ControlFlow<Exit> {
        for owner in ready {
            if let Some(input) = self.executor.continue_start(*owner) {
                self.handle(input)?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl EffectExecutor {
    /// Starts the program of a job. Returns the result if that is known at once.
    pub(super) fn spawn(
        &mut self,
        plan: &Plan,
        ix: JobIx,
        run: RunId,
        environment: &ProcessEnvironment,
    ) -> Option<Input> {
        let wanted = plan.jobs.get(ix.index()).and_then(|job| Some((job, job.exec.program()?)));
        let Some((job, command)) = wanted else {
            let message = format!("internal error, please report it: job {} has no program", ix.index());
            return Some(Input::StartFailed {
                run,
                why: StartError { kind: StartErrorKind::Other, message },
            });
        };
        let mut environment = marked(environment, Some(run));
        if let Some(ids) = &self.trace {
            let value = telemetry::traceparent(ids, run);
            Arc::make_mut(&mut environment.cause).push(("TRACEPARENT".into(), value));
        }
        let mut prepared = match self.notices.prepare(job, run, &mut environment) {
            Ok(prepared) => prepared,
            Err(why) => return Some(Input::StartFailed { run, why }),
        };
        let environment = &environment;
        let request = SpawnRequest {
            command,
            environment,
            process: &job.process,
            own_stdin: plan.pass_signals && job.role == Role::Main,
            raw_output: job.output.is_raw(),
            cgroup: self.reaper.cgroups.create(run),
            reports: prepared.reports,
        };
        let metric = match job.role {
            Role::Sensor(place) => telemetry::definitions(plan).get(place as usize),
            _ => None,
        };
        let metric = metric.map(|metric| metric.name.clone());
        let logging = match &job.output {
            JobOutput::Raw => JobLogging::default(),
            JobOutput::Logged(logging) => logging.clone(),
        };
        let labels = Labels { job: &job.name, check: None, logging, run: Some(run) };
        match self.start(&request, Owner::Run(run), labels, metric) {
            Ok((pid, pipe)) => {
                let pending = self.starts.pending.get_mut(&Owner::Run(run));
                let hidden = pending.as_ref().and_then(|pending| pending.start.hidden.clone());
                self.notices.started(run, prepared.take_socket(), pipe, hidden);
                if let Some(pending) = pending {
                    pending.line = prepared.line;
                }
                self.pids.insert(ix, (pid, run));
                None
            }
            Err(why) => {
                self.reaper.cgroups.ended(run);
                Some(Input::StartFailed { run, why })
            }
        }
    }

    /// Starts a program. Returns the result if that is known at once.
    pub(super) fn start_program(
        &mut self,
        program: &AuxiliaryProgram<'_>,
        run: CheckRunId,
        environment: &ProcessEnvironment,
    ) -> Option<ProbeResult> {
        let &AuxiliaryProgram { command, process, source, name, raw_output, run: of } = program;
        let reports = Reports::default();
        let request = SpawnRequest {
            command,
            environment,
            process,
            own_stdin: false,
            raw_output,
            cgroup: None,
            reports,
        };
        let labels = Labels { job: source, check: Some(name), logging: JobLogging::default(), run: of };
        let started = self.start(&request, Owner::Check(run), labels, None);
        started.err().map(|why| Err(why.into()))
    }

    fn start(
        &mut self,
        request: &SpawnRequest<'_>,
        owner: Owner,
        labels: Labels<'_>,
        metric: Option<String>,
    ) -> Result<(i32, Option<OwnedFd>), StartError> {
        let mut start = self.spawner.spawn(request)?;
        let pid = start.pid;
        self.reaper.started(pid, owner);
        let hidden = start.hidden.clone();
        let Labels { job, check, logging, run } = labels;
        let check = check.map(str::to_owned);
        let source = LogSource { job: job.to_owned(), pid: pid.unsigned_abs(), check, hidden, logging, run };
        let is_job = matches!(owner, Owner::Run(_));
        if !self.logs.is_unused() || (is_job && start.output.is_some()) {
            // There are entries, or output will be read: before further jobs can use up the limit of threads and
            // processes. Not before the first job, which does not have to wait for it.
            self.logs.start_thread();
        }
        if !is_job && let Some((stdout, stderr)) = start.output.take() {
            self.check_outputs.started(stdout, stderr, source.clone());
        }
        let pipe = start.ready.take();
        self.starts.pending.insert(owner, PendingStart { start, source, metric, line: None });
        Ok((pid, pipe))
    }

    /// Gives up a start: its process is killed, and reaped whenever it exits.
    pub(super) fn cancel_start(&mut self, owner: Owner) {
        if let Some(pending) = self.starts.pending.remove(&owner) {
            self.reaper.abandon(owner);
            if let Owner::Run(run) = owner {
                self.notices.ended(run);
            }
            self.starts.ending.push(pending.start);
            self.starts.ending.retain_mut(|start| !start.is_over());
        }
    }

    /// Reads what a child has reported. Returns the input for the core.
    pub(super) fn continue_start(&mut self, owner: Owner) -> Option<Input> {
        match self.starts.pending.get_mut(&owner)?.start.progress() {
            Progress::Pending => None,
            Progress::Executed => self.executed(owner),
            Progress::Failed(why) => {
                self.cancel_start(owner);
                Some(owner.start_failed(why))
            }
        }
    }

    /// Ends the start of a process that has exited, if it is in progress. Returns the input about the start, or, if it
    /// has failed, the input that replaces that about the exit.
    pub(super) fn resolve_start(&mut self, exited: &Exited) -> Result<Option<Input>, Input> {
        let owner = exited.owner;
        let Some(pending) = self.starts.pending.get_mut(&owner) else { return Ok(None) };
        match pending.start.outcome(exited) {
            // The result of a check follows, and implies its start.
            Ok(()) => Ok(self.executed(owner).filter(|_| matches!(owner, Owner::Run(_)))),
            Err(why) => {
                self.starts.pending.remove(&owner);
                match owner {
                    // Other processes of its user may have joined its group.
                    Owner::Run(run) => {
                        self.notices.ended(run);
                        self.reaper.kill_orphans(run);
                    }
                    Owner::Check(_) => self.check_outputs.exited(exited.pid.unsigned_abs(), &self.logs),
                }
                Err(owner.start_failed(why))
            }
        }
    }

    /// A process has executed its program: from now on its output is read.
    fn executed(&mut self, owner: Owner) -> Option<Input> {
        let PendingStart { start, source, metric, line } = self.starts.pending.remove(&owner)?;
        self.reaper.executed(owner);
        let ProcessStart { pid, output, .. } = start;
        match (owner, output) {
            (Owner::Check(_), _) | (_, None) => {}
            (Owner::Run(run), Some((stdout, stderr))) => match metric {
                None => self.logs.attach_until_ready(stdout, stderr, source, line),
                Some(metric) => {
                    self.sensors.started(run, &source.job, &metric, stdout);
                    // The log gets an empty stream in place of its standard output.
                    if let Ok((empty, _)) = std::io::pipe() {
                        self.logs.attach(empty.into(), stderr, source);
                    }
                }
            },
        }
        match owner {
            Owner::Run(run) => Some(Input::Started { run, pid }),
            Owner::Check(check) => Some(Input::CheckStarted { check }),
        }
    }
}

/// The environment with the mark by which the processes of a run are found (P4).
pub(super) fn marked(environment: &ProcessEnvironment, run: Option<RunId>) -> ProcessEnvironment {
    let mut marked = environment.clone();
    if let Some(run) = run {
        Arc::make_mut(&mut marked.cause).push((orphans::MARK.into(), orphans::mark(run)));
    }
    marked
}
