//! Carries out the effects that the core has decided.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use containerpilot_core::effect::{Effect, Exit};
use containerpilot_core::ids::{CheckIx, CheckRunId, FileIx, JobIx, RenderId, RunId};
use containerpilot_core::input::{ExitStatus, Input, RenderError};
use containerpilot_core::inserted;
use containerpilot_core::log_entry::LogEntry;
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{FileData, JobLogging, JobOutput, Level, Plan, Probe, Signal, StopScope};
use containerpilot_core::variables::{JobVariables, ProcessEnvironment};
use containerpilot_load::host;
use containerpilot_otlp::Ids;
use containerpilot_process::reaper::{Exited, Owner, Reaper};
use containerpilot_process::spawn::Spawner;

use crate::discovery::Discovery;
use crate::files::FileInputs;
use crate::logs::Logs;
use crate::logs::check_output::CheckOutputs;
use crate::net::LazyNet;
use crate::runtime::files::PendingFiles;
use crate::runtime::manager::ServiceManager;
use crate::runtime::notices::Notices;
use crate::runtime::probe::{ProbeResult, ProbeTarget, Probes};
use crate::runtime::queries::QueryHandler;
use crate::runtime::reload::Reloads;
use crate::runtime::starts::{AuxiliaryProgram, Starts, marked};
use crate::telemetry::{InvalidOutput, SensorOutputs};
use crate::watches::LocalWatches;

/// Everything that carries out effects.
pub(crate) struct EffectExecutor {
    pub(crate) spawner: Spawner,
    pub(crate) reaper: Reaper,
    pub(crate) starts: Starts,
    pub(crate) notices: Notices,
    pub(crate) probes: Probes,
    pub(crate) files: PendingFiles,
    pub(crate) net: LazyNet,
    pub(crate) catalog: Discovery,
    pub(crate) watches: LocalWatches,
    pub(crate) logs: Logs,
    pub(crate) check_outputs: CheckOutputs,
    pub(crate) queries: QueryHandler,
    pub(crate) sensors: SensorOutputs,
    pub(crate) reloads: Reloads,
    pub(crate) manager: ServiceManager,
    /// The pid and the run of each job's last start. Its last lines are logged with its exit.
    pub(crate) pids: BTreeMap<JobIx, (i32, RunId)>,
    /// The trace that processes belong to, if there is one (T6).
    pub(crate) trace: Option<Ids>,
}

impl EffectExecutor {
    /// Carries out one effect. Results are queued, so that a job that keeps failing to start cannot starve the other
    /// sources of the loop. Breaks if the supervisor exits.
    pub(crate) fn carry_out(
        &mut self,
        plan: &Plan,
        effect: Effect,
        results: &mut VecDeque<Input>,
    ) -> ControlFlow<Exit> {
        match effect {
            Effect::Spawn { job, run, environment } => {
                results.extend(self.spawn(plan, job, run, &environment));
            }
            Effect::InspectStart { run } => {
                let found = self.continue_start(Owner::Run(run));
                results.push_back(found.unwrap_or_else(|| match self.reaper.is_runnable(Owner::Run(run)) {
                    true => Input::StartDelayed { run },
                    false => Input::StartPending { run },
                }));
            }
            Effect::CancelStart { run } => self.cancel_start(Owner::Run(run)),
            Effect::Kill { run, signal, scope, reason } => {
                self.kill(Owner::Run(run), signal, scope, reason.ends_run());
            }
            Effect::KillOrphans { run } => self.reaper.kill_orphans(run),
            Effect::Abandon { run } => self.abandon(run),
            Effect::RunCheck { job, check, run, environment } => {
                if let Some(result) = self.check(plan, (job, check), run, &environment) {
                    results.push_back(Input::CheckDone { check: run, result });
                }
            }
            Effect::RunDrain { job, run, environment } => {
                if let Some(result) = self.run_drain(plan, job, run, &environment) {
                    results.push_back(Input::CheckDone { check: run, result });
                }
            }
            Effect::CancelCheck { run } => {
                let progress = self.continue_start(Owner::Check(run));
                let failed = matches!(progress, Some(Input::CheckDone { .. }));
                results.extend(progress);
                if failed {
                    // Nothing to cancel.
                } else if self.probes.cancel(run) || self.starts.contains(Owner::Check(run)) {
                    // A start in progress is given up, because its process may not even be ended by SIGKILL.
                    self.cancel_start(Owner::Check(run));
                    let result = Err("cancelled".into());
                    results.push_back(Input::CheckDone { check: run, result });
                } else {
                    // The result follows when it is reaped.
                    self.kill(Owner::Check(run), Signal::KILL, StopScope::Group, true);
                }
            }
            Effect::RenderFile { file, render, data, variables } => {
                results.extend(self.render_file(plan, file, render, data, &variables));
            }
            Effect::TestFile { file, render, run, environment } => {
                if let Some(result) = self.test_file(plan, file, render, run, &environment) {
                    results.push_back(Input::CheckDone { check: run, result });
                }
            }
            Effect::InstallFile { render } => results.extend(self.files.install(render)),
            Effect::DiscardFile { render } => self.files.discard(render),
            Effect::Advertise { job, desired } => results.extend(self.catalog.advertise(plan, job, desired)),
            Effect::ReleaseLock { lock } => self.catalog.release_lock(plan, lock),
            Effect::NotifyManager(notice) => self.manager.notify(notice, &self.logs),
            Effect::Heartbeat { job } => self.catalog.heartbeat(plan, job),
            Effect::Reply { id, reply } => match self.reloads.reply(id, reply) {
                Ok((level, message)) => self.logs.entry(level, None, &message),
                Err(reply) => self.queries.reply(id, *reply),
            },
            // The loop handles them.
            Effect::PlanReplaced { plan: _, moves: _ } | Effect::Reload => {}
            Effect::Log(entry) => self.log(plan, entry),
            Effect::Exit(exit) => return ControlFlow::Break(exit),
        }
        ControlFlow::Continue(())
    }

