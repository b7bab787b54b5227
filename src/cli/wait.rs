//! `wait`: until a job is as it should be, or cannot be so any more, or the time is over.
//!
//! The stream of events says when to look again. That a process has started is no event, so there is also a look from
//! time to time, and a quick one while a job is on its way.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::answer::Look;
use super::client::{Client, ClientError, DEFAULT_TIMEOUT, Messages, StreamError};
use super::flags::Arguments;
use super::{Failure, status, time_limit};

/// How long nothing happens before one looks all the same, and how long while something is about to.
const CALM: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(20);
/// Events that come as closely as this are heard together.
const TOGETHER: Duration = Duration::from_millis(1);

/// What a job can be waited for to be.
const STATES: [&str; 7] = ["running", "healthy", "unhealthy", "waiting", "stopped", "complete", "failed"];

pub(super) fn wait(args: &Arguments) -> Result<(), Failure> {
    let words: Vec<String> = args.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (jobs, state) = match (words.as_slice(), args.is_on("all")) {
        ([state], true) => (&[][..], state),
        (_, true) => return Err(Failure::Usage("`wait --all` takes a state and no job".to_owned())),
        ([], false) | ([_], false) => {
            return Err(Failure::Usage("`wait` needs a job and a state, or --all and a state".to_owned()));
        }
        ([jobs @ .., state], false) => (jobs, state),
    };
    if !STATES.contains(&state.as_str()) {
        let all = STATES.join(", ");
        return Err(Failure::Usage(format!("a job cannot be waited for to be `{state}`; it can be {all}")));
    }
    let limit = time_limit(args)?;
    let until = limit.map(|limit| Instant::now() + limit);
    // However short the time is, it is enough for one look.
    let write_timeout = limit.map_or(DEFAULT_TIMEOUT, |limit| limit.clamp(CALM, DEFAULT_TIMEOUT));
    let client = Client::of(args)?.with_timeout(write_timeout);
    let mut vigil = Vigil { client, jobs, state, until, last: "nothing was heard of it".to_owned() };
    vigil.keep()
}

/// How it stands.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    /// Not yet, and whether that may change at any moment without an event.
    NotYet(String, bool),
    Never(String),
}

struct Vigil<'a> {
    client: Client,
    /// The jobs that are waited for; none means all.
    jobs: &'a [String],
    state: &'a str,
    until: Option<Instant>,
    /// What is to be said if the time passes.
    last: String,
}

impl Vigil<'_> {
    fn keep(&mut self) -> Result<(), Failure> {
        let mut ends = Ends::default();
        loop {
            // First the stream and then a look, so that nothing happens unseen between them.
            let trouble = match self.client.messages("/v3/events") {
                Ok(mut stream) => match self.watch(&mut stream, &mut ends)? {
                    Some(trouble) => trouble,
                    None => return Ok(()),
                },
                Err(trouble) => trouble,
            };
            if self.gone(&ends) {
                return Ok(());
            }
            self.retry(trouble)?;
        }
    }

    /// Looks at every event, until it is so; or until the supervisor does not answer any more, and why.
    fn watch(&mut self, stream: &mut Messages, ends: &mut Ends) -> Result<Option<ClientError>, Failure> {
        loop {
            let known = match self.client.get("/v3/status") {
                Ok(answer) if answer.is_success() => answer.json()?,
                silent => {
                    // It is leaving; what it has told before that may be the answer.
                    while let Ok(Some(message)) = stream.next(Some(Instant::now() + CALM)) {
                        ends.hear(&message.data);
                    }
                    let said = silent.map(|answer| ClientError::Failed(answer.reason()));
                    return Ok(Some(said.unwrap_or_else(|trouble| trouble)));
                }
            };
            let soon = match verdict(&known, self.jobs, self.state)? {
                Verdict::Yes => return Ok(None),
                Verdict::Never(why) => return Err(Failure::Failed(why)),
                Verdict::NotYet(why, soon) => {
                    self.last = why;
                    soon
                }
            };
            let look = Instant::now() + if soon { SOON } else { CALM };
            let mut heard = stream.next(Some(self.until.map_or(look, |until| until.min(look))));
            // What comes together, such as all that is remembered, needs one look only.
            while let Ok(Some(message)) = &heard {
                ends.hear(&message.data);
                heard = stream.next(Some(Instant::now() + TOGETHER));
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Err(self.late());
            }
            if !matches!(heard, Err(StreamError::Timeout)) {
                return Ok(Some(ClientError::Failed("the supervisor has ended".to_owned())));
            }
        }
    }

    /// Whether the supervisor has gone in a way that answers the question: its jobs had all ended as they should.
    fn gone(&self, ends: &Ends) -> bool {
        !self.jobs.is_empty() && self.jobs.iter().all(|job| ends.is(job, self.state))
    }

    /// A supervisor that is not there yet is waited for if the time for that is bounded.
    fn retry(&mut self, trouble: ClientError) -> Result<(), Failure> {
        let Some(until) = self.until else { return Err(trouble.into()) };
        if Instant::now() >= until {
            return Err(self.late());
        }
        self.last = trouble.to_string();
        std::thread::sleep(SOON);
        Ok(())
    }

    fn late(&self) -> Failure {
        Failure::Failed(format!("the time is over: {}", self.last))
    }
}

/// How jobs ended, as their events told: the supervisor may be gone before it can be asked.
#[derive(Debug, Default)]
struct Ends(std::collections::BTreeMap<String, (bool, bool)>);

