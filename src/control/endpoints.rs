//! What is done at each path. Nothing is decided here: requests become questions and wishes, answers become text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use containerpilot_config::kinds::signal_name;
use containerpilot_core::plan::Level;
use containerpilot_core::rules::command::{Answer as Word, Command};
use tokio::time::timeout;

use super::bodies::{self, Wrong};
use super::routes::{self, Endpoint, Found};
use super::{events, render};
use crate::json;
use crate::logs::Tails;
use crate::net::http::Fields;
use crate::net::serve::{Answer, Answering, Asked, Body, Response, Status, error, wrong_method};
use crate::runtime::query::{ControlRequest, JobAction, JobLookupError, QueryHandle};
use crate::runtime::reload::ReloadOutcome;
use crate::telemetry::Metrics;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const EVENTS: &str = "text/event-stream";

/// How long an answer to a reload is waited for: less than a request may take.
const RELOAD: Duration = Duration::from_secs(25);

/// How an endpoint answers.
type Answered = Result<Response, Refusal>;

/// Why something is not done.
#[derive(Debug)]
struct Refusal {
    status: Status,
    reason: String,
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Form(why) => unprocessable(&why),
            Wrong::Content(why) => refuse(Status::BAD_REQUEST, &why),
        }
    }
}

/// The control log_thread: who answers on the socket.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) desk: QueryHandle,
    pub(super) metrics: Metrics,
    pub(super) tails: Tails,
    /// The user we act as.
    pub(super) own_user: u32,
    /// Whether the file's mode and group decide who may connect, because somebody has opened it further.
    pub(super) opened: Arc<AtomicBool>,
}

impl Answer for Plane {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.respond(asked))
    }
}

impl Plane {
    async fn respond(&self, asked: Asked) -> Response {
        let (request, peer) = (&asked.request, asked.peer);
        let (route, answer) = match routes::find(&request.method, &request.path) {
            _ if !self.admits(peer) => {
                let words = "only root and the supervisor's own user may steer it; control: { mode, group } lets others in";
                ("unknown", error(Status::FORBIDDEN, words))
            }
            Found::Endpoint(endpoint, route, name) => {
                let answered = self.serve(endpoint, name, &asked).await;
                (route, answered.unwrap_or_else(|refusal| error(refusal.status, &refusal.reason)))
            }
            Found::Method(allowed, route) => (route, wrong_method(allowed)),
            Found::BadName => {
                ("unknown", error(Status::BAD_REQUEST, "the job's name is not percent-encoded UTF-8"))
            }
            Found::Nothing => {
                let words = format!("there is nothing at {}", request.path);
                ("unknown", error(Status::NOT_FOUND, &words))
            }
        };
        self.metrics.control_request(answer.status.number(), route);
        answer
    }

    /// Who may connect is the file's affair; with its usual mode that is nobody but us and root, whatever has become
    /// of the file.
    fn admits(&self, peer: Option<u32>) -> bool {
        self.opened.load(Ordering::Relaxed) || peer.is_some_and(|user| user == 0 || user == self.own_user)
    }

    async fn serve(&self, endpoint: Endpoint, name: String, asked: &Asked) -> Answered {
        let (request, body, peer) = (&asked.request, &asked.body, asked.peer);
        let query = request.query.as_deref();
        match endpoint {
            Endpoint::Ping => Ok(done()),
            Endpoint::Environ => self.environ(body, peer).await,
            Endpoint::Metric => self.metric(body),
            Endpoint::Reload => self.reload(query, peer).await,
            Endpoint::Maintenance(on) => self.maintenance(on).await,
            Endpoint::Status => {
                let snapshot = self.desk.overview().await.ok_or_else(leaving)?;
                Ok(Response::new(JSON, line(render::status(&snapshot))))
            }
            Endpoint::Health => self.health().await,
            Endpoint::Events => self.events(query, &request.fields).await,
            Endpoint::Logs => self.logs(name, query).await,
            Endpoint::Explain => {
                let explained = self.desk.explain(name.clone()).await;
                let explained = explained.map_err(|unclear| refused(&name, &unclear))?;
                Ok(Response::new(JSON, line(render::explanation(&explained))))
            }
            Endpoint::Start => self.act(name, JobAction::Start, "start", peer).await,
            Endpoint::Stop => self.act(name, JobAction::Stop, "stop", peer).await,
            Endpoint::Restart => self.act(name, JobAction::Restart, "restart", peer).await,
            Endpoint::Signal => {
                let signal = bodies::signal(body)?;
                self.act(name, JobAction::Signal(signal), &signal_name(signal), peer).await
            }
        }
    }

    /// L5: names may be told, values never.
    async fn environ(&self, body: &Bytes, peer: Option<u32>) -> Answered {
        let variables = bodies::variables(body)?;
        if variables.is_empty() {
            return Ok(done());
        }
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("control: {} set {}", who(peer), names.join(", "));
        self.desk.log(Level::Info, message);
        self.whole(Command::SetVariables(variables)).await.map(|_| done())
    }

    fn metric(&self, body: &Bytes) -> Answered {
        let values = bodies::values(body)?;
        let values: Vec<(&str, &str)> = values.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.metrics.put_all(&values).map(|()| done()).map_err(|refusals| {
            let words: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            refuse(Status::BAD_REQUEST, &words.join("\n"))
        })
    }

