//! The live page at `/`, for people (T5).
//!
//! | path | response |
//! | --- | --- |
//! | `/` | the document: HTML with its style and script, no other resource; compressed with gzip |
//! | `/page/state` | the state of everything, as JSON |
//! | `/page/events` | the same, then every change, as server-sent events ([`feed`]) |
//! | `/page/jobs/NAME`, `watches`, `locks`, `files` | the explanation of one of them, as JSON ([`details`]) |
//!
//! The port may be public inside a cluster. Therefore the event loop removes what must not be shown before it replies
//! (`containerpilot_core::report::redact`), every response has strict headers ([`headers`]), and requests under a
//! public host name that is not configured are refused ([`hosts`]).

mod details;
mod feed;
mod headers;
mod hosts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use containerpilot_api::{SubjectKind, percent_decoded};
use containerpilot_core::plan;
use containerpilot_core::report::redact::Disclosure;
use containerpilot_views::lookup::{LookupError, Subject};
use hyper::Method;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use tokio::sync::watch;

use self::details::{Details, ExplainError};
use self::feed::Feed;
use crate::logs::Tails;
use crate::messages::query_handle::QueryHandle;
use crate::net::server::{JSON, ServerResponse, StatusCode, error, ok};

const EVENTS: &str = "text/event-stream";

/// Serves the page.
pub(super) struct PageServer {
    settings: watch::Receiver<Option<plan::Page>>,
    feed: Arc<Feed>,
    details: Details,
    shutdown: watch::Receiver<()>,
}

/// What a request is for.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    Document,
    State,
    Events,
    Subject(Subject),
    /// A name that is not percent-encoded UTF-8.
    InvalidName,
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/" => return Some(Self::Document),
            "/page/state" => return Some(Self::State),
            "/page/events" => return Some(Self::Events),
            _ => {}
        }
        let (kind, name) = path.strip_prefix("/page/")?.split_once('/')?;
        let kind = SubjectKind::ALL.into_iter().find(|known| known.plural() == kind)?;
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let subject = |name| Self::Subject(Subject { kind, name });
        Some(percent_decoded(name, false).map_or(Self::InvalidName, subject))
    }
}

impl PageServer {
    pub(super) fn new(
        settings: watch::Receiver<Option<plan::Page>>,
        queries: QueryHandle,
        tails: Option<Tails>,
        shutdown: watch::Receiver<()>,
    ) -> Self {
        let feed = Arc::new(Feed::new(queries.clone(), settings.clone()));
        Self { settings, feed, details: Details::new(queries, tails), shutdown }
    }

    pub(super) fn is_on(&self) -> bool {
        self.settings.borrow().is_some()
    }

    /// Whether a path is one of the page.
    pub(super) fn has(path: &str) -> bool {
        Route::of(path).is_some()
    }

    /// The response to a request for one of the other pages under a public name that `hosts` does not have. Without
    /// `hosts` they are served under any name, as by 3.8: a scraper may use one.
    pub(super) fn refuses_name(&self, head: &Parts) -> Option<ServerResponse> {
        let settings = self.settings.borrow();
        let hosts = &settings.as_ref()?.hosts;
        (!hosts.is_empty() && !hosts::is_accepted(&head.headers, hosts)).then(public_name)
    }

    /// The response to a GET or HEAD request of a path of the page.
    pub(super) async fn respond(&self, head: &Parts) -> ServerResponse {
        let Some(settings) = self.settings.borrow().clone() else { return not_found() };
        let Some(route) = Route::of(head.uri.path()) else { return not_found() };
        if !hosts::is_accepted(&head.headers, &settings.hosts) {
            return public_name();
        }
        if route == Route::Document {
            return headers::document(&head.headers);
        }
        if headers::is_cross_site(&head.headers) {
            let reason = "only the page itself may request this";
            return headers::add(error(StatusCode::FORBIDDEN, reason), headers::NOTHING);
        }
        let response = match route {
            Route::Events if head.method == Method::HEAD => ok(EVENTS, ""),
            Route::Events => ok(EVENTS, Feed::stream(&self.feed, self.shutdown.clone())),
            Route::State => match self.feed.state_now(&settings).await {
                Some(state) => ok(JSON, state),
                None => no_answer(),
            },
            Route::Subject(subject) => match self.details.explain(&settings, subject).await {
                Ok(text) => ok(JSON, text),
                Err(ExplainError::Busy) => busy(),
                Err(ExplainError::Lookup(LookupError::NoAnswer)) => no_answer(),
                Err(ExplainError::Lookup(_)) => not_found(),
            },
            Route::InvalidName => error(StatusCode::BAD_REQUEST, "the name is not percent-encoded UTF-8"),
            Route::Document => not_found(),
        };
        headers::add(response, headers::NOTHING)
    }
}

/// Any text as a path and as a host name.
#[cfg(feature = "fuzzing")]
pub(super) fn fuzz(text: &str) {
    if let Some(Route::Subject(subject)) = Route::of(text) {
        assert!(!subject.name.is_empty());
    }
    if let Ok(host) = HeaderValue::from_str(text) {
        let headers = hyper::HeaderMap::from_iter([(hyper::header::HOST, host)]);
        assert!(!hosts::is_accepted(&headers, &[]) || !text.to_ascii_lowercase().ends_with(".com"));
    }
}

/// What the settings allow to show.
fn shown(settings: &plan::Page) -> Disclosure {
    Disclosure { commands: settings.arguments, output: settings.logs }
}

fn not_found() -> ServerResponse {
    error(StatusCode::NOT_FOUND, "there is no such job, watch, lock or file")
}

fn public_name() -> ServerResponse {
    let reason =
        "this host name is public: use an address or a local name, or add the name to `hosts` under `page`";
    headers::add(error(StatusCode::MISDIRECTED_REQUEST, reason), headers::NOTHING)
}

fn busy() -> ServerResponse {
    let mut response =
        error(StatusCode::SERVICE_UNAVAILABLE, "too many explanations are requested; try again");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn no_answer() -> ServerResponse {
    error(StatusCode::SERVICE_UNAVAILABLE, "the supervisor is exiting, or does not answer")
}
