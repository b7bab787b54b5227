//! Jobs and what they wait for, for the programs whose dependencies have conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::conditions::{ended, on};
use crate::cycles;
use crate::document::{Document, Field, Fields, Job, Value};
use crate::error::ImportError;
use crate::files::SourceLine;

/// The most jobs of one configuration.
const MAX_JOBS: usize = 2000;
/// The most dependencies that are followed, so that a hostile file does not take long.
const MAX_STEPS: usize = 1_000_000;

/// Our default of `stopTimeout`.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A job that is not complete yet: what it waits for is decided when all jobs are known.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Its name in the original.
    pub(crate) original: String,
    pub(crate) from: SourceLine,
    /// Its keys, without what follows from its dependencies.
    pub(crate) fields: Vec<Field>,
    pub(crate) depends: Vec<Dependency>,
    /// What starts it, besides its dependencies.
    pub(crate) start: Start,
    /// The time it has to stop, if it has a time of its own.
    pub(crate) stop: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    AtStartup,
    Manual(Option<SourceLine>),
    /// The keys `interval`, or `cron` and `timezone`, of `when`.
    Schedule(Vec<Field>, SourceLine),
}

#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    /// The other job, by its name in the original.
    pub(crate) on: String,
    pub(crate) condition: Condition,
    /// Whether the job also stops with the other one.
    pub(crate) bind: bool,
    /// Whether the original starts the job also if the other one fails.
    pub(crate) optional: bool,
    pub(crate) from: SourceLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Its process was started.
    Started,
    /// Its checks pass.
    Healthy,
    /// It has exited with success.
    Succeeded,
    /// It has exited.
    Completed,
}

/// When `requires` is satisfied by a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Required {
    WhileHealthy,
    AfterSuccess,
    WhileRunning,
}

fn required(job: &Planned) -> Required {
    let has = |key| job.fields.get(key).is_some();
    if has("health") || has("ready") {
        Required::WhileHealthy
    } else if job.fields.get("restarts") == Some(&Value::from("unlimited"))
        || matches!(job.start, Start::Schedule(..))
    {
        Required::WhileRunning
    } else {
        Required::AfterSuccess
    }
}

/// A job that starts after another one and stops before it.
struct Later {
    at: usize,
    place: SourceLine,
    /// True if its place in the file is enough for that.
    in_order: bool,
}

/// What a job waits for, and the lines that say so.
#[derive(Default)]
struct Waits {
    requires: Vec<(usize, bool, SourceLine)>,
    succeeded: Vec<(usize, SourceLine)>,
    completed: Vec<(usize, SourceLine)>,
    /// The jobs that start before this one and stop after it, although it does not require them.
    order: Vec<(usize, SourceLine)>,
}

