//! What each endpoint does. Nothing is decided here: requests become queries and commands, replies become responses.

use std::time::Duration;

use bytes::Bytes;
use containerpilot_api::SubjectKind;
use containerpilot_api::job_names::group_members;
use containerpilot_api::responses::{JobExecution, JobMessage, JobResult, Maintenance, ReloadFailed};
use containerpilot_core::plan::Level;
use containerpilot_core::plan::diff::Changes;
use containerpilot_core::request::{self, JobReply, Reply};
use containerpilot_views::answers::{explanation, line};
use containerpilot_views::explanation::ExplainedSubject;
use containerpilot_views::lookup::{LookupError, Subject};
use hyper::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use tokio::time::timeout;

use super::access::Access;
use super::bodies::{self, BodyError};
use super::render;
use super::routes::{self, Endpoint, ParameterError, RouteMatch};
use super::{ControlHandles, events};
use crate::messages::query::{ControlRequest, ExecutionError, JobAction};
use crate::messages::reload::ReloadOutcome;
use crate::net::server::{
    Body, Handler, JSON, ServerLimits, ServerRequest, ServerResponse, StatusCode, TEXT, error,
    method_not_allowed, ok, with_status,
};
use crate::telemetry::job_usage;

const EVENTS: &str = "text/event-stream";
const BYTES: &str = "application/octet-stream";

/// How long a response waits for the end of what was requested. The rest of the time of a request is for the response.
const LONGEST_WAIT: Duration = ServerLimits::CONTROL.request_timeout.saturating_sub(Duration::from_secs(5));

type EndpointResult = Result<ServerResponse, HttpError>;

/// The response to a request that is not carried out.
#[derive(Debug)]
struct HttpError {
    status: StatusCode,
    reason: String,
}

impl From<BodyError> for HttpError {
    fn from(error: BodyError) -> Self {
        let status = match error {
            BodyError::Form(_) => StatusCode::UNPROCESSABLE_ENTITY,
            BodyError::Content(_) => StatusCode::BAD_REQUEST,
        };
        http_error(status, error.to_string())
    }
}

/// The handler of the control socket.
pub(super) struct ControlApi {
    pub(super) handles: ControlHandles,
    pub(super) access: Access,
}

impl Handler for ControlApi {
    async fn handle(&self, request: ServerRequest) -> ServerResponse {
        let path = request.head.uri.path();
        let admitted = self.access.to_socket(request.peer_uid);
        let (route, response) = match routes::find(request.head.method.as_str(), path) {
            _ if let Err(reason) = admitted => ("unknown", error(StatusCode::FORBIDDEN, reason)),
            RouteMatch::Endpoint { endpoint, route, job } => {
                let result = self.call(endpoint, job, &request).await;
                (route, result.unwrap_or_else(|refusal| error(refusal.status, &refusal.reason)))
            }
            RouteMatch::WrongMethod { allowed, route } => (route, method_not_allowed(allowed)),
            RouteMatch::InvalidName => {
                ("unknown", error(StatusCode::BAD_REQUEST, "the job's name is not percent-encoded UTF-8"))
            }
            RouteMatch::UnknownPath => {
                ("unknown", error(StatusCode::NOT_FOUND, &format!("unknown path {path}")))
            }
        };
        self.handles.metrics.count_control_request(response.status().as_u16(), route);
        response
    }
}

impl ControlApi {
    async fn call(&self, endpoint: Endpoint, job: String, request: &ServerRequest) -> EndpointResult {
        let ServerRequest { head, body, peer_uid } = request;
        let (query, peer_uid) = (head.uri.query(), *peer_uid);
        match endpoint {
            Endpoint::Ping => Ok(empty_line()),
            Endpoint::Environ => self.environ(body, peer_uid).await,
            Endpoint::Metric => self.metric(body),
            Endpoint::Reload => self.reload(query, peer_uid).await,
            Endpoint::Maintenance(on) => self.maintenance(on).await,
            Endpoint::Status => {
                let [usage] = routes::parameters(query, ["usage"]).map_err(bad_request)?;
                let usage = routes::flag("usage", usage, false).map_err(bad_request)?;
                let snapshot = self.handles.queries.overview().await.ok_or_else(no_answer)?;
                let usage = usage.then(|| job_usage::read(&snapshot));
                Ok(ok(JSON, render::status(&snapshot, usage.as_ref())))
            }
            Endpoint::Health => self.health().await,
            Endpoint::Events => self.events(query, &head.headers).await,
            Endpoint::Recording => self.recording().await,
            Endpoint::Logs => self.logs(job, query).await,
            Endpoint::Execution => self.execution(job, peer_uid).await,
            Endpoint::Explain(kind) => self.explain(Subject { kind, name: job }).await,
            Endpoint::Start => self.act_on(job, JobAction::Start, peer_uid).await,
            Endpoint::Stop => self.act_on(job, JobAction::Stop, peer_uid).await,
            Endpoint::Restart => {
                let [rolling] = routes::parameters(query, ["rolling"]).map_err(bad_request)?;
                match routes::flag("rolling", rolling, false).map_err(bad_request)? {
                    true => self.rolling_restart(job, peer_uid).await,
                    false => self.act_on(job, JobAction::Restart, peer_uid).await,
                }
            }
            Endpoint::Scale => self.scale(job, bodies::replicas(body)?, peer_uid).await,
            Endpoint::Signal => self.act_on(job, JobAction::Signal(bodies::signal(body)?), peer_uid).await,
        }
    }