    /// Adopts a new plan: renumbers what is kept by index, and reconfigures the log.
    pub(crate) fn replanned(&mut self, old: &Plan, plan: &Plan, moves: &Moves) {
        let pids = std::mem::take(&mut self.pids);
        self.pids = inserted(pids.into_iter().filter_map(|(job, pid)| Some((moves.job(job)?, pid))));
        self.probes.replanned();
        if old.logging != plan.logging {
            self.logs.configure(&plan.logging);
        }
        for (ix, job) in old.jobs.iter().enumerate() {
            let new = moves.job(JobIx::at(ix)).and_then(|ix| plan.jobs.get(ix.index()));
            match new.map(|new| &new.output).filter(|output| **output != job.output) {
                Some(JobOutput::Logged(logging)) => self.logs.adjust(&job.name, logging),
                Some(JobOutput::Raw) => self.logs.adjust(&job.name, &JobLogging::default()),
                None => {}
            }
        }
        // Data that is kept by name is dropped with the last job of that name.
        let names: BTreeSet<&str> = inserted(plan.jobs.iter().map(|job| job.name.as_str()));
        for job in old.jobs.iter().filter(|job| !names.contains(job.name.as_str())) {
            self.logs.forget(&job.name);
        }
        let files: BTreeSet<&str> = inserted(plan.files.iter().map(|file| file.name.as_str()));
        for file in old.files.iter().filter(|file| !files.contains(file.name.as_str())) {
            self.logs.forget(&format!("file.{}", file.name));
        }
    }

    /// Writes an entry, with the last lines of the job's run if the entry is about a failure (L6).
    fn log(&self, plan: &Plan, entry: LogEntry) {
        let LogEntry { level, job, message, fields, with_output } = entry;
        let name = job.and_then(|job| plan.jobs.get(job.index())).map(|job| job.name.as_str());
        let last = job.and_then(|job| self.pids.get(&job));
        let pid = last.filter(|_| with_output).map(|(pid, _)| pid.unsigned_abs());
        self.logs.push_about(last.map(|(_, run)| *run), level, name, &message, Some(fields), pid);
    }

    /// Reads the last output of an exited child.
    pub(crate) fn exited(&mut self, exited: &Exited) {
        self.process_ended(exited.owner, exited.pid, exited.status);
    }

    /// Ends what is kept for a process.
    fn process_ended(&mut self, owner: Owner, pid: i32, status: ExitStatus) {
        self.check_outputs.exited(pid.unsigned_abs(), &self.logs);
        if let Owner::Run(run) = owner {
            self.notices.ended(run);
        }
        if let Owner::Run(run) = owner
            && let Some(InvalidOutput { job, message }) = self.sensors.exited(run, status.is_success())
        {
            self.logs.entry(Level::Warn, Some(&job), &message);
        }
    }

