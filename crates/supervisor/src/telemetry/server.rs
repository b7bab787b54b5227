//! The telemetry server: pages for programs over HTTP (T1), and one for people (T5, `page`).
//!
//! Every page is rendered from a [`Snapshot`] of the core. One query to the event loop is in progress at a time, and
//! its result is reused for 100 ms, so the loop gets at most ten queries a second from any number of clients. The page
//! for people has limits of its own.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::plan::{self, Level};
use containerpilot_process::error_text::describe;
use containerpilot_views::snapshot::Snapshot;
use hyper::Method;
use nix::sys::socket::Backlog;
use thiserror::Error;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};

use super::page::PageServer;
use super::{Metrics, exposition, status};
use crate::VERSION;
use crate::messages::query_handle::QueryHandle;
use crate::net::Net;
use crate::net::server::{
    Handler, JSON, Listener, ServerLimits, ServerRequest, ServerResponse, StatusCode, TEXT, error,
    method_not_allowed, ok, serve,
};

/// How long the event loop may take to reply. Normally it replies at once.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a snapshot is reused.
const SNAPSHOT_LIFETIME: Duration = Duration::from_millis(100);

/// After a reload the old listener may need a moment to close: the number and the interval of attempts before an error
/// is logged.
const QUIET_ATTEMPTS: u32 = 10;
const QUIET_INTERVAL: Duration = Duration::from_millis(50);
/// The interval of attempts after that.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Why the server cannot listen, and what to do about it.
#[derive(Debug, Error)]
#[error("telemetry cannot listen on {address}: {}; {}", describe(source), advice(source))]
pub(crate) struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "stop the process that listens there, or choose another `port` under `telemetry`"
        }
        io::ErrorKind::PermissionDenied => "choose a `port` of 1024 or above under `telemetry`",
        io::ErrorKind::AddrNotAvailable => {
            "choose an address of this machine with `interfaces` under `telemetry`"
        }
        _ => "check `port` and `interfaces` under `telemetry`",
    }
}

fn listen(wanted: &plan::Telemetry) -> Result<TcpListener, ListenError> {
    let address = SocketAddr::new(wanted.address, wanted.port);
    let bind = || {
        let listener = TcpListener::bind(address)?;
        // The standard library allows 128 waiting connections. Beyond the limit, a probe of the scheduler would wait a
        // second.
        nix::sys::socket::listen(&listener, Backlog::MAXCONN)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    bind().map_err(|source| ListenError { address, source })
}

/// The event loop's handle of the server. Dropping it stops the server.
#[derive(Debug)]
pub(crate) struct TelemetryServer {
    /// The address in the plan; its port may be 0.
    wanted: SocketAddr,
    page: watch::Sender<Option<plan::Page>>,
    _shutdown: watch::Sender<()>,
}

impl TelemetryServer {
    /// Listens at the plan's address and serves.
    pub(crate) fn open(
        wanted: &plan::Telemetry,
        net: &Net,
        metrics: Metrics,
        queries: QueryHandle,
    ) -> Result<Self, ListenError> {
        let address = SocketAddr::new(wanted.address, wanted.port);
        let listener = listen(wanted)?;
        let (shutdown, shutdown_requested) = watch::channel(());
        let (page, settings) = watch::channel(wanted.page.clone());
        let server = {
            // Registers the listener with the network thread's runtime.
            let _entered = net.handle().enter();
            server(listener, metrics, queries, settings, shutdown_requested)
                .map_err(|source| ListenError { address, source })?
        };
        net.spawn(server);
        Ok(Self { wanted: address, page, _shutdown: shutdown })
    }

    /// Whether this is the address in the plan.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        self.wanted == address
    }

    /// R3: applies another plan. The server stays if its address does. Otherwise it stops, and a new one listens as
    /// soon as its address is free. That never fails the reload.
    pub(crate) fn follow(
        current: Option<Self>,
        wanted: Option<&plan::Telemetry>,
        net: &Net,
        metrics: Metrics,
        queries: QueryHandle,
    ) -> Option<Self> {
        metrics.replace(wanted.map(|wanted| wanted.metrics.as_slice()).unwrap_or_default());
        let wanted = wanted?;
        let address = SocketAddr::new(wanted.address, wanted.port);
        if let Some(current) = current.as_ref().filter(|current| current.wanted == address) {
            current.page.send_if_modified(|page| {
                let changed = *page != wanted.page;
                page.clone_from(&wanted.page);
                changed
            });
        }
        if current.as_ref().is_some_and(|current| current.wanted == address) {
            return current;
        }
        drop(current);
        let (shutdown, mut shutdown_requested) = watch::channel(());
        let (page, settings) = watch::channel(wanted.page.clone());
        let wanted = wanted.clone();
        net.spawn(async move {
            let mut attempts = 0_u32;
            let mut reported = None;
            let server = loop {
                let server = |listener| {
                    let (metrics, queries) = (metrics.clone(), queries.clone());
                    server(listener, metrics, queries, settings.clone(), shutdown_requested.clone())
                        .map_err(|source| ListenError { address, source })
                };
                match listen(&wanted).and_then(server) {
                    Ok(server) => break server,
                    Err(error) => {
                        let error = error.to_string();
                        if attempts == QUIET_ATTEMPTS {
                            queries.log(Level::Error, format!("{error}; retrying every second"));
                        }
                        if reported.as_ref() != Some(&error) {
                            queries.telemetry_listens(address, Err(error.clone()));
                            reported = Some(error);
                        }
                    }
                }
                let pause = if attempts < QUIET_ATTEMPTS { QUIET_INTERVAL } else { RETRY_INTERVAL };
                attempts = attempts.saturating_add(1);
                tokio::select! {
                    _ = shutdown_requested.changed() => return,
                    () = sleep(pause) => {}
                }
            };
            queries.telemetry_listens(address, Ok(()));
            server.await;
        });
        Some(Self { wanted: address, page, _shutdown: shutdown })
    }
}