    async fn execution(&self, job: String, peer_uid: Option<u32>) -> EndpointResult {
        let forbidden = |reason: &str| http_error(StatusCode::FORBIDDEN, reason.to_owned());
        self.access.to_variables(peer_uid).map_err(forbidden)?;
        let execution = self.handles.queries.execution(job.clone()).await.map_err(|error| match error {
            ExecutionError::Job(error) => unresolved(&job, &error),
            ExecutionError::Setup(why) => http_error(StatusCode::CONFLICT, format!("{job}: {why}")),
        })?;
        self.log(format!("{} requested the environment of {job}", user(peer_uid)));
        Ok(ok(JSON, line(&JobExecution::new(job, &execution))))
    }

    async fn explain(&self, subject: Subject) -> EndpointResult {
        let explained = self.handles.queries.explain(subject.clone(), None).await;
        let explained = explained.map_err(|error| not_one(subject.kind, &subject.name, &error))?;
        let output = self.output_of_failure(&explained.subject);
        Ok(ok(JSON, explanation(explained, output)))
    }

    /// X9: the last lines of the last run of a job, if that failed and they are still kept.
    fn output_of_failure(&self, explained: &ExplainedSubject) -> Vec<String> {
        let ExplainedSubject::Job(explained) = explained else { return Vec::new() };
        let job = &explained.explanation.job;
        let pid = job.last_pid.filter(|_| job.failed_runs > 0).and_then(|pid| u32::try_from(pid).ok());
        pid.map(|pid| self.handles.tails.last_lines_of_run(&job.name, pid)).unwrap_or_default()
    }

    fn log(&self, message: String) {
        self.handles.queries.log(Level::Info, format!("control: {message}"));
    }

    /// L5: the log shows names, never values.
    async fn environ(&self, body: &Bytes, peer_uid: Option<u32>) -> EndpointResult {
        let variables = bodies::variables(body)?;
        if variables.is_empty() {
            return Ok(empty_line());
        }
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let what = if names.len() == 1 { "environment variable" } else { "environment variables" };
        self.log(format!("{} set {what} {}", user(peer_uid), names.join(", ")));
        self.command(request::Request::SetVariables(variables)).await.map(|_| empty_line())
    }

    fn metric(&self, body: &Bytes) -> EndpointResult {
        let values = bodies::values(body)?;
        let values: Vec<(&str, &str)> = values.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.handles.metrics.put_all(&values).map(|()| empty_line()).map_err(|refusals| {
            let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            http_error(StatusCode::BAD_REQUEST, reasons.join("\n"))
        })
    }

    async fn reload(&self, query: Option<&str>, peer_uid: Option<u32>) -> EndpointResult {
        let [dry_run] = routes::parameters(query, ["dry-run"]).map_err(bad_request)?;
        let dry_run = routes::flag("dry-run", dry_run, false).map_err(bad_request)?;
        if !dry_run {
            self.log(format!("{} requested a reload", user(peer_uid)));
        }
        let queries = self.handles.queries.clone();
        let outcome = async move {
            match queries.reload(dry_run).await.ok_or_else(no_answer)? {
                ReloadOutcome::Applied(done) => {
                    if !dry_run {
                        // The words of 3.8.
                        queries.log(Level::Debug, "control: reloaded app via control plane".to_owned());
                    }
                    Ok(render::reloaded(&done, dry_run))
                }
                ReloadOutcome::Invalid(report) => Err(http_error(StatusCode::UNPROCESSABLE_ENTITY, report)),
                ReloadOutcome::Refused(error) => Err(http_error(StatusCode::CONFLICT, error.to_string())),
            }
        };
        let late = |outcome: Result<String, HttpError>| {
            outcome.unwrap_or_else(|error| line(&ReloadFailed { message: error.reason }))
        };
        when_done(outcome, |done| done, late).await
    }

