//! Carries out the effects that the core has decided.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use containerpilot_core::effect::{Effect, Entry};
use containerpilot_core::ids::{CheckIx, CheckRunId, JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Input, StartError, StartErrorKind};
use containerpilot_core::plan::diff::Moves;
use containerpilot_core::plan::{Check, Command, Job, Level, Plan, Probe, Role, Signal};
use containerpilot_core::report::words;
use containerpilot_core::variables::Environment;

use crate::discovery::Discovery;
use crate::logs::check_output::CheckOutputs;
use crate::logs::{Logs, Source};
use crate::process::reaper::{Exited, Owner, Reaper};
use crate::process::spawn::{Request, Spawner};
use crate::runtime::probe::{Probes, Target};
use crate::runtime::query::QueryHandler;
use crate::runtime::reload::Reloads;
use crate::telemetry::{self, InvalidOutput, SensorOutputs};

/// Everything that carries out effects.
pub(crate) struct EffectExecutor {
    pub(crate) spawner: Spawner,
    pub(crate) reaper: Reaper,
    pub(crate) probes: Probes,
    pub(crate) catalog: Discovery,
    pub(crate) logs: Logs,
    pub(crate) check_outputs: CheckOutputs,
    pub(crate) queries: QueryHandler,
    pub(crate) sensors: SensorOutputs,
    pub(crate) reloads: Reloads,
    /// The pid of each job's last run, whose last lines are logged with its exit.
    pub(crate) pids: BTreeMap<JobIx, i32>,
}

impl EffectExecutor {
    /// Carries out one effect. Results are queued, so that a job that keeps failing to start cannot starve the other
    /// sources of the loop. Breaks with the exit code.
    pub(crate) fn carry_out(
        &mut self,
        plan: &Plan,
        effect: Effect,
        results: &mut VecDeque<Input>,
    ) -> ControlFlow<u8> {
        match effect {
            Effect::Spawn { job, run, environment } => {
                results.push_back(self.spawn(plan, job, run, &environment));
            }
            Effect::Kill { run, signal, reason: _ } => self.kill(Owner::Run(run), signal),
            Effect::KillOrphans { run } => self.reaper.kill_orphaned_group(run),
            Effect::RunCheck { job, check, run, environment } => {
                if let Some(result) = self.check(plan, (job, check), run, &environment) {
                    results.push_back(Input::CheckDone { check: run, result });
                }
            }
            Effect::CancelCheck { run } => {
                if self.probes.cancel(run) {
                    let result = Err("cancelled".to_owned());
                    results.push_back(Input::CheckDone { check: run, result });
                } else {
                    // The result follows when it is reaped.
                    self.kill(Owner::Check(run), Signal::KILL);
                }
            }
            Effect::Advertise { job, desired } => results.extend(self.catalog.advertise(plan, job, desired)),
            Effect::Heartbeat { job } => self.catalog.heartbeat(plan, job),
            Effect::Reply { id, reply } => match self.reloads.reply(id, reply) {
                Ok((level, message)) => self.logs.entry(level, None, &message),
                Err(reply) => self.queries.reply(id, reply),
            },
            // The loop handles it.
            Effect::PlanReplaced { plan: _, moves: _ } => {}
            Effect::Log(entry) => self.log(plan, &entry),
            Effect::Exit { code } => return ControlFlow::Break(code),
        }
        ControlFlow::Continue(())
    }

    /// Adopts a new plan: renumbers what is kept by index, and reconfigures the log.
    pub(crate) fn replanned(&mut self, old: &Plan, plan: &Plan, moves: &Moves) {
        let pids = std::mem::take(&mut self.pids);
        self.pids = pids.into_iter().filter_map(|(job, pid)| Some((moves.job(job)?, pid))).collect();
        if old.logging != plan.logging {
            self.logs.configure(&plan.logging);
        }
        // Data that is kept by name is dropped with the last job of that name.
        let names: BTreeSet<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
        for job in old.jobs.iter().filter(|job| !names.contains(job.name.as_str())) {
            self.logs.forget(&job.name);
        }
    }

    /// Writes an entry, with the last lines of the job's run if the entry is about a failure (L6).
    fn log(&self, plan: &Plan, entry: &Entry) {
        let Entry { level, job, message, with_output } = entry;
        let name = job.and_then(|job| plan.jobs.get(job.index())).map(|job| job.name.as_str());
        let pid = job.and_then(|job| self.pids.get(&job));
        match (name, pid) {
            (Some(name), Some(pid)) if *with_output => {
                self.logs.entry_with_output(*level, name, pid.unsigned_abs(), message);
            }
            _ => self.logs.entry(*level, name, message),
        }
    }

