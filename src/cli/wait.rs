//! `wait`: until jobs are in a state, until they can no longer be, or until the timeout.
//!
//! The status is read again after every event. The start of a process is not an event, so the status is also polled:
//! slowly, and fast while a job is starting, restarting or stopping.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::client::{Client, ClientError, DEFAULT_TIMEOUT, Messages, StreamError};
use super::flags::Arguments;
use super::health::state_and_health;
use super::responses::{Event, Job, Status};
use super::{Failure, time_limit};

const POLL: Duration = Duration::from_secs(1);
const FAST_POLL: Duration = Duration::from_millis(20);
/// Events that arrive within this time of each other cause one read of the status.
const BATCH: Duration = Duration::from_millis(1);

/// The states that can be waited for.
const STATES: [&str; 7] = ["running", "healthy", "unhealthy", "waiting", "stopped", "complete", "failed"];

pub(super) fn wait(args: &Arguments) -> Result<(), Failure> {
    let words: Vec<String> = args.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (jobs, state) = match (words.as_slice(), args.is_on("all")) {
        ([state], true) => (&[][..], state),
        (_, true) => return Err(Failure::Usage("`wait --all` takes a state and no jobs".to_owned())),
        ([], false) | ([_], false) => {
            return Err(Failure::Usage("`wait` needs a job and a state, or --all and a state".to_owned()));
        }
        ([jobs @ .., state], false) => (jobs, state),
    };
    if !STATES.contains(&state.as_str()) {
        let all = STATES.join(", ");
        return Err(Failure::Usage(format!("unknown state `{state}`: the states are {all}")));
    }
    let limit = time_limit(args)?;
    let until = limit.map(|limit| Instant::now() + limit);
    // Even with the shortest timeout there is time to read the status once.
    let request_timeout = limit.map_or(DEFAULT_TIMEOUT, |limit| limit.clamp(POLL, DEFAULT_TIMEOUT));
    let client = Client::of(args)?.with_timeout(request_timeout);
    let mut waiter = Waiter { client, jobs, state, until, last: "the supervisor did not answer".to_owned() };
    waiter.run()
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Reached,
    NotYet {
        why: String,
        /// A job may reach the state without an event.
        poll_fast: bool,
    },
    Unreachable(String),
}

struct Waiter<'a> {
    client: Client,
    /// The jobs to wait for; empty means all.
    jobs: &'a [String],
    state: &'a str,
    until: Option<Instant>,
    /// Why the state was not reached at the last try; shown at the timeout.
    last: String,
}

impl Waiter<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut exits = Exits::default();
        loop {
            // The stream is opened before the status is read, so that no event in between is missed.
            let error = match self.client.messages("/v3/events") {
                Ok(mut stream) => match self.follow(&mut stream, &mut exits)? {
                    Some(error) => error,
                    None => return Ok(()),
                },
                Err(error) => error,
            };
            if self.is_reached_by(&exits) {
                return Ok(());
            }
            self.retry(error)?;
        }
    }

    /// Follows the events until the state is reached. Returns the error if the supervisor stops answering before.
    fn follow(&mut self, stream: &mut Messages, exits: &mut Exits) -> Result<Option<ClientError>, Failure> {
        loop {
            let status: Status = match self.client.get("/v3/status") {
                Ok(response) if response.is_success() => response.json()?,
                failed => {
                    // The supervisor is exiting; the events that it sent before may decide whether the state was reached.
                    while let Ok(Some(message)) = stream.next(Some(Instant::now() + POLL)) {
                        exits.record(&message.data);
                    }
                    let reason = failed.map(|response| ClientError::Failed(response.reason()));
                    return Ok(Some(reason.unwrap_or_else(|error| error)));
                }
            };
            let interval = match judge_all(&status, self.jobs, self.state)? {
                Verdict::Reached => return Ok(None),
                Verdict::Unreachable(why) => return Err(Failure::Failed(why)),
                Verdict::NotYet { why, poll_fast } => {
                    self.last = why;
                    if poll_fast { FAST_POLL } else { POLL }
                }
            };
            let next_poll = Instant::now() + interval;
            let mut next = stream.next(Some(self.until.map_or(next_poll, |until| until.min(next_poll))));
            while let Ok(Some(message)) = &next {
                exits.record(&message.data);
                next = stream.next(Some(Instant::now() + BATCH));
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Err(self.timed_out());
            }
            if !matches!(next, Err(StreamError::Timeout)) {
                return Ok(Some(ClientError::Failed("the supervisor has exited".to_owned())));
            }
        }
    }

    /// Returns true if the recorded exits of all jobs fit the state. Used when the supervisor has exited.
    fn is_reached_by(&self, exits: &Exits) -> bool {
        !self.jobs.is_empty() && self.jobs.iter().all(|job| exits.is(job, self.state))
    }

    /// With a timeout, a supervisor that does not answer yet is tried again.
    fn retry(&mut self, error: ClientError) -> Result<(), Failure> {
        let Some(until) = self.until else { return Err(error.into()) };
        if Instant::now() >= until {
            return Err(self.timed_out());
        }
        self.last = error.to_string();
        std::thread::sleep(FAST_POLL);
        Ok(())
    }

    fn timed_out(&self) -> Failure {
        Failure::Failed(format!("timed out: {}", self.last))
    }
}

/// How jobs exited, from their events: the supervisor may exit before its status can be read.
#[derive(Debug, Default)]
struct Exits(BTreeMap<String, Exit>);

#[derive(Debug, Default)]
struct Exit {
    stopped: bool,
    success: bool,
}

