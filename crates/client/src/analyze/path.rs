//! The critical path of the start: which chain of waits determined when the container was ready. Pure: it only looks at
//! what the supervisor has answered.

use std::collections::{BTreeMap, BTreeSet};

use containerpilot_api::responses::{Event, Job, Start, Status};
use containerpilot_api::timestamps::seconds_between;
use containerpilot_core::event::Code;
use containerpilot_core::report::words;
use containerpilot_core::sort_by;
use serde::Serialize;

/// The events that let a job start, as a part of the start of the container. After any other one, such as `exitFailed`,
/// a job repairs or tidies up.
const GOOD: [&str; 7] =
    ["startup", "healthy", "becameHealthy", "ready", "exitSuccess", "changed", "acquired"];

/// What determined when the container was ready. Times are in seconds since the start of the supervisor.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Analysis {
    /// When the last job was ready; `None` if some are not, or if there are none.
    pub(super) ready: Option<f64>,
    /// The job that was ready last, of those that are.
    pub(super) last: Option<String>,
    /// The chain of waits that led to that.
    pub(super) path: Vec<PathStep>,
    /// The jobs that were started, in the order of their starts.
    pub(super) jobs: Vec<JobStart>,
    /// The jobs that should be ready and are not, with the reason.
    pub(super) pending: Vec<Pending>,
}

/// A step of the path.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct PathStep {
    pub(super) what: String,
    /// The job, watch, file or lock that took the time; `None` for the supervisor itself.
    pub(super) source: Option<String>,
    pub(super) kind: StepKind,
    pub(super) at: f64,
    /// The time since the step before.
    pub(super) took: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StepKind {
    Startup,
    /// A job was started.
    Start,
    /// A one-time job was done.
    Done,
    /// A job was healthy or ready.
    Ready,
    /// Something else happened, perhaps outside the container.
    Other,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobStart {
    pub(super) job: String,
    /// What it was waiting for last.
    pub(super) waited_for: String,
    pub(super) started: f64,
    pub(super) ready: Option<f64>,
    /// Restarts before it was ready.
    pub(super) restarts: usize,
    pub(super) critical: bool,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Pending {
    pub(super) job: String,
    pub(super) why: String,
}

/// The journal does not reach back to the start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal no longer reaches back to the start: the supervisor keeps the last {kept} events, of which the first is number {first}; \
     run `containerpilot analyze` sooner after the start"
)]
pub(super) struct TooLate {
    kept: usize,
    first: u64,
}

/// What is known about the start.
pub(super) struct StartJournal<'a> {
    pub(super) status: &'a Status,
    /// In the order of their ids.
    pub(super) events: &'a [Event],
    /// In the order in which they happened.
    pub(super) starts: &'a [Start],
}

/// A moment on the way back to the startup.
struct Moment {
    at: f64,
    what: String,
    source: Option<String>,
    kind: StepKind,
}

