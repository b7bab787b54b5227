//! What `status` prints: one line per job, watch, rendered file and lock, or everything about one of them.

mod cells;
mod detail;
#[cfg(test)]
mod tests;

use containerpilot_api::NotOneJob;
use containerpilot_api::job_names::is_group;
use containerpilot_api::responses::{Job, Lock, Status, Watch};
use containerpilot_api::timestamps::short_duration;
use containerpilot_core::report::words;
use containerpilot_text::screen::{Cell, Screen, Tone, sanitized, table};
use serde::Deserialize;
use serde_json::Value;

pub use cells::{health, state};

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    #[error("unexpected response from the supervisor: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error(transparent)]
    NotOneJob(#[from] NotOneJob),
}

/// What is printed of the response of `GET /v3/status`: of everything, or of the job, watch, file, lock or group with
/// this name.
pub fn printed(
    screen: Screen,
    response: &[u8],
    name: Option<&str>,
    json: bool,
) -> Result<String, StatusError> {
    let Some(name) = name else {
        return Ok(match json {
            true => format!("{}\n", String::from_utf8_lossy(response).trim_end()),
            false => overview(screen, &serde_json::from_slice(response)?),
        });
    };
    let status: Status = serde_json::from_slice(response)?;
    let chosen = several(&status, name)?;
    if !chosen.is_empty() {
        let is_chosen = |place: &usize| chosen.contains(place);
        if json {
            let all = serde_json::from_slice::<Verbatim>(response)?.jobs.into_iter().enumerate();
            let jobs: Vec<Value> = all.filter(|(place, _)| is_chosen(place)).map(|(_, job)| job).collect();
            return Ok(format!("{}\n", Value::Array(jobs)));
        }
        let jobs = chosen.iter().filter_map(|place| status.jobs.get(*place));
        return Ok(jobs_table(screen, &status.now, jobs));
    }
    let subject = subject(&status, name)?;
    Ok(match json {
        true => subject.json(serde_json::from_slice(response)?),
        false => subject.text(screen, &status),
    })
}

/// The places of the replicas of the job with this name (W20), or of the jobs of this group (W22).
fn several(status: &Status, name: &str) -> Result<Vec<usize>, NotOneJob> {
    let replicas = status.jobs.iter().zip(0..).filter(|(job, _)| job.replica_of.as_deref() == Some(name));
    let replicas: Vec<usize> = replicas.map(|(_, place)| place).collect();
    if replicas.is_empty() && is_group(name) {
        return status.expanded(&[name])?.iter().map(|name| status.job_index(name)).collect();
    }
    Ok(replicas)
}

/// What a name on the command line means: an index into the jobs, the watches, the files or the locks.
#[derive(Clone, Copy)]
enum Subject {
    Job(usize),
    Watch(usize),
    Lock(usize),
    File(usize),
}

fn subject(status: &Status, name: &str) -> Result<Subject, NotOneJob> {
    let watch_name = name.strip_prefix("watch.").unwrap_or(name);
    let watch = || status.watches.iter().position(|watch| watch.name == watch_name);
    let lock_name = name.strip_prefix("lock.").unwrap_or(name);
    let lock = || status.locks.iter().position(|lock| lock.name == lock_name);
    let file_name = name.strip_prefix("file.").unwrap_or(name);
    let file = || status.files.iter().position(|file| file.name == file_name);
    match status.job_index(name) {
        Ok(job) => Ok(Subject::Job(job)),
        Err(failure) => {
            let other = watch().map(Subject::Watch).or_else(|| file().map(Subject::File));
            other.or_else(|| lock().map(Subject::Lock)).ok_or(failure)
        }
    }
}

/// The jobs, watches, files and locks of `GET /v3/status` with all members, also those that this version does not know.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Verbatim {
    jobs: Vec<Value>,
    watches: Vec<Value>,
    locks: Vec<Value>,
    files: Vec<Value>,
}

impl Subject {
    fn json(self, status: Verbatim) -> String {
        let found = match self {
            Self::Job(index) => status.jobs.into_iter().nth(index),
            Self::Watch(index) => status.watches.into_iter().nth(index),
            Self::Lock(index) => status.locks.into_iter().nth(index),
            Self::File(index) => status.files.into_iter().nth(index),
        };
        format!("{}\n", found.unwrap_or_default())
    }

