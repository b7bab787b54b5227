//! `wait`: until jobs are in a state, until they can no longer be, or until the timeout.
//!
//! The status is read again after every event. The start of a process is not an event, so the status is also polled:
//! slowly, and fast while a job is starting, restarting or stopping.

use std::time::{Duration, Instant};

use containerpilot_api::job_names::is_group;
use containerpilot_api::responses::{Event, Job, Status};
use containerpilot_api::timestamps;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::time_limit;
use containerpilot_core::report::words::WAITING_UNTIL;

use super::client::{Client, ClientError, DEFAULT_TIMEOUT, Messages, StreamError};
use super::health::{named, state_and_health, state_verb};

const POLL: Duration = Duration::from_secs(1);
const FAST_POLL: Duration = Duration::from_millis(20);
/// Events that arrive within this time of each other cause one read of the status.
const BATCH: Duration = Duration::from_millis(1);

/// The states that can be waited for.
const STATES: [&str; 8] =
    ["running", "healthy", "unhealthy", "waiting", "stopped", "complete", "failed", "skipped"];
/// Those of a job that has ended.
const ENDED: [&str; 4] = ["stopped", "complete", "failed", "skipped"];

pub(super) fn wait(args: &Arguments) -> Result<(), Failure> {
    let words: Vec<String> = args.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // With --all there are no jobs before the state.
    let (state, jobs) = words.split_last().map_or(("", &[][..]), |(state, jobs)| (state.as_str(), jobs));
    if !STATES.contains(&state) {
        let all = STATES.join(", ");
        return Err(Failure::Usage(format!("unknown state `{state}`: the states are {all}")));
    }
    let limit = time_limit(args)?;
    let until = limit.map(|limit| Instant::now() + limit);
    // Even with the shortest timeout there is time to read the status once.
    let request_timeout = limit.map_or(DEFAULT_TIMEOUT, |limit| limit.clamp(POLL, DEFAULT_TIMEOUT));
    let client = Client::of(args).with_timeout(request_timeout);
    let last = "the supervisor did not answer".to_owned();
    Waiter { client, jobs, state, until, last, status: None, stopped: Vec::new() }.run()
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
    /// The last status that was read, and the `stopped` events after it: the supervisor may exit before its status
    /// can be read again.
    status: Option<Status>,
    stopped: Vec<Event>,
}

