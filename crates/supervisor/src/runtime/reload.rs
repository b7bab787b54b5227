//! Reload requests: loading the configuration, and replying to the clients (R1, R2, R4).
//!
//! The configuration is loaded on its own thread, because a disk may be slow and a configuration long; the loop only
//! passes the new plan to the core. Requests that arrive during a load share one more load, which starts afterwards: it
//! has all changes made before the requests, and a hundred requests at once cost two loads. A load that takes too
//! long, such as one that waits for a FIFO, fails; its thread is abandoned.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use containerpilot_config::diagnostics::{Report, Severity};
use containerpilot_config::template::Environment;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::request::{Reply, RequestId};
use containerpilot_core::variables::Overrides;
use containerpilot_core::{Core, SortedMap};
use containerpilot_load::config_source::{self, ConfigSource, LoadError};
use containerpilot_load::looks::{self, Looks};
use containerpilot_process::failpoints::failpoint;

use crate::check_credentials;
use crate::messages::reload::{
    FinishedLoad, ReadResult, ReloadError, ReloadOutcome, ReloadRequest, ReloadSummary,
};
use crate::messages::{LoopMessage, LoopSender};
use crate::runtime::panics;

/// How long a load may take.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How many threads may still wait for a load that took too long.
const MAX_STUCK: usize = 4;

/// What the loop must do after a load.
pub(crate) struct LoadResult {
    /// Log entries.
    pub(crate) entries: Vec<(Level, String)>,
    /// The plan to pass to the core, and the id of that request.
    pub(crate) plan: Option<(RequestId, Box<Plan>)>,
}

/// All reload requests.
#[derive(Debug)]
pub(crate) struct Reloads {
    /// `None` for a single program (S7).
    source: Option<Arc<ConfigSource>>,
    /// Returns the environment that the supervisor was started with.
    environment: fn() -> Environment,
    sender: LoopSender,
    /// The running load, if there is one.
    loading: Option<Load>,
    /// The number of the last load.
    last_load: u64,
    /// One clone for each thread that is loading.
    threads: Arc<()>,
    /// The requests that have arrived since the running load started.
    next: Vec<ReloadRequest>,
    /// The requests whose plan was passed to the core.
    applying: SortedMap<RequestId, (Vec<ReloadRequest>, ReloadSummary)>,
}

/// A load on its thread.
#[derive(Debug)]
struct Load {
    number: u64,
    requests: Vec<ReloadRequest>,
    deadline: Instant,
}

impl Reloads {
    pub(crate) fn new(
        source: Option<ConfigSource>,
        environment: fn() -> Environment,
        sender: LoopSender,
    ) -> Self {
        Self {
            source: source.map(Arc::new),
            environment,
            sender,
            loading: None,
            last_load: 0,
            threads: Arc::new(()),
            next: Vec::new(),
            applying: SortedMap::new(),
        }
    }

    /// Queues a request and starts a load if none is running; `overrides` are the variables of `putenv`. Returns an
    /// error for the log.
    pub(crate) fn request(&mut self, request: ReloadRequest, overrides: &Overrides) -> Option<String> {
        self.next.retain(|request| !request.is_abandoned());
        // Requests by SIGHUP get no reply, so one of them is enough.
        let by_signal = |request: &ReloadRequest| request.reply.is_none();
        if !(by_signal(&request) && self.next.iter().any(by_signal)) {
            self.next.push(request);
        }
        self.start_next(overrides)
    }

    /// Starts a load if one is requested and none is running. Returns an error for the log.
    pub(crate) fn start_next(&mut self, overrides: &Overrides) -> Option<String> {
        if self.loading.is_some() || self.next.is_empty() {
            return None;
        }
        let requests = std::mem::take(&mut self.next);
        let Some(source) = self.source.clone() else {
            let refused = || ReloadOutcome::Refused(ReloadError::NoConfiguration);
            requests.into_iter().for_each(|request| request.reply(refused()));
            return None;
        };
        match self.start_load(source, overrides) {
            Ok(number) => {
                self.loading = Some(Load { number, requests, deadline: Instant::now() + LOAD_TIMEOUT });
                None
            }
            Err(error) => Some(refuse(requests, error)),
        }
    }