    fn text(self, screen: Screen, status: &Status) -> String {
        match self {
            Self::Job(index) => status.jobs.get(index).map(|job| detail::job(screen, &status.now, job)),
            Self::Watch(index) => status.watches.get(index).map(|watch| detail::watch(status, watch)),
            Self::Lock(index) => status.locks.get(index).map(|lock| detail::lock(status, lock)),
            Self::File(index) => status.files.get(index).map(|file| detail::file(screen, &status.now, file)),
        }
        .unwrap_or_default()
    }
}

/// `containerpilot 5.0.0, pid 1, up 3h12m`
pub fn program(status: &Status) -> String {
    let pid = status.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    format!("containerpilot {}{pid}, up {}", status.version, short_duration(status.uptime_seconds))
}

fn overview(screen: Screen, status: &Status) -> String {
    let mut out = program(status);
    if !matches!(status.phase.as_str(), "running" | "") {
        out += &format!(", {}", screen.paint(Tone::Waiting, &status.phase));
    }
    if status.maintenance {
        out += &format!(", {}", screen.paint(Tone::Waiting, "in maintenance mode"));
    }
    out.push('\n');
    if let Some(trouble) = status.catalog.trouble(&status.now) {
        out += &format!("{}\n", screen.paint(Tone::Bad, &sanitized(&trouble)));
    } else {
        // The catalog answers, but an id is in use.
        for job in &status.jobs {
            if let Some(why) = job.catalog.as_ref().and_then(|entry| entry.error.as_ref()) {
                let line = format!("the service of {} is not registered: {why}", job.name);
                out += &format!("{}\n", screen.paint(Tone::Bad, &sanitized(&line)));
            }
        }
    }
    out.push('\n');
    out += &jobs_table(screen, &status.now, status.jobs.iter());
    if !status.watches.is_empty() {
        out.push('\n');
        let row = |watch: &Watch| {
            vec![(Tone::Plain, watch.name.clone()), (Tone::Plain, watch.kind.clone()), detail::found(watch)]
        };
        let rows: Vec<Vec<Cell>> = status.watches.iter().map(row).collect();
        out += &table(screen, &["WATCH", "KIND", "FOUND"], &rows);
    }
    if !status.locks.is_empty() {
        out.push('\n');
        let row = |lock: &Lock| vec![(Tone::Plain, lock.name.clone()), detail::lock_state(status, lock)];
        let rows: Vec<Vec<Cell>> = status.locks.iter().map(row).collect();
        out += &table(screen, &["LOCK", "STATE"], &rows);
    }
    if !status.files.is_empty() {
        out.push('\n');
        let rows: Vec<Vec<Cell>> =
            status.files.iter().map(|file| detail::file_row(&status.now, file)).collect();
        out += &table(screen, &["FILE", "STATE", "WRITTEN", "NOTE"], &rows);
    }
    out
}

fn jobs_table<'a>(screen: Screen, now: &str, jobs: impl Iterator<Item = &'a Job>) -> String {
    let rows: Vec<Vec<Cell>> = jobs.map(|job| row(now, job)).collect();
    table(screen, &["JOB", "STATE", "HEALTH", "PID", "UPTIME", "RESTARTS", "NOTE"], &rows)
}

fn row(now: &str, job: &Job) -> Vec<Cell> {
    let plain = |text: String| (Tone::Plain, text);
    vec![
        plain(job.name.clone()),
        state(job),
        health(job),
        plain(job.pid.map_or_else(String::new, |pid| pid.to_string())),
        plain(job.uptime_seconds.map_or_else(String::new, short_duration)),
        plain(job.restarts.to_string()),
        plain(note(now, job)),
    ]
}

/// What the job waits for, what happens next, or what went wrong.
pub fn note(now: &str, job: &Job) -> String {
    let waits = matches!(job.state.as_str(), "waiting" | "restarting");
    let failed = waits.then(|| job.failed_runs(now)).flatten();
    failed.into_iter().chain(next_step(now, job)).collect::<Vec<_>>().join("; ")
}

fn next_step(now: &str, job: &Job) -> Option<String> {
    if let Some(waiting) = job.waiting() {
        return Some(waiting);
    }
    match job.state.as_str() {
        "failed" => Some(job.last_run(now)),
        "skipped" => job.reason.clone(),
        "running" => job.failing_check().or_else(|| job.process_status.clone()).or_else(|| {
            let starting = job.readiness.as_deref() == Some("starting");
            starting.then(|| words::NOT_READY.to_owned())
        }),
        "waiting" | "restarting" | "stopping" => {
            job.deadlines.first().map(|deadline| job.deadline(deadline, false))
        }
        _ => None,
    }
}