    async fn reload(&self, query: Option<&str>, peer: Option<u32>) -> Answered {
        let bad = |why: String| refuse(Status::BAD_REQUEST, &why);
        let [dry] = routes::parameters(query, ["dry-run"]).map_err(bad)?;
        let dry = routes::flag("dry-run", dry, false).map_err(bad)?;
        if !dry {
            self.desk.log(Level::Info, format!("control: {} asks for a reload", who(peer)));
        }
        let Ok(outcome) = timeout(RELOAD, self.desk.reload(dry)).await else {
            let words = "the reload goes on: jobs are still being stopped, or files read; the log says when it is done";
            let mut answer = Response::new(
                JSON,
                line(json::object(|out| {
                    out.text("message", words);
                })),
            );
            answer.status = Status::ACCEPTED;
            return Ok(answer);
        };
        match outcome.ok_or_else(leaving)? {
            ReloadOutcome::Applied(done) => Ok(Response::new(JSON, line(render::reloaded(&done, dry)))),
            ReloadOutcome::Invalid(report) => Err(unprocessable(&report)),
            ReloadOutcome::Refused(why) => Err(refuse(Status::CONFLICT, &why)),
        }
    }

    async fn maintenance(&self, on: bool) -> Answered {
        let updated = match self.whole(Command::Maintenance(on)).await? {
            Word::Updated(updated) => updated,
            Word::Done(_) | Word::Reloaded(_) => true,
            Word::Refused(why) => return Err(refuse(Status::CONFLICT, &why)),
        };
        let text = json::object(|out| {
            out.plain("updated", updated);
        });
        Ok(Response::new(JSON, line(text)))
    }

    async fn health(&self) -> Answered {
        let snapshot = self.desk.overview().await.ok_or_else(leaving)?;
        let (healthy, text) = render::health(&snapshot);
        let mut answer = Response::new(JSON, line(text));
        if !healthy {
            answer.status = Status::SERVICE_UNAVAILABLE;
        }
        Ok(answer)
    }

    async fn events(&self, query: Option<&str>, fields: &Fields) -> Answered {
        let bad = |why: String| refuse(Status::BAD_REQUEST, &why);
        let [follow, since] = routes::parameters(query, ["follow", "since"]).map_err(bad)?;
        let follow = routes::flag("follow", follow, true).map_err(bad)?;
        // What an EventSource sends by itself when it connects again.
        let last = fields.get("last-event-id").map(str::to_owned);
        let since = routes::number("since", since.or(last)).map_err(bad)?;
        let listening = self.desk.events().await.ok_or_else(leaving)?;
        let mut answer = Response::new(EVENTS, events::body(listening, follow, since));
        answer.fields.push(("cache-control", "no-store"));
        Ok(answer)
    }

    async fn logs(&self, name: String, query: Option<&str>) -> Answered {
        let bad = |why: String| refuse(Status::BAD_REQUEST, &why);
        let [follow, lines] = routes::parameters(query, ["follow", "lines"]).map_err(bad)?;
        let follow = routes::flag("follow", follow, false).map_err(bad)?;
        let lines = routes::number("lines", lines).map_err(bad)?;
        let lines = lines.map_or(usize::MAX, |lines| usize::try_from(lines).unwrap_or(usize::MAX));
        let job = self.desk.name(name.clone()).await.map_err(|unclear| refused(&name, &unclear))?;
        if follow {
            let (feed, body) = Body::stream();
            self.tails.follow(&job, lines, Box::new(feed));
            return Ok(Response::new(TEXT, body));
        }
        let all = self.tails.last_lines(&job);
        let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
        let text: String = last.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        Ok(Response::new(TEXT, text))
    }

    async fn act(&self, name: String, act: JobAction, verb: &str, peer: Option<u32>) -> Answered {
        self.desk.log(Level::Info, format!("control: {} asks for {verb} of {name}", who(peer)));
        let answer = self.desk.request(ControlRequest::Job(name.clone(), act)).await;
        match answer.map_err(|unclear| refused(&name, &unclear))? {
            Word::Refused(why) => Err(refuse(Status::CONFLICT, &format!("{name}: {why}"))),
            Word::Done(message) => Ok(begun(&name, &message)),
            Word::Updated(_) | Word::Reloaded(_) => Ok(begun(&name, "done")),
        }
    }

    async fn whole(&self, command: Command) -> Result<Word, Refusal> {
        self.desk.request(ControlRequest::Supervisor(command)).await.map_err(|unclear| refused("", &unclear))
    }
}

/// 3.8's answer to what it has nothing to say about: an empty line.
fn done() -> Response {
    Response::new(TEXT, "\n")
}

fn begun(job: &str, message: &str) -> Response {
    let text = json::object(|out| {
        out.text("job", job).text("message", message);
    });
    Response::new(JSON, line(text))
}

fn line(mut text: String) -> String {
    text.push('\n');
    text
}

fn who(peer: Option<u32>) -> String {
    peer.map_or_else(|| "somebody".to_owned(), |user| format!("user {user}"))
}

fn refuse(status: Status, reason: &str) -> Refusal {
    Refusal { status, reason: reason.to_owned() }
}

fn leaving() -> Refusal {
    refuse(Status::SERVICE_UNAVAILABLE, "the supervisor is leaving")
}

fn unprocessable(why: &str) -> Refusal {
    refuse(Status::UNPROCESSABLE_ENTITY, why)
}

fn refused(name: &str, unclear: &JobLookupError) -> Refusal {
    match unclear {
        JobLookupError::ShuttingDown => leaving(),
        JobLookupError::NotFound(None) => refuse(Status::NOT_FOUND, &format!("there is no job `{name}`")),
        JobLookupError::NotFound(Some(near)) => {
            refuse(Status::NOT_FOUND, &format!("there is no job `{name}`; did you mean `{near}`?"))
        }
        JobLookupError::Ambiguous(count) => {
            let words = format!("there are {count} jobs `{name}`: say `{name}:1` to `{name}:{count}`");
            refuse(Status::CONFLICT, &words)
        }
    }
}
