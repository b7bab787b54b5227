//! From fields to a plan: requirements between fields, and the defaults that depend on other fields (`defaults.rs`).

mod action;
mod catalog;
mod control;
mod coprocess;
mod defaults;
mod environment;
mod file;
mod health;
mod http;
mod job;
mod lock;
mod otlp;
mod output;
mod ready;
mod record;
mod replicas;
mod requires;
mod service;
mod telemetry;
mod time_zone;
mod watch;
mod when;

pub(crate) use coprocess::PRE_START;
pub(crate) use defaults::apply_defaults;
pub(crate) use lock::{lock_of, lock_ttl_place};
pub(crate) use requires::required_name;
pub(crate) use telemetry::TELEMETRY_JOB;
pub(crate) use when::source_named;

use std::time::Duration;

use containerpilot_core::plan::{
    Catalog, Control, DEFAULT_STOP_ON, Job, Lock, Logging, Otlp, Plan, Process, Record, RenderedFile, Signal,
    Telemetry, Watch, stop_signal_timeout,
};

use crate::decode::{SectionInfo, Spanned};
use crate::diagnostics::{Place, Problem, Severity, SourceFile, is_reported};
use crate::fields::{ConfigFields, JobFields};
use crate::host::Host;
use crate::values::{to_duration, value_of};
use crate::{default_names, limits};
use replicas::Replicas;
use when::resolve_sources;

/// The state of lowering one configuration.
pub(crate) struct Lower<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) version: &'a str,
    pub(crate) stop_on: StopOn,
    pub(crate) problems: &'a mut Vec<Problem>,
    /// What every process has (P10, P11).
    pub(crate) shared: Process,
    /// The files that must be readable: [`crate::validate`] reports those that are not.
    pub(crate) files: Vec<NeededFile>,
    /// The templates of rendered files that have errors.
    pub(crate) templates: Templates,
}

/// A certificate or key that must be readable.
pub(crate) struct NeededFile {
    pub(crate) path: String,
    /// Where the configuration names it, or the environment variable that does.
    pub(crate) named: Result<Place, &'static str>,
}

/// Templates in which there are errors: files of the report beside those of the configuration.
#[derive(Default)]
pub(crate) struct Templates {
    /// The number of files of the configuration.
    pub(crate) first: usize,
    pub(crate) files: Vec<SourceFile>,
}

/// The signals that shut down (S8).
pub(crate) struct StopOn {
    signals: Vec<Signal>,
    /// True if the file names them.
    written: bool,
}

impl StopOn {
    pub(crate) fn of(fields: &ConfigFields) -> Self {
        let given = fields.stop_on.as_ref();
        Self {
            signals: given.map_or_else(|| DEFAULT_STOP_ON.into(), |given| given.value.clone()),
            written: given.is_some_and(|given| given.written),
        }
    }
}

impl Lower<'_> {
    pub(crate) fn report(
        &mut self,
        severity: Severity,
        place: Place,
        message: impl Into<String>,
        help: &str,
    ) {
        if self.problems.len() >= limits::PROBLEMS {
            return;
        }
        let problem = Problem::new(severity, place, message);
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        self.report(Severity::Error, place, message, help);
    }

    /// Lowers all fields but `files`. A part with errors is `None`.
    pub(crate) fn draft(&mut self, fields: &ConfigFields) -> Draft {
        let shared = self.shared_process(fields);
        self.shared = shared.clone().unwrap_or_default();
        let jobs = fields.jobs.iter().flat_map(|jobs| &jobs.value);
        let mut jobs: Vec<_> = jobs.map(|job| self.job_with_defaults(job, fields)).collect();
        let written = fields.jobs.iter().flat_map(|jobs| &jobs.value);
        let replicas: Vec<_> =
            written.zip(&jobs).map(|(fields, job)| self.replicas(fields, job.as_ref())).collect();
        self.replica_names(fields);
        let record = self.record(fields);
        self.log_files(fields, &jobs, &replicas, record.as_ref());
        self.service_ids(fields, &jobs);
        resolve_sources(&mut jobs, fields);
        let watches = fields.watches.iter().flat_map(|watches| &watches.value);
        let coprocesses = fields.coprocesses.iter().flat_map(|list| &list.value);
        let pre_start = jobs.iter().flatten().any(|job| job.name == PRE_START);
        Draft {
            jobs,
            replicas,
            watches: watches.map(|watch| self.watch(watch)).collect(),
            locks: self.locks(fields),
            files: None,
            coprocesses: coprocesses.map(|one| self.coprocess(one, pre_start)).collect(),
            catalog: self.catalog(fields.consul.as_ref()),
            control: self.control(fields),
            logging: logging(fields),
            record,
            telemetry: fields.telemetry.as_ref().map(|given| self.telemetry(&given.value)),
            otlp: fields.otlp.as_ref().map(|given| self.otlp(given)),
            stop_timeout: self.stop_timeout(fields),
            process: shared,
            stop_on: self.stop_on.signals.clone(),
        }
    }

    /// Lowers a job. A problem with a default is reported once, and names the first job that has it.
    fn job_with_defaults(&mut self, job: &JobFields, fields: &ConfigFields) -> Option<Job> {
        let before = self.problems.len();
        let lowered = self.job(job);
        if let Some(defaults) = &fields.defaults {
            let found = self.problems.split_off(before.min(self.problems.len()));
            for mut problem in found {
                if problem.place.is_some_and(|place| defaults.place.contains(place)) {
                    let same =
                        |known: &Problem| known.place == problem.place && known.message == problem.message;
                    if self.problems.iter().any(same) {
                        continue;
                    }
                    let name = default_names::job_name(job).unwrap_or("?".into());
                    let note = format!("it is a default of the job `{name}`");
                    problem.help = Some(match problem.help {
                        Some(help) => format!("{help}\n{note}"),
                        None => note,
                    });
                }
                self.problems.push(problem);
            }
        }
        lowered
    }

    fn stop_timeout(&mut self, fields: &ConfigFields) -> Option<Duration> {
        let given = fields.stop_timeout.as_ref()?;
        if given.value < 0 {
            let message = "a negative `stopTimeout` sends SIGKILL to all jobs at once";
            self.report(Severity::Warning, given.place, message, "write a positive duration");
        }
        Some(to_duration(given.value))
    }

    /// Reports a missing key, unless an error already mentions it.
    pub(crate) fn required(&mut self, info: &SectionInfo, section: Place, at: Place, key: &str) {
        if !self.is_reported(section, key) {
            let (message, help) = info.missing(key);
            self.error(at, message, &help);
        }
    }

    /// A required duration of at least 1 ms.
    pub(crate) fn positive(
        &mut self,
        info: &SectionInfo,
        section: Place,
        at: Place,
        given: Option<&Spanned<i64>>,
        key: &str,
    ) -> Option<Duration> {
        match given {
            None => {
                self.required(info, section, at, key);
                None
            }
            Some(given) if given.value <= 0 => {
                self.error(
                    given.place,
                    format!("`{key}` must be greater than 0"),
                    "for example: 5 or \"500ms\"",
                );
                None
            }
            // A shorter interval would leave no time for anything else.
            Some(given) if given.value < limits::SHORTEST_TIME => {
                self.error(given.place, format!("`{key}` must be at least 1ms"), "");
                None
            }
            Some(given) => Some(to_duration(given.value)),
        }
    }

    /// Returns true if there is an error at a place in a section.
    pub(crate) fn has_error_in(&self, section: Place) -> bool {
        let inside = |place: Place| section.contains(place);
        let mut errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        errors.any(|problem| problem.place.is_some_and(inside))
    }

    /// Returns true if an error in a section already mentions a key.
    pub(crate) fn is_reported(&self, section: Place, key: &str) -> bool {
        is_reported(self.problems, Some(section), key)
    }
}