    /// Starts a thread that loads the configuration. Returns the number of the load.
    fn start_load(&mut self, source: Arc<ConfigSource>, overrides: &Overrides) -> Result<u64, ReloadError> {
        let stuck = Arc::strong_count(&self.threads) - 1;
        if stuck >= MAX_STUCK {
            return Err(ReloadError::Stuck(stuck));
        }
        self.last_load += 1;
        let (number, sender, thread) = (self.last_load, self.sender.clone(), Arc::clone(&self.threads));
        let environment = with_overrides((self.environment)(), overrides);
        let work = move || {
            // After a panic the clients still get a reply.
            let result = catch_unwind(AssertUnwindSafe(|| {
                failpoint("load");
                load(&source, environment, sender.clone())
            }));
            let result = result.unwrap_or_else(|panic| panicked(panic.as_ref()));
            drop(thread);
            sender.send(LoopMessage::Loaded(Box::new(FinishedLoad { load: number, result })));
        };
        let thread = std::thread::Builder::new().name("reload".to_owned()).spawn(work);
        thread.map(|_| number).map_err(|error| ReloadError::Thread(Arc::new(error)))
    }

    /// When the running load has taken too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.loading.as_ref().map(|load| load.deadline)
    }

    /// Gives up a load that has taken too long. Returns an error for the log.
    pub(crate) fn give_up(&mut self) -> Option<String> {
        let load = self.loading.take_if(|load| load.deadline <= Instant::now())?;
        Some(refuse(load.requests, ReloadError::Timeout(LOAD_TIMEOUT)))
    }

    /// Handles a finished load. Dry runs get their reply; the other requests wait for the core, which gets the plan in
    /// the request `id`.
    pub(crate) fn loaded(&mut self, core: &Core, loaded: FinishedLoad, id: RequestId) -> LoadResult {
        let FinishedLoad { load, result: ReadResult { plan, warnings, mut entries } } = loaded;
        let Some(Load { requests, .. }) = self.loading.take_if(|running| running.number == load) else {
            // It took too long; its requests have their reply.
            return LoadResult { entries: Vec::new(), plan: None };
        };
        let (dry, real): (Vec<_>, Vec<_>) = requests.into_iter().partition(|request| request.dry_run);
        // A dry run leaves no log entries.
        if real.is_empty() {
            entries.clear();
        }
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => {
                dry.into_iter()
                    .chain(real)
                    .for_each(|request| request.reply(ReloadOutcome::Invalid(why.clone())));
                return LoadResult { entries, plan: None };
            }
        };
        let settings = changed_settings(core.plan(), &plan);
        if !dry.is_empty() {
            let changes = core.changes(&plan);
            let summary = ReloadSummary { changes, settings: settings.clone(), warnings: warnings.clone() };
            dry.into_iter().for_each(|request| request.reply(ReloadOutcome::Applied(summary.clone())));
        }
        if real.is_empty() {
            return LoadResult { entries, plan: None };
        }
        self.applying.insert(id, (real, ReloadSummary { settings, warnings, ..ReloadSummary::default() }));
        LoadResult { entries, plan: Some((id, plan)) }
    }

    /// Passes the core's reply to the clients and returns a log entry. Returns the reply itself if it belongs to
    /// another request.
    pub(crate) fn reply(&mut self, id: RequestId, reply: Reply) -> Result<(Level, String), Box<Reply>> {
        let Some((requests, mut summary)) = self.applying.remove(&id) else { return Err(Box::new(reply)) };
        let (outcome, entry) = match reply {
            Reply::Reloaded(changes) => {
                summary.changes = changes;
                let line = format!("reload: {}", summary.line());
                (ReloadOutcome::Applied(summary), (Level::Info, line))
            }
            Reply::Refused(why) => {
                let line = format!("reload: refused: {why}");
                (ReloadOutcome::Refused(why.into()), (Level::Warn, line))
            }
            Reply::Done(_) | Reply::Updated(_) | Reply::Jobs(_) => {
                (ReloadOutcome::Applied(summary), (Level::Info, "reload: done".to_owned()))
            }
        };
        requests.into_iter().for_each(|request| request.reply(outcome.clone()));
        Ok(entry)
    }
}