    async fn maintenance(&self, on: bool) -> EndpointResult {
        let updated = match self.command(request::Request::Maintenance(on)).await? {
            Reply::Updated(updated) => updated,
            Reply::Done(_) | Reply::Reloaded(_) | Reply::Jobs(_) => true,
            Reply::Refused(why) => return Err(http_error(StatusCode::CONFLICT, why.to_string())),
        };
        Ok(ok(JSON, line(&Maintenance { updated: Some(updated) })))
    }

    async fn health(&self) -> EndpointResult {
        let snapshot = self.handles.queries.overview().await.ok_or_else(no_answer)?;
        let (healthy, text) = render::health(&snapshot);
        let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        Ok(with_status(status, JSON, text))
    }

    async fn events(&self, query: Option<&str>, headers: &HeaderMap) -> EndpointResult {
        let [follow, since] = routes::parameters(query, ["follow", "since"]).map_err(bad_request)?;
        let follow = routes::flag("follow", follow, true).map_err(bad_request)?;
        // An EventSource sends this header by itself when it reconnects.
        let last_id =
            headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        let since = routes::number("since", since.or(last_id)).map_err(bad_request)?;
        let stream = self.handles.queries.events().await.ok_or_else(no_answer)?;
        let mut response = ok(EVENTS, events::body(stream, follow, since));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    async fn recording(&self) -> EndpointResult {
        let recording = self.handles.queries.recording().await;
        let nothing = || http_error(StatusCode::NOT_FOUND, "nothing is recorded".to_owned());
        Ok(ok(BYTES, recording.ok_or_else(nothing)?))
    }

    async fn logs(&self, name: String, query: Option<&str>) -> EndpointResult {
        let known = ["follow", "lines", "times"];
        let [follow, lines, times] = routes::parameters(query, known).map_err(bad_request)?;
        let follow = routes::flag("follow", follow, false).map_err(bad_request)?;
        let times = routes::flag("times", times, false).map_err(bad_request)?;
        let lines = routes::number("lines", lines).map_err(bad_request)?;
        let lines = lines.map_or(usize::MAX, |lines| usize::try_from(lines).unwrap_or(usize::MAX));
        let found = self.handles.queries.name(name.clone()).await;
        let job = found.map_err(|error| unresolved(&name, &error))?;
        if follow {
            let (sender, body) = Body::stream();
            self.handles.tails.follow(&job, lines, times, Box::new(sender));
            return Ok(ok(TEXT, body));
        }
        let all = self.handles.tails.last_lines(&job);
        let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
        Ok(ok(TEXT, last.iter().map(|line| line.print(times)).collect::<String>()))
    }

    /// Acts on a job, or on every job of a group (W22): that is one request, so nothing comes in between. A group is
    /// refused if every job of it refuses.
    async fn act_on(&self, name: String, action: JobAction, peer_uid: Option<u32>) -> EndpointResult {
        self.check_group(&name).await?;
        let what = match action {
            JobAction::Start => "start of".to_owned(),
            JobAction::Stop => "stop of".to_owned(),
            JobAction::Restart => "restart of".to_owned(),
            JobAction::RollingRestart => "rolling restart of".to_owned(),
            JobAction::Signal(signal) => format!("{signal} for"),
        };
        self.log(format!("{} requested {what} {name}", user(peer_uid)));
        let reply = self.handles.queries.request(ControlRequest::Job(name.clone(), action)).await;
        let (message, jobs) = match reply.map_err(|error| unresolved(&name, &error))? {
            Reply::Refused(why) => return Err(http_error(StatusCode::CONFLICT, format!("{name}: {why}"))),
            Reply::Done(message) => (message, Vec::new()),
            Reply::Jobs(replies) => match JobReply::combined(&replies) {
                Ok(message) => (message, replies.into_iter().map(job_result).collect()),
                Err(why) => return Err(http_error(StatusCode::CONFLICT, why.to_string())),
            },
            Reply::Updated(_) | Reply::Reloaded(_) => ("done".to_owned(), Vec::new()),
        };
        Ok(ok(JSON, line(&JobMessage { job: name, message, done: None, jobs })))
    }

    /// Refuses a group that no job belongs to, and names the groups.
    async fn check_group(&self, name: &str) -> Result<(), HttpError> {
        if !name.starts_with('@') {
            return Ok(());
        }
        let snapshot = self.handles.queries.overview().await.ok_or_else(no_answer)?;
        let jobs = snapshot.overview.jobs.iter().map(|job| (job.name.as_str(), job.groups.as_slice()));
        group_members(name, jobs).map(drop).map_err(|why| http_error(StatusCode::NOT_FOUND, why))
    }

    /// Restarts jobs one at a time (W20).
    async fn rolling_restart(&self, job: String, peer_uid: Option<u32>) -> EndpointResult {
        self.check_group(&job).await?;
        self.log(format!("{} requested rolling restart of {job}", user(peer_uid)));
        self.long(ControlRequest::Job(job.clone(), JobAction::RollingRestart), job, None).await
    }

    /// Runs another number of replicas (W20).
    async fn scale(&self, job: String, count: u16, peer_uid: Option<u32>) -> EndpointResult {
        self.log(format!("{} requested {count} replicas of {job}", user(peer_uid)));
        let request = ControlRequest::Supervisor(request::Request::Scale(job.clone(), count));
        self.long(request, job, Some(count)).await
    }

    /// A request about one job that may take long.
    async fn long(&self, request: ControlRequest, job: String, scale: Option<u16>) -> EndpointResult {
        let queries = self.handles.queries.clone();
        let name = job.clone();
        let outcome = async move {
            let reply = queries.request(request).await.map_err(|error| unresolved(&name, &error))?;
            let message = match (reply, scale) {
                (Reply::Refused(why), _) => {
                    return Err(http_error(StatusCode::CONFLICT, format!("{name}: {why}")));
                }
                (Reply::Reloaded(changes), Some(count)) => scaled(count, &changes),
                (Reply::Done(message), _) => message,
                (Reply::Updated(_) | Reply::Reloaded(_) | Reply::Jobs(_), _) => "done".to_owned(),
            };
            if scale.is_some() {
                queries.log(Level::Info, format!("control: {name}: {message}"));
            }
            Ok(message)
        };
        let of_job = move |message, done| line(&JobMessage { job, message, done, jobs: Vec::new() });
        let late_of_job = of_job.clone();
        let late = move |outcome: Result<String, HttpError>| {
            let done = outcome.is_ok();
            late_of_job(outcome.unwrap_or_else(|error| error.reason), Some(done))
        };
        when_done(outcome, move |message| of_job(message, None), late).await
    }

    async fn command(&self, command: request::Request) -> Result<Reply, HttpError> {
        let reply = self.handles.queries.request(ControlRequest::Supervisor(command)).await;
        reply.map_err(|error| unresolved("", &error))
    }
}

/// Answers a request when it is done. After the longest wait the response is 202 (accepted), and its body follows when
/// it is done: `late` renders it from the outcome or the refusal.
async fn when_done(
    outcome: impl Future<Output = Result<String, HttpError>> + Send + 'static,
    in_time: impl FnOnce(String) -> String,
    late: impl FnOnce(Result<String, HttpError>) -> String + Send + 'static,
) -> EndpointResult {
    let mut outcome = Box::pin(outcome);
    if let Ok(outcome) = timeout(LONGEST_WAIT, &mut outcome).await {
        return outcome.map(|done| ok(JSON, in_time(done)));
    }
    let (mut sender, body) = Body::stream();
    tokio::spawn(async move {
        // The client may have gone.
        let _ = sender.offer(late(outcome.await).into(), "");
    });
    Ok(with_status(StatusCode::ACCEPTED, JSON, body))
}

fn scaled(count: u16, changes: &Changes) -> String {
    let Changes { started, stopped, .. } = changes;
    let mut message = if count == 1 { "1 replica".to_owned() } else { format!("{count} replicas") };
    for (what, names) in [("started", started), ("stopped", stopped)] {
        if !names.is_empty() {
            message += &format!("; {what} {}", names.join(", "));
        }
    }
    message
}

fn job_result(JobReply { job, result }: JobReply) -> JobResult {
    let is_done = result.is_ok();
    let message = result.unwrap_or_else(|refusal| refusal.to_string());
    JobResult { job, message, done: is_done }
}

/// The response of 3.8 to a successful request.
fn empty_line() -> ServerResponse {
    ok(TEXT, "\n")
}

fn user(uid: Option<u32>) -> String {
    uid.map_or_else(|| "an unknown user".to_owned(), |uid| format!("user {uid}"))
}

fn http_error(status: StatusCode, reason: String) -> HttpError {
    HttpError { status, reason }
}

fn bad_request(error: ParameterError) -> HttpError {
    http_error(StatusCode::BAD_REQUEST, error.to_string())
}

fn no_answer() -> HttpError {
    unresolved("", &LookupError::NoAnswer)
}

/// A name that does not identify one job.
fn unresolved(name: &str, error: &LookupError) -> HttpError {
    not_one(SubjectKind::Job, name, error)
}

/// A name that does not identify one job, watch, lock or file.
fn not_one(kind: SubjectKind, name: &str, error: &LookupError) -> HttpError {
    let status = match error {
        LookupError::NoAnswer => StatusCode::SERVICE_UNAVAILABLE,
        LookupError::NotFound(_) => StatusCode::NOT_FOUND,
        LookupError::Ambiguous(_) | LookupError::Replicas(_) => StatusCode::CONFLICT,
    };
    http_error(status, error.words(kind, name))
}