/// A plan with missing parts where there are errors.
pub(crate) struct Draft {
    /// The jobs of the file. The replicas of a job are made at the end.
    pub(crate) jobs: Vec<Option<Job>>,
    /// How often each job is made from its definition.
    replicas: Vec<Option<Replicas>>,
    pub(crate) watches: Vec<Option<Watch>>,
    locks: Option<Vec<Lock>>,
    /// The rendered files, and the watches that only they use. They need an answer of the host ([`Lower::files`]).
    pub(crate) files: Option<(Vec<RenderedFile>, Vec<Watch>)>,
    coprocesses: Vec<Option<Job>>,
    catalog: Option<Catalog>,
    control: Option<Control>,
    logging: Option<Logging>,
    record: Option<Record>,
    telemetry: Option<Option<(Telemetry, Vec<Job>)>>,
    otlp: Option<Option<Otlp>>,
    stop_timeout: Option<Duration>,
    process: Option<Process>,
    stop_on: Vec<Signal>,
}

impl Draft {
    /// The global stop timeout.
    pub(crate) fn stop_timeout(&self) -> Option<Duration> {
        self.stop_timeout
    }

    /// The signals that shut down.
    pub(crate) fn stop_on(&self) -> &[Signal] {
        &self.stop_on
    }

    /// How long a shutdown lets jobs drain, and the stop timeout (S4).
    pub(crate) fn drain_limit(&self) -> Option<(Duration, Duration)> {
        let is_ordered = |job: &Job| job.is_stop_hook() || job.has_stop_order();
        let hooks = self.jobs.iter().flatten().any(is_ordered) || !self.coprocesses.is_empty();
        self.stop_timeout.map(|timeout| (stop_signal_timeout(timeout, hooks), timeout))
    }

    /// The plan, if it is complete.
    pub(crate) fn finish(self, legacy_maintenance: bool) -> Option<Plan> {
        // Coprocesses start first.
        let mut jobs = self.coprocesses.into_iter().collect::<Option<Vec<Job>>>()?;
        let mut groups = Vec::new();
        for (job, replicas) in self.jobs.into_iter().zip(self.replicas) {
            match replicas {
                None => jobs.push(job?),
                Some(replicas) => {
                    let group = replicas.of(job?);
                    jobs.extend(group.jobs());
                    groups.push(group);
                }
            }
        }
        let telemetry = match self.telemetry {
            None => None,
            Some(drafted) => {
                let (telemetry, served) = drafted?;
                jobs.extend(served);
                Some(telemetry)
            }
        };
        let (files, internal) = self.files?;
        let mut watches = self.watches.into_iter().collect::<Option<Vec<Watch>>>()?;
        watches.extend(internal);
        Some(Plan {
            jobs,
            replicas: groups,
            watches,
            files,
            locks: self.locks?,
            catalog: self.catalog?,
            control: self.control?,
            logging: self.logging?,
            record: self.record?,
            telemetry,
            otlp: match self.otlp {
                None => None,
                Some(drafted) => Some(drafted?),
            },
            stop_timeout: self.stop_timeout?,
            process: self.process?,
            stop_on: self.stop_on,
            pass_signals: false,
            legacy_maintenance,
        })
    }
}

fn logging(fields: &ConfigFields) -> Option<Logging> {
    let section = &fields.logging.as_ref()?.value;
    let (level, format, output) =
        (value_of(&section.level)?, value_of(&section.format)?, value_of(&section.output)?);
    Some(Logging { level, format, output })
}