/// Completes the jobs and adds them to the document. A job without `killAfter` has `usual_stop` to stop. Returns the new names.
///
/// # Errors
/// If there are too many jobs or dependencies.
pub(crate) fn add_all(
    jobs: Vec<Planned>,
    usual_stop: Duration,
    document: &mut Document,
) -> Result<Vec<String>, ImportError> {
    let first = jobs.first().map(|job| job.from.clone());
    limit(jobs.len(), first.clone())?;
    stop_times(&jobs, usual_stop, document);
    let index: BTreeMap<&str, usize> =
        jobs.iter().enumerate().map(|(at, job)| (job.original.as_str(), at)).collect();
    let mut steps = 0;
    let mut waits = Vec::new();
    for at in 0..jobs.len() {
        let found = waits_of(at, &jobs, &index, document, &mut steps);
        waits.push(found.ok_or_else(|| invalid(first.clone(), "there are too many dependencies"))?);
    }
    // Names first, so that each job can name the others.
    let names: Vec<String> = jobs.iter().map(|job| document.free_name(&job.original)).collect();
    let mut later: BTreeMap<usize, Vec<Later>> = BTreeMap::new();
    for (at, wait) in waits.iter().enumerate() {
        // Jobs that wait for the same event start in the order of the file, and so do jobs that wait only for requirements (W18).
        let waits_for_no_event = wait.succeeded.is_empty() && wait.completed.is_empty();
        for (earlier, place) in &wait.order {
            let requires_nothing = waits.get(*earlier).is_none_or(|earlier| earlier.requires.is_empty());
            let in_order = requires_nothing || waits_for_no_event;
            later.entry(*earlier).or_default().push(Later { at, place: place.clone(), in_order });
        }
    }
    let order = start_order(&waits);
    let mut complete: Vec<Option<Job>> = Vec::new();
    for (at, ((job, wait), name)) in jobs.into_iter().zip(waits).zip(&names).enumerate() {
        let until = match required(&job) {
            Required::WhileHealthy => "is healthy",
            Required::AfterSuccess => "has succeeded",
            Required::WhileRunning => "runs",
        };
        let is_manual = matches!(job.start, Start::Manual(_));
        let mut fields = job.fields;
        finish(&mut fields, job.start, wait, &names, document);
        if let Some(later) = later.remove(&at) {
            let jobs: Vec<&str> =
                later.iter().filter_map(|one| names.get(one.at).map(String::as_str)).collect();
            let places: Vec<SourceLine> = later.iter().map(|one| one.place.clone()).collect();
            fields.set_from("stopAfter", jobs, &places);
            if later.iter().any(|one| one.in_order) && !is_manual {
                let order = "They start after it, in the order of this file.";
                fields.note("stopAfter", format!("{order} `requires` would also wait until it {until}."));
            }
            for one in later.iter().filter(|one| !one.in_order && !is_manual) {
                let why = format!(
                    "it starts when `{name}` starts, perhaps before it: `requires` would wait until that {until}"
                );
                document.inexact(&one.place, why);
            }
        }
        complete.push(Some(Job { name: name.clone(), from: Some(job.from), fields }));
    }
    for at in order {
        document.jobs.extend(complete.get_mut(at).and_then(Option::take));
    }
    Ok(names)
}

/// The times to stop: `stopTimeout` is the longest of all, and `killAfter` of `defaults` is that of the jobs that have none of their own.
fn stop_times(jobs: &[Planned], usual: Duration, document: &mut Document) {
    let longest = jobs.iter().map(|job| job.stop).max().unwrap_or_default().max(usual);
    if longest != STOP_TIMEOUT {
        document.top.set("stopTimeout", longest, None);
    }
    if longest > usual && jobs.iter().any(|job| job.fields.get("killAfter").is_none()) {
        let defaults = vec![Field::new("killAfter", usual)];
        document.top.set("defaults", Value::Object(defaults), None);
    }
}

/// The jobs in the order of the original, but each after those that must start earlier.
fn start_order(waits: &[Waits]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for first in 0..waits.len() {
        let mut open = vec![(first, false)];
        while let Some((at, earlier_are_done)) = open.pop() {
            if earlier_are_done {
                order.push(at);
            } else if seen.insert(at) {
                open.push((at, true));
                let earlier = waits.get(at).map(|wait| wait.order.as_slice()).unwrap_or_default();
                open.extend(earlier.iter().rev().map(|(at, _)| (*at, false)));
            }
        }
    }
    order
}