pub(super) fn analyze(journal: &StartJournal<'_>) -> Result<Analysis, TooLate> {
    if !journal.events.iter().any(|event| event.code == "startup") {
        let first = journal.events.first().map_or(0, |event| event.id);
        return Err(TooLate { kept: journal.events.len(), first });
    }
    let mut analysis = Analysis::default();
    let mut chains: BTreeMap<&str, Vec<Moment>> = BTreeMap::new();
    // Jobs with the same name are one job here, as in the journal.
    let mut seen = BTreeSet::new();
    for job in journal.status.jobs.iter().filter(|job| seen.insert(job.name.as_str())) {
        let chain = journal.chain(job);
        let lasts =
            is_work(job) && !job.repeats && !matches!(job.state.as_str(), "complete" | "stopped" | "skipped");
        let Some(chain) = chain else {
            // A job that waits for a failure or a stop is not a part of the start.
            let is_awaited = job.waits_for.is_empty()
                || job.waits_for.iter().any(|condition| GOOD.contains(&condition.code.as_str()));
            if lasts && is_awaited && !job.manual {
                let why = job.waiting().unwrap_or_else(|| job.state.clone());
                analysis.pending.push(Pending { job: job.name.clone(), why });
            }
            continue;
        };
        let started = chain.iter().rfind(|moment| moment.kind == StepKind::Start && is_of(moment, job));
        let ready = journal.ready(job);
        if lasts && ready.is_none() {
            let why = match job.state.as_str() {
                "failed" => job.last_run(&journal.status.now),
                state => job.failing_check().unwrap_or_else(|| format!("{state}, health {}", job.health)),
            };
            analysis.pending.push(Pending { job: job.name.clone(), why });
        }
        let restarts = journal.starts.iter().filter(|start| {
            start.source == job.name
                && start.restarts > 0
                && ready.is_some_and(|ready| journal.at(&start.time) < ready)
        });
        analysis.jobs.push(JobStart {
            job: job.name.clone(),
            waited_for: journal.waited_for(job),
            started: started.or(chain.last()).map_or(0.0, |moment| moment.at),
            ready,
            restarts: if job.repeats { 0 } else { restarts.count() },
            critical: false,
        });
        chains.insert(&job.name, chain);
    }
    sort_by(&mut analysis.jobs, |a, b| a.started.total_cmp(&b.started));
    // Jobs that last make the container ready; without one, those that run once.
    let counts = |start: &&JobStart| {
        let job = journal.status.jobs.iter().find(|job| job.name == start.job);
        job.is_some_and(|job| is_work(job) && !job.repeats)
    };
    let lasting = |start: &&JobStart| {
        let job = journal.status.jobs.iter().find(|job| job.name == start.job);
        counts(start) && job.is_some_and(|job| !matches!(job.state.as_str(), "complete" | "stopped"))
    };
    let latest = |jobs: Vec<&JobStart>| {
        jobs.into_iter()
            .filter(|job| job.ready.is_some())
            .max_by(|a, b| a.ready.unwrap_or(0.0).total_cmp(&b.ready.unwrap_or(0.0)))
            .map(|job| (job.job.clone(), job.ready))
    };
    let lasting: Vec<&JobStart> = analysis.jobs.iter().filter(lasting).collect();
    let last = if lasting.is_empty() {
        latest(analysis.jobs.iter().filter(counts).collect())
    } else {
        latest(lasting)
    };
    if let Some((name, ready)) = last {
        analysis.path = steps(chains.remove(name.as_str()).unwrap_or_default());
        analysis.ready = ready.filter(|_| analysis.pending.is_empty());
        analysis.last = Some(name);
        for job in &mut analysis.jobs {
            job.critical = analysis.path.iter().any(|step| step.source.as_deref() == Some(&*job.job));
        }
    }
    Ok(analysis)
}

/// Rounds to microseconds: times since 1970 are not more exact.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn is_of(moment: &Moment, job: &Job) -> bool {
    moment.source.as_deref() == Some(&*job.name)
}

/// Returns true for a job of the configuration that does work.
fn is_work(job: &Job) -> bool {
    matches!(job.role.as_str(), "job" | "main" | "") && job.work
}

fn steps(chain: Vec<Moment>) -> Vec<PathStep> {
    let mut before = 0.0;
    let step = |Moment { at, what, source, kind }| {
        let took = micros(f64::max(at - before, 0.0));
        before = at;
        PathStep { what, source, kind, at, took }
    };
    chain.into_iter().map(step).collect()
}