impl Exits {
    fn record(&mut self, data: &str) {
        let Ok(event) = serde_json::from_str::<Event>(data) else { return };
        let exit = self.0.entry(event.source).or_default();
        match event.code.as_str() {
            "stopped" => exit.stopped = true,
            "exitSuccess" => *exit = Exit { stopped: false, success: true },
            "exitFailed" => *exit = Exit { stopped: false, success: false },
            _ => {}
        }
    }

    fn is(&self, job: &str, state: &str) -> bool {
        self.0.get(job).is_some_and(|exit| match state {
            "stopped" => exit.stopped,
            "complete" => exit.stopped && exit.success,
            "failed" => exit.stopped && !exit.success,
            _ => false,
        })
    }
}

fn judge_all(status: &Status, jobs: &[String], state: &str) -> Result<Verdict, Failure> {
    let chosen: Vec<&Job> = if jobs.is_empty() {
        // --all means the configured jobs that can be in this state.
        let can_be = |job: &&Job| match state {
            _ if matches!(job.role.as_str(), "telemetry" | "coprocess" | "sensor") => false,
            "healthy" | "unhealthy" => job.health != "none",
            _ => true,
        };
        status.jobs.iter().filter(can_be).collect()
    } else {
        jobs.iter().map(|name| status.job(name)).collect::<Result<_, _>>()?
    };
    let mut all = Verdict::Reached;
    for job in chosen {
        all = match (all, judge(job, state)) {
            (_, verdict @ Verdict::Unreachable(_)) => return Ok(verdict),
            (Verdict::NotYet { why, poll_fast }, Verdict::NotYet { poll_fast: other, .. }) => {
                Verdict::NotYet { why, poll_fast: poll_fast || other }
            }
            (Verdict::Reached, other) | (other, _) => other,
        };
    }
    Ok(all)
}

fn judge(job: &Job, wanted: &str) -> Verdict {
    let (name, state, health) = (&job.name, job.state.as_str(), job.health.as_str());
    let is_final = matches!(state, "stopped" | "complete" | "failed");
    let about_health = matches!(wanted, "healthy" | "unhealthy");
    let reached = match wanted {
        _ if about_health && health == "none" => {
            return Verdict::Unreachable(format!("{name} has no checks, so it is never {wanted}"));
        }
        _ if about_health => health == wanted,
        "stopped" => is_final,
        _ => state == wanted,
    };
    if reached {
        return Verdict::Reached;
    }
    if is_final {
        let reason = match state {
            "failed" => "has failed",
            "complete" => "is complete",
            _ => "was stopped by hand",
        };
        return Verdict::Unreachable(format!("{name} {reason}, so it will not become {wanted}"));
    }
    Verdict::NotYet {
        why: if about_health { state_and_health(name, state, health) } else { format!("{name} is {state}") },
        poll_fast: matches!(state, "starting" | "restarting" | "stopping"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(state: &str, health: &str, wanted: &str) -> Verdict {
        let job = json!({ "name": "a", "state": state, "health": health });
        judge(&serde_json::from_value(job).unwrap(), wanted)
    }

    fn not_yet(why: &str, poll_fast: bool) -> Verdict {
        Verdict::NotYet { why: why.to_owned(), poll_fast }
    }

    #[test]
    fn x4_wait_distinguishes_reached_possible_and_unreachable_states() {
        assert_eq!(judged("running", "healthy", "healthy"), Verdict::Reached);
        assert_eq!(judged("running", "healthy", "running"), Verdict::Reached);
        assert_eq!(judged("failed", "unknown", "stopped"), Verdict::Reached);
        assert_eq!(judged("failed", "unknown", "failed"), Verdict::Reached);
        assert_eq!(judged("running", "unknown", "healthy"), not_yet("a is running, health unknown", false));
        assert_eq!(judged("running", "unhealthy", "healthy"), not_yet("a is running but unhealthy", false));
        assert_eq!(judged("starting", "none", "running"), not_yet("a is starting", true));
        assert_eq!(judged("running", "none", "complete"), not_yet("a is running", false));
        let unreachable = |why: &str| Verdict::Unreachable(why.to_owned());
        assert_eq!(
            judged("running", "none", "healthy"),
            unreachable("a has no checks, so it is never healthy")
        );
        assert_eq!(
            judged("failed", "unknown", "complete"),
            unreachable("a has failed, so it will not become complete")
        );
        assert_eq!(
            judged("stopped", "none", "running"),
            unreachable("a was stopped by hand, so it will not become running")
        );
    }

    #[test]
    fn x4_wait_for_all_skips_jobs_that_cannot_be_in_the_state() {
        let job = |name: &str, role: &str, health: &str| json!({ "name": name, "role": role, "state": "running", "health": health });
        let read = |status: &Value| serde_json::from_value::<Status>(status.clone()).unwrap();
        let mut status = json!({ "jobs": [job("a", "job", "healthy"), job("b", "job", "none"), job("t", "telemetry", "unknown")] });
        assert_eq!(judge_all(&read(&status), &[], "healthy").unwrap(), Verdict::Reached);
        status["jobs"][1]["health"] = "unknown".into();
        assert_eq!(
            judge_all(&read(&status), &[], "healthy").unwrap(),
            not_yet("b is running, health unknown", false)
        );
        assert!(judge_all(&read(&status), &["x".to_owned()], "healthy").is_err());
    }

    #[test]
    fn x4_events_show_how_a_job_exited_after_the_supervisor_has_exited() {
        let mut exits = Exits::default();
        exits.record(r#"{"source":"a","code":"exitSuccess"}"#);
        assert!(!exits.is("a", "complete"));
        exits.record(r#"{"source":"a","code":"stopping"}"#);
        exits.record(r#"{"source":"a","code":"stopped"}"#);
        assert!(exits.is("a", "complete") && exits.is("a", "stopped") && !exits.is("a", "failed"));
        assert!(!exits.is("b", "stopped"));
    }
}