/// The environment with the changes of `putenv` (R2).
fn with_overrides(mut environment: Environment, overrides: &Overrides) -> Environment {
    for (name, value) in overrides {
        match value {
            Some(value) => drop(environment.insert(name.clone().into_bytes(), value.clone().into_bytes())),
            None => drop(environment.remove(name.as_bytes())),
        }
    }
    environment
}

/// The sections other than jobs that differ.
fn changed_settings(old: &Plan, new: &Plan) -> Vec<&'static str> {
    let sections = [
        ("consul", old.catalog != new.catalog),
        ("watches", old.watches != new.watches),
        ("files", old.files != new.files),
        ("control", old.control != new.control),
        ("logging", old.logging != new.logging),
        ("record", old.record != new.record),
        ("telemetry", old.telemetry != new.telemetry),
        ("stopTimeout", old.stop_timeout != new.stop_timeout),
    ];
    sections.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
}

/// Logs the file that the load waits for (P15).
fn load(source: &ConfigSource, environment: Environment, log: LoopSender) -> ReadResult {
    let looks = Looks::new(move |path| {
        log.send(LoopMessage::Log(Level::Warn, format!("reload: {}", looks::waiting_for(path))));
    });
    match source.load(environment, &Rc::new(looks)) {
        Ok((plan, report)) => {
            if let Err(why) = check_credentials(&plan) {
                return not_loaded(&why);
            }
            let (warnings, entries) = (config_source::report_text(&report), entries(&report));
            ReadResult { plan: Ok(Box::new(plan)), warnings, entries }
        }
        Err(LoadError::Invalid(report)) => {
            let mut lines = vec![(Level::Error, format!("reload: {UNCHANGED}"))];
            lines.extend(entries(&report));
            let why = format!("{}\n{UNCHANGED}", config_source::report_text(&report).trim_end());
            ReadResult { plan: Err(why), warnings: String::new(), entries: lines }
        }
        Err(error @ (LoadError::Read(_) | LoadError::BareProgram)) => not_loaded(&error.to_string()),
    }
}

const UNCHANGED: &str = "the configuration has errors, so nothing was changed";

fn not_loaded(why: &str) -> ReadResult {
    let why = format!("{why}; nothing was changed");
    let entries = vec![(Level::Error, format!("reload: {why}"))];
    ReadResult { plan: Err(why), warnings: String::new(), entries }
}

/// Refuses requests. Returns the entry for the log.
fn refuse(requests: Vec<ReloadRequest>, error: ReloadError) -> String {
    let line = format!("reload: {error}");
    requests.into_iter().for_each(|request| request.reply(ReloadOutcome::Refused(error.clone())));
    line
}

fn panicked(panic: &(dyn Any + Send)) -> ReadResult {
    let message = panics::message(panic);
    not_loaded(&format!("internal error while loading: {message}; please report it"))
}

/// A log entry for each problem.
fn entries(report: &Report) -> Vec<(Level, String)> {
    let entry = |one: &containerpilot_config::diagnostics::Located| {
        let level = if one.problem.severity == Severity::Error { Level::Error } else { Level::Warn };
        let place = one
            .location
            .as_ref()
            .map(|at| format!("{}:{}:{}: ", report.file_name(at.file), at.line, at.column));
        let help = one.problem.help.as_ref().map(|help| format!("; {help}"));
        let message = &one.problem.message;
        (level, format!("reload: {}{message}{}", place.unwrap_or_default(), help.unwrap_or_default()))
    };
    report.problems().iter().map(entry).collect()
}

#[cfg(test)]
mod tests;