/// A server on a listener; logs its address.
fn server(
    listener: TcpListener,
    metrics: Metrics,
    queries: QueryHandle,
    page: watch::Receiver<Option<plan::Page>>,
    shutdown: watch::Receiver<()>,
) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    let address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    queries.log(Level::Info, format!("telemetry: serving at {address}"));
    let pages = Pages::new(metrics, queries, page, shutdown.clone());
    Ok(serve(Listener::Tcp(listener), ServerLimits::TELEMETRY, pages, shutdown))
}

/// The handler of the telemetry server.
struct Pages {
    metrics: Metrics,
    queries: QueryHandle,
    latest: Mutex<Option<(Instant, Arc<Snapshot>)>>,
    page: PageServer,
}

impl Handler for Pages {
    async fn handle(&self, request: ServerRequest) -> ServerResponse {
        let path = request.head.uri.path();
        let is_page = self.page.is_on() && PageServer::has(path);
        if !is_page && !["/metrics", "/status", "/livez", "/readyz"].contains(&path) {
            return error(StatusCode::NOT_FOUND, "known paths are /metrics, /status, /livez and /readyz");
        }
        if ![Method::GET, Method::HEAD].contains(&request.head.method) {
            return method_not_allowed("GET, HEAD");
        }
        if is_page {
            return self.page.respond(&request.head).await;
        }
        if ["/metrics", "/status"].contains(&path)
            && let Some(refusal) = self.page.refuses_name(&request.head)
        {
            return refusal;
        }
        let Ok(Some(snapshot)) = timeout(QUERY_TIMEOUT, self.snapshot()).await else {
            let reason = format!("the supervisor did not answer within {}s", QUERY_TIMEOUT.as_secs());
            return error(StatusCode::SERVICE_UNAVAILABLE, &reason);
        };
        match path {
            "/metrics" => ok(exposition::CONTENT_TYPE, self.metrics.page(&snapshot).text()),
            "/status" => ok(JSON, status::page(&snapshot, VERSION)),
            "/readyz" => match snapshot.overview.not_ready().as_slice() {
                [] => ok(TEXT, "ready\n"),
                reasons => error(StatusCode::SERVICE_UNAVAILABLE, &reasons.join("\n")),
            },
            // `/livez`: the event loop has replied.
            _ => ok(TEXT, "alive\n"),
        }
    }
}

impl Pages {
    fn new(
        metrics: Metrics,
        queries: QueryHandle,
        page: watch::Receiver<Option<plan::Page>>,
        shutdown: watch::Receiver<()>,
    ) -> Self {
        let page = PageServer::new(page, queries.clone(), metrics.tails.clone(), shutdown);
        Self { metrics, queries, latest: Mutex::new(None), page }
    }

    /// A snapshot that is at most [`SNAPSHOT_LIFETIME`] old; `None` if the event loop has exited.
    async fn snapshot(&self) -> Option<Arc<Snapshot>> {
        let mut latest = self.latest.lock().await;
        if let Some((at, snapshot)) = &*latest
            && at.elapsed() < SNAPSHOT_LIFETIME
        {
            return Some(Arc::clone(snapshot));
        }
        let snapshot = self.queries.overview().await?;
        *latest = Some((Instant::now(), Arc::clone(&snapshot)));
        Some(snapshot)
    }
}

#[cfg(test)]
mod tests;
