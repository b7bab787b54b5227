//! Reloading: who asks for it, who loads, and who is told what became of it (R1, R2, R4).
//!
//! Files are read on a thread of their own, because a disk may be slow and a configuration long; the loop only passes the
//! new plan on to the core. While a load is under way, all who ask wait together for one more load, which begins after
//! it: what they have changed before they asked is seen, and a hundred at once cost two loads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use containerpilot_config::diagnose::{Report, Severity};
use containerpilot_config::template::Environment;
use containerpilot_core::plan::diff::Changes;
use containerpilot_core::plan::{Level, Plan};
use containerpilot_core::request::{Reply, RequestId};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

use crate::load::source::{self, NoPlan, Source};
use crate::runtime::channel::{LoopMessage, LoopSender};
use crate::runtime::failpoints::failpoint;

/// Somebody who wants a reload.
#[derive(Debug)]
pub(crate) struct Asker {
    /// Whether only what it would do is wanted.
    pub(crate) dry: bool,
    /// The way back; a signal has none.
    pub(crate) answer: Option<oneshot::Sender<Outcome>>,
}

impl Asker {
    /// Nobody waits any more for what was asked.
    fn has_gone(&self) -> bool {
        self.answer.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn tell(self, outcome: Outcome) {
        if let Some(answer) = self.answer {
            // Whoever does not wait for it any more does not get it.
            let _ = answer.send(outcome);
        }
    }
}

/// What became of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done, or would be done so.
    Done(Done),
    /// The configuration cannot be loaded; all that is wrong with it, and nothing has changed.
    Wrong(String),
    /// It is not the time for it.
    Refused(String),
}

/// What a reload did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// To the jobs.
    pub(crate) changes: Changes,
    /// The other parts of the configuration that are not as they were.
    pub(crate) settings: Vec<&'static str>,
    /// What is probably not meant.
    pub(crate) warnings: String,
}

impl Done {
    /// In one line.
    fn words(&self) -> String {
        let Changes { kept, restarted, started, stopped } = &self.changes;
        let named = [("restarted", restarted), ("started", started), ("stopped", stopped)];
        let named = named.iter().filter(|(_, names)| !names.is_empty());
        let mut parts: Vec<String> =
            named.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
        if !self.settings.is_empty() {
            parts.push(format!("changed {}", self.settings.join(", ")));
        }
        parts.push(format!(
            "kept {}",
            if kept.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", kept.len()) }
        ));
        parts.join("; ")
    }
}

/// What was loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The plan, or everything that is wrong.
    plan: Result<Box<Plan>, String>,
    warnings: String,
    /// For the log, a line for each problem.
    entries: Vec<(Level, String)>,
}

/// What a load leads to.
pub(crate) struct Step {
    /// What is to be logged.
    pub(crate) entries: Vec<(Level, String)>,
    /// A plan that is to be put in force, with the number of that request.
    pub(crate) plan: Option<(RequestId, Box<Plan>)>,
}

/// Who waits for what.
#[derive(Debug)]
pub(crate) struct Reloads {
    /// Where the configuration comes from; a program alone has none.
    source: Option<Arc<Source>>,
    /// Says the environment that the supervisor was started with.
    environment: fn() -> Environment,
    sender: LoopSender,
    /// Those who wait for the load that is under way, if there is one.
    loading: Option<Vec<Asker>>,
    /// Those who have come since then.
    next: Vec<Asker>,
    /// Those whose plan the core has.
    pending: BTreeMap<RequestId, (Vec<Asker>, Done)>,
}