impl Ends {
    fn hear(&mut self, data: &str) {
        let Ok(event) = serde_json::from_str::<Value>(data) else { return };
        let (stopped, good) = self.0.entry(event.text("source").to_owned()).or_default();
        match event.text("code") {
            "stopped" => *stopped = true,
            "exitSuccess" => (*stopped, *good) = (false, true),
            "exitFailed" => (*stopped, *good) = (false, false),
            _ => {}
        }
    }

    fn is(&self, job: &str, state: &str) -> bool {
        let end = self.0.get(job);
        matches!(
            (state, end),
            ("stopped", Some((true, _))) | ("complete", Some((true, true))) | ("failed", Some((true, false)))
        )
    }
}

/// How it stands with the jobs that are waited for.
fn verdict(status: &Value, jobs: &[String], state: &str) -> Result<Verdict, Failure> {
    let chosen: Vec<&Value> = if jobs.is_empty() {
        // Of all jobs, those count that can be so at all.
        let counts = |job: &&Value| match state {
            _ if matches!(job.text("role"), "telemetry" | "coprocess" | "sensor") => false,
            "healthy" | "unhealthy" => job.text("health") != "none",
            _ => true,
        };
        status.list("jobs").iter().filter(counts).collect()
    } else {
        jobs.iter().map(|name| status::job(status, name)).collect::<Result<_, _>>()?
    };
    let mut whole = Verdict::Yes;
    for job in chosen {
        whole = match (whole, judge(job, state)) {
            (_, Verdict::Never(why)) => return Ok(Verdict::Never(why)),
            (Verdict::NotYet(why, soon), Verdict::NotYet(_, other)) => Verdict::NotYet(why, soon || other),
            (Verdict::Yes, other) | (other, _) => other,
        };
    }
    Ok(whole)
}

fn judge(job: &Value, wanted: &str) -> Verdict {
    let (name, state, health) = (job.text("name"), job.text("state"), job.text("health"));
    let ended = matches!(state, "stopped" | "complete" | "failed");
    let so = match wanted {
        "healthy" | "unhealthy" if health == "none" => {
            return Verdict::Never(format!("{name} has no checks, so it is never {wanted}"));
        }
        "healthy" | "unhealthy" => health == wanted,
        "stopped" => ended,
        _ => state == wanted,
    };
    if so {
        return Verdict::Yes;
    }
    if ended {
        let end = if state == "stopped" { "was stopped by hand" } else { "has ended" };
        let how = if state == "failed" { ", in failure" } else { "" };
        return Verdict::Never(format!("{name} {end}{how}, so it will not be {wanted}"));
    }
    let health = if matches!(wanted, "healthy" | "unhealthy") {
        format!(" and its health {health}")
    } else {
        String::new()
    };
    Verdict::NotYet(
        format!("{name} is {state}{health}"),
        matches!(state, "starting" | "restarting" | "stopping"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(state: &str, health: &str, wanted: &str) -> Verdict {
        judge(&json!({ "name": "a", "state": state, "health": health }), wanted)
    }

    #[test]
    fn x4_wait_knows_what_is_so_what_may_come_and_what_cannot() {
        assert_eq!(judged("running", "healthy", "healthy"), Verdict::Yes);
        assert_eq!(judged("running", "healthy", "running"), Verdict::Yes);
        assert_eq!(judged("failed", "unknown", "stopped"), Verdict::Yes);
        assert_eq!(judged("failed", "unknown", "failed"), Verdict::Yes);
        let not_yet = |text: &str, soon| Verdict::NotYet(text.to_owned(), soon);
        assert_eq!(
            judged("running", "unknown", "healthy"),
            not_yet("a is running and its health unknown", false)
        );
        assert_eq!(judged("starting", "none", "running"), not_yet("a is starting", true));
        assert_eq!(judged("running", "none", "complete"), not_yet("a is running", false));
        let never = |text: &str| Verdict::Never(text.to_owned());
        assert_eq!(judged("running", "none", "healthy"), never("a has no checks, so it is never healthy"));
        assert_eq!(
            judged("failed", "unknown", "complete"),
            never("a has ended, in failure, so it will not be complete")
        );
        assert_eq!(
            judged("stopped", "none", "running"),
            never("a was stopped by hand, so it will not be running")
        );
    }

    #[test]
    fn x4_wait_for_all_takes_those_that_can() {
        let job = |name: &str, role: &str, health: &str| json!({ "name": name, "role": role, "state": "running", "health": health });
        let mut status = json!({ "jobs": [job("a", "job", "healthy"), job("b", "job", "none"), job("t", "telemetry", "unknown")] });
        assert_eq!(verdict(&status, &[], "healthy").unwrap(), Verdict::Yes);
        status["jobs"][1]["health"] = "unknown".into();
        assert_eq!(
            verdict(&status, &[], "healthy").unwrap(),
            Verdict::NotYet("b is running and its health unknown".to_owned(), false)
        );
        assert!(verdict(&status, &["x".to_owned()], "healthy").is_err());
    }

    #[test]
    fn x4_how_a_job_ended_is_known_when_the_supervisor_is_gone() {
        let mut ends = Ends::default();
        ends.hear(r#"{"source":"a","code":"exitSuccess"}"#);
        assert!(!ends.is("a", "complete"));
        ends.hear(r#"{"source":"a","code":"stopping"}"#);
        ends.hear(r#"{"source":"a","code":"stopped"}"#);
        assert!(ends.is("a", "complete") && ends.is("a", "stopped") && !ends.is("a", "failed"));
        assert!(!ends.is("b", "stopped"));
    }
}