impl StartJournal<'_> {
    /// Seconds since the start of the supervisor.
    fn at(&self, time: &str) -> f64 {
        micros(seconds_between(&self.status.started_at, time).unwrap_or(0.0).max(0.0))
    }

    fn event(&self, id: u64) -> Option<&Event> {
        self.events.binary_search_by_key(&id, |event| event.id).ok().and_then(|place| self.events.get(place))
    }

    fn first_start(&self, job: &str) -> Option<&Start> {
        self.starts.iter().find(|start| start.source == job)
    }

    /// The first event by which a job was ready: healthy if it has checks, otherwise its successful exit if it is
    /// complete. A job with neither is ready when it is started.
    fn ready_event(&self, job: &Job) -> Option<&Event> {
        let codes: &[&str] = if job.health != "none" {
            &["healthy", "becameHealthy"]
        } else if matches!(job.state.as_str(), "complete") || job.action.is_some() {
            &["exitSuccess"]
        } else {
            &[]
        };
        self.events.iter().find(|event| event.source == job.name && codes.contains(&event.code.as_str()))
    }

    /// When a job was first ready.
    fn ready(&self, job: &Job) -> Option<f64> {
        if let Some(event) = self.ready_event(job) {
            return Some(self.at(&event.time));
        }
        let runs_on = !matches!(job.state.as_str(), "complete" | "failed");
        let by_start = job.health == "none" && job.action.is_none() && runs_on;
        let start = self.first_start(&job.name).filter(|_| by_start);
        start.map(|start| self.at(&start.time))
    }

    /// What a job was waiting for last: the event that triggered its first run, or that of a requirement that came
    /// later.
    fn release(&self, job: &str) -> Option<&Event> {
        let planned = self.status.jobs.iter().find(|other| other.name == job);
        let start = self.first_start(job);
        let Some(start) = start else {
            // An action has no process, and its exit names what started it.
            let exit = self.events.iter().find(|event| event.source == job && event.code == "exitSuccess")?;
            return self.event(exit.cause?);
        };
        let trigger = self.event(start.started_by?)?;
        let required = planned.map(|planned| planned.requires.as_slice()).unwrap_or_default().iter();
        let required = required.filter_map(|required| {
            let met = |event: &&Event| {
                let is_replica =
                    self.status.jobs.iter().any(|job| {
                        job.name == event.source && job.replica_of.as_ref() == Some(&required.source)
                    });
                (event.source == required.source || is_replica)
                    && GOOD.contains(&event.code.as_str())
                    && event.time <= start.time
            };
            self.events.iter().rfind(met)
        });
        required.chain([trigger]).max_by(|a, b| a.id.cmp(&b.id))
    }

    fn waited_for(&self, job: &Job) -> String {
        self.release(&job.name).map_or_else(String::new, condition)
    }

    /// The moments that led to a job being ready, or to its start if it is not. `None` if it was not started with the
    /// container.
    fn chain(&self, job: &Job) -> Option<Vec<Moment>> {
        let mut chain = Vec::new();
        let mut visited = BTreeSet::new();
        match self.ready_event(job) {
            Some(event) => self.reach(event, &mut chain, &mut visited)?,
            None => self.reach_start(&job.name, &mut chain, &mut visited)?,
        }
        Some(chain)
    }

    /// Adds the moments up to the first start of a job.
    fn reach_start(&self, job: &str, chain: &mut Vec<Moment>, visited: &mut BTreeSet<u64>) -> Option<()> {
        self.reach(self.release(job)?, chain, visited)?;
        if let Some(start) = self.first_start(job) {
            let what = format!("{job} starts");
            chain.push(Moment {
                at: self.at(&start.time),
                what,
                source: Some(job.to_owned()),
                kind: StepKind::Start,
            });
        }
        Some(())
    }

    /// Adds the moments up to an event. `None` if it is not a part of the start.
    fn reach(&self, event: &Event, chain: &mut Vec<Moment>, visited: &mut BTreeSet<u64>) -> Option<()> {
        if !visited.insert(event.id) || !GOOD.contains(&event.code.as_str()) {
            return None;
        }
        let at = self.at(&event.time);
        if event.code == "startup" {
            chain.push(Moment { at, what: "startup".to_owned(), source: None, kind: StepKind::Startup });
            return Some(());
        }
        let is_job = self.status.jobs.iter().any(|job| job.name == event.source);
        if is_job {
            self.reach_start(&event.source, chain, visited)?;
        } else if let Some(before) = self.before(event) {
            self.reach(before, chain, visited)?;
        } else {
            self.reach(self.events.iter().find(|event| event.code == "startup")?, chain, visited)?;
        }
        let kind = match event.code.as_str() {
            "exitSuccess" if is_job => StepKind::Done,
            _ if is_job => StepKind::Ready,
            _ => StepKind::Other,
        };
        chain.push(Moment { at, what: condition(event), source: Some(event.source.clone()), kind });
        Some(())
    }

    /// What the event of a watch, a file or a lock followed: the event that caused it, or for a watch the health of a
    /// job of this container that advertises its service.
    fn before(&self, event: &Event) -> Option<&Event> {
        if let Some(cause) = event.cause {
            return self.event(cause);
        }
        let service = event.source.strip_prefix("watch.")?;
        let advertised = |job: &&Job| {
            job.catalog.is_some() && (job.name == service || job.replica_of.as_deref() == Some(service))
        };
        let jobs: Vec<&str> =
            self.status.jobs.iter().filter(advertised).map(|job| job.name.as_str()).collect();
        let healthy = |other: &&Event| {
            other.id < event.id && other.code == "healthy" && jobs.contains(&other.source.as_str())
        };
        self.events.iter().rfind(healthy)
    }
}

fn condition(event: &Event) -> String {
    match Code::from_name(&event.code) {
        Some(Code::Startup) => "startup".to_owned(),
        Some(Code::BecameHealthy) => words::condition(&event.source, Code::Healthy),
        Some(code) => words::condition(&event.source, code),
        None => event.name(),
    }
}