impl Reloads {
    pub(crate) fn new(source: Option<Source>, environment: fn() -> Environment, sender: LoopSender) -> Self {
        Self {
            source: source.map(Arc::new),
            environment,
            sender,
            loading: None,
            next: Vec::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Somebody wants a reload; `set` are the variables that were set by hand. What there is to log comes back.
    pub(crate) fn ask(&mut self, asker: Asker, set: &BTreeMap<String, Option<String>>) -> Option<String> {
        self.next.retain(|asker| !asker.has_gone());
        // A signal asks for no answer, so one of many is enough.
        let silent = |asker: &Asker| asker.answer.is_none();
        if !(silent(&asker) && self.next.iter().any(silent)) {
            self.next.push(asker);
        }
        self.proceed(set)
    }

    /// Begins to load, if somebody waits for it and nothing is being loaded.
    pub(crate) fn proceed(&mut self, set: &BTreeMap<String, Option<String>>) -> Option<String> {
        if self.loading.is_some() || self.next.is_empty() {
            return None;
        }
        let askers = std::mem::take(&mut self.next);
        let Some(source) = self.source.clone() else {
            let why = "there is no configuration: a program runs alone";
            askers.into_iter().for_each(|asker| asker.tell(Outcome::Refused(why.to_owned())));
            return None;
        };
        let environment = with_set((self.environment)(), set);
        let sender = self.sender.clone();
        let work = move || {
            // A fault of ours must not leave anybody waiting.
            let loaded = catch_unwind(AssertUnwindSafe(|| {
                failpoint("load");
                load(&source, environment)
            }));
            sender.send(LoopMessage::Loaded(Box::new(loaded.unwrap_or_else(|panic| fault(panic.as_ref())))));
        };
        match std::thread::Builder::new().name("reload".to_owned()).spawn(work) {
            Ok(_) => {
                self.loading = Some(askers);
                None
            }
            Err(error) => {
                let why = format!("the configuration cannot be read: no thread can be started: {error}");
                askers.into_iter().for_each(|asker| asker.tell(Outcome::Refused(why.clone())));
                Some(format!("reload: {why}"))
            }
        }
    }

    /// A load is done. Whoever only wants to know what a reload would do is told; the others wait for the core, to which
    /// the plan is to be given as a request of this number.
    pub(crate) fn loaded(&mut self, now: &Plan, loaded: Loaded, id: RequestId) -> Step {
        let Loaded { plan, warnings, mut entries } = loaded;
        let askers = self.loading.take().unwrap_or_default();
        let (dry, real): (Vec<_>, Vec<_>) = askers.into_iter().partition(|asker| asker.dry);
        // Those who only look leave no traces.
        if real.is_empty() {
            entries.clear();
        }
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => {
                dry.into_iter().chain(real).for_each(|asker| asker.tell(Outcome::Wrong(why.clone())));
                return Step { entries, plan: None };
            }
        };
        let settings = settings(now, &plan);
        if !dry.is_empty() {
            let changes = containerpilot_core::plan::diff::changes(now, &plan);
            let done = Done { changes, settings: settings.clone(), warnings: warnings.clone() };
            dry.into_iter().for_each(|asker| asker.tell(Outcome::Done(done.clone())));
        }
        if real.is_empty() {
            return Step { entries, plan: None };
        }
        self.pending.insert(id, (real, Done { settings, warnings, ..Done::default() }));
        Step { entries, plan: Some((id, plan)) }
    }

    /// The core has answered. What there is to log comes back; the answer itself, if it is for somebody else.
    #[inline(never)]
    pub(crate) fn reply(&mut self, id: RequestId, answer: Reply) -> Result<(Level, String), Reply> {
        let Some((askers, mut done)) = self.pending.remove(&id) else { return Err(answer) };
        let (outcome, entry) = match answer {
            Reply::Reloaded(changes) => {
                done.changes = changes;
                let words = format!("reload: {}", done.words());
                (Outcome::Done(done), (Level::Info, words))
            }
            Reply::Refused(why) => {
                let words = format!("reload: refused: {why}");
                (Outcome::Refused(why), (Level::Warn, words))
            }
            Reply::Done(_) | Reply::Updated(_) => {
                (Outcome::Done(done), (Level::Info, "reload: done".to_owned()))
            }
        };
        askers.into_iter().for_each(|asker| asker.tell(outcome.clone()));
        Ok(entry)
    }
}

/// The environment as it is after `putenv` (R2).
fn with_set(mut environment: Environment, set: &BTreeMap<String, Option<String>>) -> Environment {
    for (name, value) in set {
        match value {
            Some(value) => drop(environment.insert(name.clone().into_bytes(), value.clone().into_bytes())),
            None => drop(environment.remove(name.as_bytes())),
        }
    }
    environment
}

/// The parts of a configuration besides jobs that are not the same.
fn settings(old: &Plan, new: &Plan) -> Vec<&'static str> {
    let parts = [
        ("consul", old.catalog != new.catalog),
        ("watches", old.watches != new.watches),
        ("control", old.control != new.control),
        ("logging", old.logging != new.logging),
        ("telemetry", old.telemetry != new.telemetry),
        ("stopTimeout", old.stop_timeout != new.stop_timeout),
    ];
    parts.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
}

fn load(source: &Source, environment: Environment) -> Loaded {
    match source.load(environment) {
        Ok((plan, report)) => {
            let (warnings, entries) = (source::words_of(&report), entries(&report));
            Loaded { plan: Ok(Box::new(plan)), warnings, entries }
        }
        Err(NoPlan::Errors(report)) => {
            let mut lines = vec![(Level::Error, format!("reload: {UNCHANGED}"))];
            lines.extend(entries(&report));
            let why = format!("{}\n{UNCHANGED}", source::words_of(&report).trim_end());
            Loaded { plan: Err(why), warnings: String::new(), entries: lines }
        }
        Err(NoPlan::Unreadable(why)) => wrong(&why),
        Err(NoPlan::Bare) => wrong(
            "the configuration is not one of ContainerPilot 2 any more: beside others, a program stands behind `--`",
        ),
    }
}

const UNCHANGED: &str = "the configuration has errors, so nothing was changed";

fn wrong(why: &str) -> Loaded {
    let why = format!("{why}; nothing was changed");
    let entries = vec![(Level::Error, format!("reload: {why}"))];
    Loaded { plan: Err(why), warnings: String::new(), entries }
}

fn fault(panic: &(dyn Any + Send)) -> Loaded {
    let words = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    wrong(&format!("a fault of containerpilot while loading: {words}; please report it"))
}

/// A line for each problem.
fn entries(report: &Report) -> Vec<(Level, String)> {
    let entry = |one: &containerpilot_config::diagnose::Located| {
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
