//! What follows from the end of a process: dependencies on processes that are restarted, and jobs that stop others.

use std::collections::{BTreeMap, BTreeSet};

use crate::conditions::on;
use crate::depends_on::{Condition, Dependency, Planned, Start};
use crate::document::{Document, Field, Fields, Job, Value};
use crate::files::SourceLine;

const EXIT_CODE: &str = "process-compose exits with 0 when all processes have ended, also if one without `exit_on_failure` failed. \
    Here the exit code is that of the first job that failed.";
const ORDER: &str = "Jobs stop in the reverse order of their dependencies. \
    process-compose stops all processes at once, unless `ordered_shutdown` is set.";

/// The most dependencies that are followed, so that a hostile file does not take long.
const MAX_STEPS: usize = 1_000_000;

/// How often a process runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Once,
    UntilSuccess,
    WithoutEnd,
    Limited,
}

fn runs(job: &Planned) -> Runs {
    match (job.fields.get("restarts"), job.fields.get("restartOn")) {
        (None, _) => Runs::Once,
        (Some(Value::Text(_)), Some(_)) => Runs::UntilSuccess,
        (Some(Value::Text(_)), None) => Runs::WithoutEnd,
        (Some(_), _) => Runs::Limited,
    }
}

/// Says at the top of the file how the end of the supervisor differs.
pub(super) fn remarks(jobs: &[Planned], ordered: bool, document: &mut Document) {
    let may_fail = |job: &Planned| {
        let ends = matches!(runs(job), Runs::Once | Runs::Limited);
        ends && job.fields.get("onFailure").is_none()
    };
    if jobs.iter().any(may_fail) {
        document.remark(EXIT_CODE);
    }
    if !ordered && jobs.iter().any(|job| !job.depends.is_empty()) {
        document.remark(ORDER);
    }
}

/// `process_completed` and `process_completed_successfully` mean the last end of a process that is restarted.
pub(super) fn wait_for_last_end(jobs: &mut [Planned], document: &mut Document) {
    // `requires` waits for the last end of a job without checks.
    let first_success = |job: &Planned| {
        let has = |key| job.fields.get(key).is_some();
        (has("health") || has("ready")) && !has("restartOn")
    };
    let runs: BTreeMap<String, (Runs, bool)> =
        jobs.iter().map(|job| (job.original.clone(), (runs(job), first_success(job)))).collect();
    for job in jobs {
        let mut never = None;
        for dependency in &mut job.depends {
            let Some((runs, first_success)) = runs.get(&dependency.on) else { continue };
            let on = &dependency.on;
            match (dependency.condition, runs) {
                (Condition::Completed, Runs::UntilSuccess) => dependency.condition = Condition::Succeeded,
                (Condition::Completed | Condition::Succeeded, Runs::WithoutEnd) => {
                    let why = format!("`{on}` never ends, so process-compose never starts this process");
                    document.inexact(&dependency.from, why);
                    never = Some(dependency.from.clone());
                }
                (Condition::Succeeded, Runs::Limited) if *first_success => {
                    let why = format!("it starts after the first success of `{on}`, not after its last run");
                    document.inexact(&dependency.from, why);
                }
                (Condition::Completed, Runs::Limited) => {
                    let why = format!("it starts after the first run of `{on}`, not after its last");
                    document.inexact(&dependency.from, why);
                }
                _ => {}
            }
        }
        if never.is_some() && job.start == Start::AtStartup {
            job.start = Start::Manual(never);
        }
        let ends = |dependency: &Dependency| {
            let never = runs.get(&dependency.on).is_some_and(|(runs, _)| *runs == Runs::WithoutEnd);
            !never || !matches!(dependency.condition, Condition::Completed | Condition::Succeeded)
        };
        job.depends.retain(ends);
    }
}