/// Refuses dependencies in a cycle, as the original programs do. An edge has the name of a service, the name of one that it depends on,
/// and the line that says so.
///
/// # Errors
/// If there is a cycle.
pub(crate) fn refuse_cycle(edges: &[(&str, &str, SourceLine)]) -> Result<(), ImportError> {
    let all = edges.iter().map(|(from, to, _)| ((*from).to_owned(), (*to).to_owned())).collect();
    let cyclic: BTreeMap<String, String> = cycles::cyclic(&all).into_iter().collect();
    let is_part =
        |(from, to, _): &&(&str, &str, SourceLine)| cyclic.get(*from).is_some_and(|next| next == to);
    let Some((first, _, _)) = edges.iter().find(is_part) else { return Ok(()) };
    // From every edge that is left, the way leads on, and so into a cycle.
    let mut way: Vec<&str> = vec![first];
    while let Some(next) = way.last().and_then(|last| cyclic.get(*last)) {
        if let Some(start) = way.iter().position(|name| name == next) {
            way.drain(..start);
            break;
        }
        way.push(next);
    }
    let place = way.first().and_then(|name| edges.iter().find(|edge| edge.0 == *name && is_part(edge)));
    let names: Vec<String> = way.iter().chain(way.first()).map(|name| format!("`{name}`")).collect();
    let message = format!("the dependencies form a cycle: {}: remove one of them", names.join(" → "));
    Err(invalid(place.map(|(_, _, place)| place.clone()), &message))
}

/// Refuses a file with too many services.
///
/// # Errors
/// If there are too many.
pub(crate) fn limit(count: usize, first: Option<SourceLine>) -> Result<(), ImportError> {
    match count > MAX_JOBS {
        true => Err(invalid(
            first,
            &format!(
                "more than {MAX_JOBS} services, processes or checks: split the file and convert each part"
            ),
        )),
        false => Ok(()),
    }
}

fn invalid(place: Option<SourceLine>, message: &str) -> ImportError {
    let (file, line) = place.map_or_else(Default::default, |place| (place.file, place.line));
    ImportError::Invalid { file, line, message: message.to_owned() }
}

/// Follows the dependencies of one job. `None` if that takes too many steps.
fn waits_of(
    job: usize,
    jobs: &[Planned],
    index: &BTreeMap<&str, usize>,
    document: &mut Document,
    steps: &mut usize,
) -> Option<Waits> {
    let mut waits = Waits::default();
    let mut seen = BTreeSet::from([job]);
    let mut required_already = BTreeSet::new();
    let mut ordered_already = BTreeSet::new();
    let mut ends_already = BTreeSet::new();
    // Jobs whose dependencies are those of this job, too, and the line that says so.
    let mut follow: Vec<(usize, Option<SourceLine>)> = vec![(job, None)];
    while let Some((at, followed_by)) = follow.pop() {
        for dependency in jobs.get(at).map(|job| job.depends.as_slice()).unwrap_or_default() {
            *steps += 1;
            if *steps > MAX_STEPS {
                return None;
            }
            let own = followed_by.is_none();
            let from = || followed_by.clone().unwrap_or_else(|| dependency.from.clone());
            let Some((other, planned)) =
                index.get(dependency.on.as_str()).and_then(|other| Some((*other, jobs.get(*other)?)))
            else {
                if own {
                    let why = format!(
                        "`{}` is not a job here; for a service of another container use a watch",
                        dependency.on
                    );
                    document.inexact(&dependency.from, why);
                }
                continue;
            };
            let class = required(planned);
            let condition = match dependency.condition {
                Condition::Healthy if class != Required::WhileHealthy => {
                    if own {
                        let why = format!(
                            "`{}` has no health check here: add `health`; the job waits only for its start",
                            dependency.on
                        );
                        document.inexact(&dependency.from, why);
                    }
                    Condition::Started
                }
                condition => condition,
            };
            let matches_requires = matches!(
                (condition, class),
                (Condition::Started, Required::WhileRunning)
                    | (Condition::Healthy, _)
                    | (Condition::Succeeded, Required::AfterSuccess)
            );
            if own && dependency.optional && (matches_requires || condition == Condition::Succeeded) {
                let why = format!("the job waits for `{}` although it is not required", dependency.on);
                document.inexact(&dependency.from, why);
            }
            match condition {
                _ if matches_requires => {
                    if required_already.insert(other) {
                        waits.requires.push((other, dependency.bind && own, from()));
                    }
                }
                // `requires` would wait for more than the start: wait for what the other job waits for.
                Condition::Started | Condition::Healthy => {
                    if own {
                        if dependency.bind {
                            let why = format!(
                                "it is not restarted with `{}`: use `requires` with `bind`",
                                dependency.on
                            );
                            document.inexact(&dependency.from, why);
                        }
                        let is_manual = |job: &Planned| matches!(job.start, Start::Manual(_));
                        if is_manual(planned) {
                            let why = match jobs.get(job).is_some_and(is_manual) {
                                true => format!("a user starts both: start `{}` first", dependency.on),
                                false => format!(
                                    "it does not wait for `{}`, which a user starts: use `requires`",
                                    dependency.on
                                ),
                            };
                            document.inexact(&dependency.from, why);
                        }
                        if ordered_already.insert(other) {
                            waits.order.push((other, from()));
                        }
                    }
                    if seen.insert(other) {
                        follow.push((other, Some(from())));
                    }
                }
                Condition::Succeeded | Condition::Completed => {
                    let succeeded = condition == Condition::Succeeded;
                    if ends_already.insert((other, succeeded)) {
                        let ends = if succeeded { &mut waits.succeeded } else { &mut waits.completed };
                        ends.push((other, from()));
                    }
                }
            }
        }
    }
    Some(waits)
}