impl Waiter<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        loop {
            // The stream is opened before the status is read, so that no event in between is missed.
            let error = match self.client.messages("/v3/events") {
                Ok(mut stream) => match self.follow(&mut stream)? {
                    Some(error) => error,
                    None => return Ok(()),
                },
                Err(error) => error,
            };
            match self.judge_exit()? {
                Verdict::Reached => return Ok(()),
                Verdict::Unreachable(why) => return Err(Failure::Failed(why)),
                Verdict::NotYet { .. } => self.retry(error)?,
            }
        }
    }

    /// Follows the events until the state is reached. Returns the error if the supervisor stops answering before.
    fn follow(&mut self, stream: &mut Messages) -> Result<Option<ClientError>, Failure> {
        loop {
            let status: Status = match self.client.get("/v3/status") {
                Ok(response) if response.is_success() => response.json()?,
                failed => {
                    // The supervisor is exiting; the events that it sent before may decide whether the state was
                    // reached.
                    while let Ok(Some(message)) = stream.next(Some(Instant::now() + POLL)) {
                        self.record(&message.data);
                    }
                    let reason = failed.map(|response| ClientError::Failed(response.reason()));
                    return Ok(Some(reason.unwrap_or_else(|error| error)));
                }
            };
            let verdict = judge_all(&status, self.jobs, self.state)?;
            self.stopped.clear();
            self.status = Some(status);
            let interval = match verdict {
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
                self.record(&message.data);
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

    /// Keeps a `stopped` event that the last status does not know.
    fn record(&mut self, data: &str) {
        let Ok(event) = serde_json::from_slice::<Event>(data.as_bytes()) else { return };
        let is_known = |status: &Status| {
            timestamps::seconds_between(&status.now, &event.time).is_some_and(|later| later <= 0.0)
        };
        if event.code == "stopped" && !self.status.as_ref().is_some_and(is_known) {
            self.stopped.push(event);
        }
    }

    /// Whether the jobs have reached the state when the supervisor exited.
    fn judge_exit(&mut self) -> Result<Verdict, Failure> {
        if self.status.is_none() && self.jobs.iter().any(|name| is_group(name)) {
            // The jobs of a group are not known without a status.
            return Ok(Verdict::NotYet { why: String::new(), poll_fast: false });
        }
        // Without a status it is not known that a job does not end by itself.
        let unknown = |name: &String| Job { name: name.clone(), ends_by_itself: true, ..Job::default() };
        let mut status = self
            .status
            .take()
            .unwrap_or_else(|| Status { jobs: self.jobs.iter().map(unknown).collect(), ..Status::default() });
        for event in self.stopped.drain(..) {
            let Some(outcome) = event.outcome else { continue };
            for job in status.jobs.iter_mut().filter(|job| job.name == event.source) {
                (job.state, job.outcome) = (outcome.clone(), Some(outcome.clone()));
                job.reason.clone_from(&event.reason);
            }
        }
        let verdict = judge_all(&status, self.jobs, self.state)?;
        // Nothing runs any more.
        let exited = Verdict::NotYet { why: String::new(), poll_fast: false };
        Ok(if status.jobs.is_empty() || (verdict == Verdict::Reached && !ENDED.contains(&self.state)) {
            exited
        } else {
            verdict
        })
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

fn judge_all(status: &Status, jobs: &[String], state: &str) -> Result<Verdict, Failure> {
    let chosen: Vec<&Job> = if jobs.is_empty() {
        status.jobs.iter().filter(|job| counts(job, state)).collect()
    } else {
        let names: Vec<&str> = jobs.iter().map(String::as_str).collect();
        let names = status.expanded(&names)?;
        let named: Vec<Vec<&Job>> =
            names.iter().map(|name| status.jobs_named(name)).collect::<Result<_, _>>()?;
        named.into_iter().flatten().collect()
    };
    if chosen.is_empty() {
        return Ok(Verdict::Unreachable(format!("no job can become {state}")));
    }
    let (mut unreachable, mut not_yet, mut fast) = (Vec::new(), Vec::new(), false);
    for job in chosen {
        match judge(job, state) {
            Verdict::Reached => {}
            Verdict::Unreachable(why) => unreachable.push(why),
            Verdict::NotYet { why, poll_fast } => {
                not_yet.push(why);
                fast |= poll_fast;
            }
        }
    }
    Ok(match (unreachable.is_empty(), not_yet.is_empty()) {
        (false, _) => Verdict::Unreachable(named(unreachable)),
        (true, false) => Verdict::NotYet { why: named(not_yet), poll_fast: fast },
        (true, true) => Verdict::Reached,
    })
}

/// Returns true if --all means this job: it does work (W10) and can be in the state. A job that has failed or was
/// skipped counts, so that `wait` fails.
fn counts(job: &Job, state: &str) -> bool {
    // A job that is expected to run all the time, and has not ended as it should.
    let lasts = || !job.repeats && !matches!(job.state.as_str(), "complete" | "stopped");
    let is_configured = matches!(job.role.as_str(), "job" | "main" | "");
    is_configured
        && job.work
        && match state {
            "healthy" | "unhealthy" => job.health != "none" && lasts(),
            "running" => lasts(),
            "complete" => job.ends_by_itself,
            _ => true,
        }
}

fn judge(job: &Job, wanted: &str) -> Verdict {
    let (name, state, health) = (&job.name, job.state.as_str(), job.health.as_str());
    let about_health = matches!(wanted, "healthy" | "unhealthy");
    let has_ended = ENDED.contains(&state);
    let reached = match wanted {
        _ if about_health && health == "none" => {
            return Verdict::Unreachable(format!("{name} has no checks, so it is never {wanted}"));
        }
        _ if about_health => health == wanted && !has_ended && state != "stopping",
        "stopped" => has_ended,
        _ => state == wanted,
    };
    if reached {
        return Verdict::Reached;
    }
    // The outcome of a job that still stops may be certain.
    let outcome = if has_ended { Some(state) } else { job.outcome.as_deref() };
    if let Some(outcome) = outcome.filter(|outcome| wanted != "stopped" && *outcome != wanted) {
        let why = job.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        let verb = state_verb(outcome);
        return Verdict::Unreachable(format!("{name} {verb}, so it will not become {wanted}{why}"));
    }
    if wanted == "complete" && !job.ends_by_itself {
        let hint = if job.repeats { "; wait for `waiting`" } else { "" };
        return Verdict::Unreachable(format!(
            "{name} does not end by itself, so it will not become {wanted}{hint}"
        ));
    }
    let waiting = job.waiting().filter(|why| state == "waiting" && why.starts_with(WAITING_UNTIL));
    Verdict::NotYet {
        why: match waiting {
            Some(waiting) => format!("{name} is {waiting}"),
            None if about_health => state_and_health(name, state, health),
            None => format!("{name} is {state}"),
        },
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

    #[test]
    fn x7_a_job_that_does_not_end_by_itself_never_becomes_complete() {
        let judged = |repeats: bool| {
            let job = json!({ "name": "a", "state": "waiting", "endsByItself": false, "repeats": repeats });
            judge(&serde_json::from_value(job).unwrap(), "complete")
        };
        let words = "a does not end by itself, so it will not become complete";
        assert_eq!(judged(false), Verdict::Unreachable(words.to_owned()));
        assert_eq!(judged(true), Verdict::Unreachable(format!("{words}; wait for `waiting`")));
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
        let job = json!({ "name": "a", "state": "waiting", "health": "unknown",
                          "waitsFor": [{ "source": "b", "code": "healthy", "state": "running" }] });
        assert_eq!(
            judge(&serde_json::from_value(job).unwrap(), "healthy"),
            not_yet("a is waiting until b is healthy (running)", false)
        );
        assert_eq!(
            judged("stopped", "none", "running"),
            unreachable("a was stopped, so it will not become running")
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
    fn x7_wait_fails_as_soon_as_the_outcome_is_certain() {
        let judged = |job: Value| judge(&serde_json::from_value(job).unwrap(), "complete");
        let skipped = json!({ "name": "a", "state": "skipped", "health": "none", "reason": "why" });
        let unreachable = |why: &str| Verdict::Unreachable(why.to_owned());
        assert_eq!(judged(skipped), unreachable("a was skipped, so it will not become complete: why"));
        let stopping =
            |outcome: &str| json!({ "name": "a", "state": "stopping", "health": "none", "outcome": outcome });
        assert_eq!(judged(stopping("failed")), unreachable("a has failed, so it will not become complete"));
        assert_eq!(judged(stopping("complete")), not_yet("a is stopping", true));
    }

    #[test]
    fn x7_a_job_that_stops_is_not_healthy_whatever_an_older_supervisor_says() {
        assert_eq!(judged("stopping", "healthy", "healthy"), not_yet("a is stopping and healthy", true));
    }

    #[test]
    fn x4_wait_for_all_means_the_jobs_that_do_work_and_can_be_in_the_state() {
        let status = |jobs: Value| serde_json::from_value::<Status>(json!({ "jobs": jobs })).unwrap();
        let judged = |jobs: Value, state: &str| judge_all(&status(jobs), &[], state).unwrap();
        let job = |name: &str, state: &str| json!({ "name": name, "role": "job", "state": state, "health": "none" });
        let with = |mut job: Value, member: &str, value: bool| {
            job[member] = value.into();
            job
        };
        // A hook, a periodic job and a one-time job that is done do not have to run; a server that can only be stopped
        // does not have to be complete.
        let hook = with(job("hook", "waiting"), "work", false);
        let tidy = with(job("tidy", "waiting"), "repeats", true);
        let server = with(job("server", "running"), "endsByItself", false);
        let all = json!([hook, tidy, server, job("setup", "complete")]);
        assert_eq!(judged(all, "running"), Verdict::Reached);
        assert_eq!(judged(json!([hook, server, job("setup", "complete")]), "complete"), Verdict::Reached);
        assert_eq!(
            judged(json!([server, job("setup", "failed")]), "running"),
            Verdict::Unreachable("setup has failed, so it will not become running".to_owned())
        );
        assert_eq!(
            judged(json!([job("one", "failed"), server, job("two", "failed")]), "running"),
            Verdict::Unreachable(
                "one has failed, so it will not become running; two has failed, so it will not become running"
                    .to_owned()
            )
        );
        assert_eq!(
            judged(json!([server]), "complete"),
            Verdict::Unreachable("no job can become complete".to_owned())
        );
    }
}