/// The jobs whose failure skips a job, and whether something else could skip it, too.
fn skipped_by(
    job: usize,
    jobs: &[Planned],
    index: &BTreeMap<&str, usize>,
    steps: &mut usize,
) -> (BTreeSet<usize>, bool) {
    let mut causes = BTreeSet::new();
    let mut others = false;
    let mut open = vec![job];
    while let Some(at) = open.pop() {
        for dependency in jobs.get(at).map(|job| job.depends.as_slice()).unwrap_or_default() {
            *steps += 1;
            if *steps > MAX_STEPS {
                return (causes, true);
            }
            let found = index.get(dependency.on.as_str());
            let Some((found, other)) = found.and_then(|at| Some((*at, jobs.get(*at)?))) else { continue };
            match (dependency.condition, runs(other)) {
                (Condition::Succeeded, Runs::Once) => {
                    let is_new = causes.insert(found);
                    open.extend(is_new.then_some(found));
                }
                (Condition::Succeeded, Runs::Limited) | (Condition::Healthy, _) => others = true,
                _ => {}
            }
        }
    }
    (causes, others)
}

enum Action {
    /// Stops the first source.
    Stop,
    /// Shuts down with exit code 1.
    Shutdown,
}

/// A job that is added when the names of all jobs are known. Its sources are positions in the list of jobs.
pub(super) struct Reaction {
    name: String,
    from: SourceLine,
    action: Action,
    event: &'static str,
    sources: Vec<usize>,
}

impl Reaction {
    /// A process that is not ready is stopped, if nothing restarts it.
    pub(super) fn stop(at: usize, job: &Planned, from: SourceLine, document: &mut Document) -> Option<Self> {
        if job.fields.get("replicas").is_some() {
            document.inexact(&from, "a replica that is not ready is not stopped: use `restarts`");
            return None;
        }
        // The event is also sent when the process exits, and after a stop `onFailure` has no effect.
        if job.fields.get("onFailure").is_some() {
            let why = "the container ends when the process does, but not when this check fails";
            document.inexact(&from, why);
            return None;
        }
        if matches!(job.start, Start::Schedule(..)) {
            document
                .inexact(&from, "a run of a schedule is not stopped when this check fails: use `timeout`");
            return None;
        }
        let name = format!("{}-not-ready", job.original);
        Some(Self { name, from, action: Action::Stop, event: "becameUnhealthy", sources: vec![at] })
    }

    /// The container ends when a process with `exit_on_skipped` is skipped.
    pub(super) fn shutdowns(
        skipped: Vec<(usize, SourceLine)>,
        jobs: &[Planned],
        document: &mut Document,
    ) -> Vec<Self> {
        let index: BTreeMap<&str, usize> =
            jobs.iter().enumerate().map(|(at, job)| (job.original.as_str(), at)).collect();
        let mut steps = 0;
        let mut reactions = Vec::new();
        for (at, from) in skipped {
            let (sources, others) = skipped_by(at, jobs, &index, &mut steps);
            if others {
                let why =
                    "only the failure of a process that runs once, and that must succeed, ends the container";
                document.inexact(&from, why);
            } else if sources.is_empty() {
                document.not_needed(&from, "it is never skipped");
            }
            if let Some(job) = jobs.get(at).filter(|_| !sources.is_empty()) {
                let name = format!("{}-skipped", job.original);
                let sources = sources.into_iter().collect();
                let action = Action::Shutdown;
                reactions.push(Self { name, from, action, event: "exitFailed", sources });
            }
        }
        reactions
    }

    pub(super) fn add(self, names: &[String], document: &mut Document) {
        let sources: Vec<&str> =
            self.sources.iter().filter_map(|at| names.get(*at).map(String::as_str)).collect();
        let Some(first) = sources.first() else { return };
        let when = match sources.as_slice() {
            [only] => on(only, "once", self.event),
            all => {
                let any: Vec<Value> = all.iter().map(|source| on(source, "event", self.event)).collect();
                Value::Object(vec![Field::new("any", any)])
            }
        };
        let action = match self.action {
            Action::Stop => Field::new("stop", *first),
            Action::Shutdown => Field::new("shutdown", 1),
        };
        let mut fields = Vec::new();
        fields.set("do", Value::Object(vec![action]), None);
        fields.set("when", when, None);
        let name = document.free_name(&self.name);
        document.jobs.push(Job { name, from: Some(self.from), fields });
    }
}