fn finish(fields: &mut Vec<Field>, start: Start, waits: Waits, names: &[String], document: &mut Document) {
    let name = |at: usize| names.get(at).cloned().unwrap_or_default();
    if !waits.requires.is_empty() {
        let item = |(at, bind, _): &(usize, bool, SourceLine)| match bind {
            true => Value::Object(vec![Field::new("source", name(*at)), Field::new("bind", true)]),
            false => Value::Text(name(*at)),
        };
        let items = waits.requires.iter().map(item).collect();
        let places: Vec<SourceLine> = waits.requires.iter().map(|(_, _, place)| place.clone()).collect();
        fields.set_from("requires", Value::List(items), &places);
    }
    let mut inexact = |events: &[(usize, SourceLine)], why: &str| {
        for (at, place) in events {
            document.inexact(place, format!("it does not wait for `{}`: {why}", name(*at)));
        }
    };
    match (start, waits.succeeded.as_slice(), waits.completed.as_slice()) {
        (Start::AtStartup, [], []) => {}
        (Start::AtStartup, [(at, place)], []) => {
            fields.set("when", on(&name(*at), "once", "exitSuccess"), Some(place));
        }
        (Start::AtStartup, [], [(at, place), more @ ..]) => {
            fields.set("when", ended(&name(*at)), Some(place));
            inexact(more, "a job waits for the end of one other job, whether it succeeded or not");
        }
        (Start::AtStartup, succeeded, completed) => {
            let all = succeeded.iter().map(|(at, _)| on(&name(*at), "event", "exitSuccess")).collect();
            let places: Vec<SourceLine> = succeeded.iter().map(|(_, place)| place.clone()).collect();
            fields.set_from("when", Value::Object(vec![Field::new("all", Value::List(all))]), &places);
            inexact(
                completed,
                "the end of a job, whether it succeeded or not, cannot be combined with others",
            );
        }
        (Start::Manual(place), succeeded, completed) => {
            fields.set("when", "manual", place.as_ref());
            inexact(succeeded, "a user starts the job");
            inexact(completed, "a user starts the job");
        }
        (Start::Schedule(mut schedule, place), succeeded, completed) => {
            let mut later = succeeded;
            if let [(at, _), more @ ..] = succeeded {
                schedule.splice(0..0, [Field::new("source", name(*at)), Field::new("once", "exitSuccess")]);
                later = more;
            }
            fields.set("when", Value::Object(schedule), Some(&place));
            inexact(later, "one event can begin a schedule");
            inexact(completed, "one event can begin a schedule");
        }
    }
}