    /// Starts a check. Returns its result if that is known at once.
    fn check(
        &mut self,
        plan: &Plan,
        (ix, check): (JobIx, CheckIx),
        run: CheckRunId,
        environment: &ProcessEnvironment,
    ) -> Option<ProbeResult> {
        let Some(job) = plan.jobs.get(ix.index()) else {
            return Some(Err("there is no such job".into()));
        };
        let Some(check) = job.health.as_ref().and_then(|health| health.checks.get(check.index())) else {
            return Some(Err("there is no such check".into()));
        };
        match &check.probe {
            Probe::Running | Probe::Ready => Some(Ok(())),
            Probe::Tcp { host, port } => {
                self.probes.start(run, ProbeTarget::Tcp { host: host.clone(), port: *port }, &mut self.net)
            }
            Probe::Http(http) => self.probes.start(run, ProbeTarget::Http(http.clone()), &mut self.net),
            Probe::Exec(command) => {
                let job_run = self.pids.get(&ix).and_then(|(pid, _)| self.reaper.run_of(*pid));
                let program = AuxiliaryProgram {
                    command,
                    process: &job.process,
                    source: &job.name,
                    name: &check.name,
                    raw_output: check.raw_output,
                    run: job_run,
                };
                self.start_program(&program, run, &marked(environment, job_run))
            }
        }
    }

    /// Renders a file (D15). Returns the result if that is known at once.
    fn render_file(
        &mut self,
        plan: &Plan,
        file: FileIx,
        render: RenderId,
        data: FileData,
        variables: &JobVariables,
    ) -> Option<Input> {
        let Some(file) = plan.files.get(file.index()) else {
            let result = Err(RenderError::Text("there is no such file".to_owned()));
            return Some(Input::FileRendered { render, result });
        };
        let mut environment = host::supervisor_environment();
        for (name, value) in variables.overrides().iter() {
            match value {
                Some(value) => {
                    drop(environment.insert(name.clone().into_bytes(), value.clone().into_bytes()))
                }
                None => drop(environment.remove(name.as_bytes())),
            }
        }
        self.files.render(render, FileInputs { file: file.clone(), environment, data })
    }

    /// Starts the test of a file. Returns its result if that is known at once.
    fn test_file(
        &mut self,
        plan: &Plan,
        file: FileIx,
        render: RenderId,
        run: CheckRunId,
        environment: &ProcessEnvironment,
    ) -> Option<ProbeResult> {
        let file = plan.files.get(file.index());
        let tested = file.and_then(|file| Some((file, file.test.as_ref()?)));
        let (Some((file, test)), Some(path)) = (tested, self.files.path_of(render)) else {
            return Some(Err("internal error: there is nothing to test".into()));
        };
        let mut environment = environment.clone();
        Arc::make_mut(&mut environment.cause).push(("CONTAINERPILOT_FILE".into(), path));
        // Who owns the file decides what is in it; so the test has no other rights.
        let mut process = plan.process.clone();
        process.user.clone_from(&file.user);
        let program = AuxiliaryProgram {
            command: &test.command,
            process: &process,
            source: &format!("file.{}", file.name),
            name: "test",
            raw_output: false,
            run: None,
        };
        self.start_program(&program, run, &environment)
    }

    /// Starts the drain program of a job (S11). Returns its result if that is known at once.
    fn run_drain(
        &mut self,
        plan: &Plan,
        ix: JobIx,
        run: CheckRunId,
        environment: &ProcessEnvironment,
    ) -> Option<ProbeResult> {
        let job = plan.jobs.get(ix.index());
        let Some((job, command)) = job.and_then(|job| Some((job, job.stop.drain.program()?))) else {
            return Some(Err("there is no such program".into()));
        };
        let job_run = self.pids.get(&ix).and_then(|(pid, _)| self.reaper.run_of(*pid));
        let program = AuxiliaryProgram {
            command,
            process: &job.process,
            source: &job.name,
            name: &format!("drain.{}", job.name),
            raw_output: job.output.is_raw(),
            run: job_run,
        };
        self.start_program(&program, run, &marked(environment, job_run))
    }

    /// Forgets a process that SIGKILL has not ended (P6).
    fn abandon(&mut self, run: RunId) {
        if let Some(pid) = self.reaper.abandon(Owner::Run(run)) {
            self.process_ended(Owner::Run(run), pid, ExitStatus::Signal(Signal::KILL));
        }
    }

    fn kill(&mut self, owner: Owner, signal: Signal, scope: StopScope, ends: bool) {
        if let Err(errno) = self.reaper.kill(owner, signal, scope, ends) {
            let message = format!("cannot send {signal}: {}", errno.desc());
            self.logs.entry(Level::Warn, None, &message);
        }
    }
}