    /// The input for the core about an exited child.
    pub(crate) fn exited(&mut self, exited: Exited) -> Input {
        let Exited { owner, pid, status, orphans } = exited;
        self.check_outputs.exited(pid.unsigned_abs(), &self.logs);
        match owner {
            Owner::Run(run) => {
                if let Some(InvalidOutput { job, message }) = self.sensors.exited(run, status.is_success()) {
                    self.logs.entry(Level::Warn, Some(&job), &message);
                }
                Input::Exited { run, status, orphans }
            }
            Owner::Check(check) => Input::CheckDone { check, result: check_result(status) },
        }
    }

    fn spawn(&mut self, plan: &Plan, ix: JobIx, run: RunId, environment: &Environment) -> Input {
        let wanted = plan.jobs.get(ix.index()).and_then(|job| Some((job, job.exec.as_ref()?)));
        let Some((job, command)) = wanted else {
            let message = format!("internal error, please report it: job {} has no program", ix.index());
            return Input::StartFailed { run, why: StartError { kind: StartErrorKind::Other, message } };
        };
        let request = Request {
            command,
            environment,
            process: &job.process,
            own_stdin: plan.pass_signals && job.role == Role::Main,
            raw_output: job.raw_output,
        };
        let sensor = match job.role {
            Role::Sensor(place) => telemetry::definitions(plan).get(place as usize),
            _ => None,
        };
        let started = match sensor {
            Some(metric) => self.start_sensor(&request, run, &job.name, &metric.name),
            None => self.start(&request, Owner::Run(run), &job.name, None),
        };
        match started {
            Ok(pid) => {
                self.pids.insert(ix, pid);
                Input::Started { run, pid }
            }
            Err(why) => Input::StartFailed { run, why },
        }
    }

    /// Starts a sensor, whose output is the value of a metric when it has exited.
    fn start_sensor(
        &mut self,
        request: &Request<'_>,
        run: RunId,
        job: &str,
        metric: &str,
    ) -> Result<i32, StartError> {
        let spawned = self.spawner.spawn(request)?;
        self.reaper.started(spawned.pid, Owner::Run(run));
        if let Some((stdout, stderr)) = spawned.output {
            self.sensors.started(run, job, metric, stdout);
            // The log gets an empty stream in place of its standard output.
            if let Ok((empty, _)) = std::io::pipe() {
                let source = Source { job: job.to_owned(), pid: spawned.pid.unsigned_abs(), check: None };
                self.logs.attach(empty.into(), stderr, source);
            }
        }
        Ok(spawned.pid)
    }

    /// Starts a check. Returns its result if that is known at once.
    fn check(
        &mut self,
        plan: &Plan,
        (job, check): (JobIx, CheckIx),
        run: CheckRunId,
        environment: &Environment,
    ) -> Option<Result<(), String>> {
        let Some(job) = plan.jobs.get(job.index()) else {
            return Some(Err("there is no such job".to_owned()));
        };
        let Some(check) = job.health.as_ref().and_then(|health| health.checks.get(check.index())) else {
            return Some(Err("there is no such check".to_owned()));
        };
        match &check.probe {
            Probe::Running => Some(Ok(())),
            Probe::Tcp { host, port } => {
                self.probes.start(run, Target::Tcp { host: host.clone(), port: *port })
            }
            Probe::Http(http) => self.probes.start(run, Target::Http(http.clone())),
            Probe::Exec(command) => self.exec_check(job, check, command, run, environment),
        }
    }

    fn exec_check(
        &mut self,
        job: &Job,
        check: &Check,
        command: &Command,
        run: CheckRunId,
        environment: &Environment,
    ) -> Option<Result<(), String>> {
        let request = Request {
            command,
            environment,
            process: &job.process,
            own_stdin: false,
            raw_output: check.raw_output,
        };
        let started = self.start(&request, Owner::Check(run), &job.name, Some(&check.name));
        started.err().map(|why| Err(why.message))
    }

    fn start(
        &mut self,
        request: &Request<'_>,
        owner: Owner,
        job: &str,
        check: Option<&str>,
    ) -> Result<i32, StartError> {
        let spawned = self.spawner.spawn(request)?;
        self.reaper.started(spawned.pid, owner);
        if let Some((stdout, stderr)) = spawned.output {
            let pid = spawned.pid.unsigned_abs();
            let source = Source { job: job.to_owned(), pid, check: check.map(str::to_owned) };
            match owner {
                Owner::Run(_) => self.logs.attach(stdout, stderr, source),
                Owner::Check(_) => self.check_outputs.started(stdout, stderr, source),
            }
        }
        Ok(spawned.pid)
    }

    fn kill(&self, owner: Owner, signal: Signal) {
        if let Err(errno) = self.reaper.kill(owner, signal) {
            let message = format!("cannot send {signal}: {}", errno.desc());
            self.logs.entry(Level::Warn, None, &message);
        }
    }
}

fn check_result(status: ExitStatus) -> Result<(), String> {
    if status.is_success() { Ok(()) } else { Err(words::exit(status)) }
}
