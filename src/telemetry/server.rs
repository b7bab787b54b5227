//! The server: four pages over HTTP, on the network's thread (T1).
//!
//! Each page is made from a [`Snapshot`] that the loop is asked for. One question is under way at a time, and its answer
//! serves whoever asks within a moment: however many peers there are, the loop is asked ten times a second at most.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use containerpilot_core::plan::{self, Level};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};

use super::exposition::{self, Page};
use super::process::Process;
use super::{Metrics, readiness, self_metrics, status};
use crate::net::serve::{self, Answer, Answering, Asked, First, Limits, Listener, Response, Status};
use crate::net::{Net, Used};
use crate::runtime::query::{QueryHandle, Snapshot};

/// How long the loop may take to answer. It does so at once, unless something is very wrong.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer of the loop serves others, too.
const FRESH: Duration = Duration::from_millis(100);
/// Prometheus, its double and a few probes; a request is a head and nothing else.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(10),
    request: Duration::from_secs(20),
    stall: Duration::from_secs(10),
    body: 16 * 1024,
    connections: 64,
    streams: 0,
    persistent: true,
};

/// After a reload the old listener may need a moment to be gone: how often and how fast a new one is tried quietly.
const FAST_TRIES: u32 = 10;
const FAST: Duration = Duration::from_millis(50);

/// The version on the pages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A listener where the plan wants one, or what stands in its way and what to do about it.
fn listen(wanted: &plan::Telemetry) -> Result<TcpListener, String> {
    let address = SocketAddr::new(wanted.address, wanted.port);
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|error| {
        let what_to_do = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "stop whatever listens there, or choose another `port` under `telemetry`"
            }
            std::io::ErrorKind::PermissionDenied => "choose a `port` of 1024 or above under `telemetry`",
            std::io::ErrorKind::AddrNotAvailable => {
                "choose an address that this machine has with `interfaces` under `telemetry`"
            }
            _ => "look at `port` and `interfaces` under `telemetry`",
        };
        let words = nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or_default()).desc();
        format!("telemetry cannot listen on {address}: {words}; {what_to_do}")
    })
}

/// The server, as the loop holds it. Dropped, it takes no more connections.
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// Where the plan wants it; port 0 is any.
    wanted: SocketAddr,
    /// Its end is the server's.
    _end: watch::Sender<()>,
}

impl Telemetry {
    /// Listens where the plan wants it, and serves. What stands in the way is told in words.
    pub(crate) fn open(
        wanted: &plan::Telemetry,
        net: &Net,
        metrics: Metrics,
        desk: QueryHandle,
    ) -> Result<Self, String> {
        let listener = listen(wanted)?;
        let (end, ended) = watch::channel(());
        let telemetry = Self { wanted: SocketAddr::new(wanted.address, wanted.port), _end: end };
        let serving = {
            // The listener must be made known to the thread's own poller.
            let _entered = net.handle().enter();
            serving(listener, metrics, desk, net.used(), ended)?
        };
        net.spawn(serving);
        Ok(telemetry)
    }

    /// R3: what a server becomes with another plan. It stays if it is wanted where it is; otherwise it ends, and the new
    /// one listens as soon as its address is free, which may take a moment or somebody's help, and never ends the reload.
    pub(crate) fn follow(
        now: Option<Self>,
        wanted: Option<&plan::Telemetry>,
        net: &Net,
        metrics: Metrics,
        desk: QueryHandle,
    ) -> Option<Self> {
        metrics.replace(wanted.map(|wanted| wanted.metrics.as_slice()).unwrap_or_default());
        let wanted = wanted?;
        let address = SocketAddr::new(wanted.address, wanted.port);
        if now.as_ref().is_some_and(|now| now.wanted == address) {
            return now;
        }
        drop(now);
        let (end, mut ended) = watch::channel(());
        let (wanted, used) = (wanted.clone(), net.used());
        net.spawn(async move {
            let mut tries = 0_u32;
            let listener = loop {
                match listen(&wanted) {
                    Ok(listener) => break listener,
                    Err(why) if tries == FAST_TRIES => {
                        desk.log(Level::Error, format!("{why}; until then it is tried every second"));
                    }
                    Err(_) => {}
                }
                let pause = if tries < FAST_TRIES { FAST } else { Duration::from_secs(1) };
                tries = tries.saturating_add(1);
                if let First::One(_) = serve::first(ended.changed(), sleep(pause)).await {
                    return;
                }
            };
            match serving(listener, metrics, desk.clone(), used, ended) {
                Ok(serving) => serving.await,
                Err(why) => desk.log(Level::Error, why),
            }
        });
        Some(Self { wanted: address, _end: end })
    }
}

/// The server on a listener, which says where that is.
fn serving(
    listener: TcpListener,
    metrics: Metrics,
    desk: QueryHandle,
    used: Used,
    ended: watch::Receiver<()>,
) -> Result<impl Future<Output = ()> + Send + use<>, String> {
    let cannot = |error: std::io::Error| format!("telemetry cannot be served: {error}");
    let address = listener.local_addr().map_err(cannot)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
    desk.log(Level::Info, format!("telemetry: serving at {address}"));
    Ok(serve::serve(Listener::Tcp(listener), LIMITS, Box::new(Pages::new(metrics, desk)), used, ended))
}

/// Who answers.
struct Pages {
    metrics: Metrics,
    desk: QueryHandle,
    last: Mutex<Option<(Instant, Arc<Snapshot>)>>,
}

impl Answer for Pages {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.respond(asked))
    }
}

impl Pages {
    async fn respond(&self, asked: Asked) -> Response {
        let path = asked.request.path.as_str();
        if !["/metrics", "/status", "/livez", "/readyz"].contains(&path) {
            let reason = "there are /metrics, /status, /livez and /readyz";
            return serve::error(Status::NOT_FOUND, reason);
        }
        // The body of an answer to HEAD is left out on its way.
        if !matches!(asked.request.method.as_str(), "GET" | "HEAD") {
            return serve::wrong_method("GET, HEAD");
        }
        let Ok(snapshot) = timeout(PATIENCE, self.snapshot()).await.unwrap_or(Err(Gone)) else {
            let reason = format!("the supervisor did not answer within {} s", PATIENCE.as_secs());
            return serve::error(Status::SERVICE_UNAVAILABLE, &reason);
        };
        match path {
            "/metrics" => Response::new(exposition::CONTENT_TYPE, self.metrics(&snapshot)),
            "/status" => Response::new("application/json", status::page(&snapshot, VERSION)),
            "/readyz" => match readiness::obstacles(&snapshot) {
                obstacles if obstacles.is_empty() => Response::new(TEXT, "ready\n".to_owned()),
                obstacles => serve::error(Status::SERVICE_UNAVAILABLE, obstacles.trim_end()),
            },
            // The loop has answered, and that is all there is to say.
            _ => Response::new(TEXT, "alive\n".to_owned()),
        }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The loop is not there any more.
struct Gone;

impl Pages {
    fn new(metrics: Metrics, desk: QueryHandle) -> Self {
        Self { metrics, desk, last: Mutex::new(None) }
    }

    /// How everything is, or was a moment ago.
    async fn snapshot(&self) -> Result<Arc<Snapshot>, Gone> {
        let mut last = self.last.lock().await;
        if let Some((at, snapshot)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(snapshot));
        }
        let snapshot = self.desk.overview().await.ok_or(Gone)?;
        *last = Some((Instant::now(), Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    fn metrics(&self, snapshot: &Snapshot) -> String {
        let process = Process::look();
        let mut page = Page::default();
        let now = self.metrics.began.elapsed();
        let mut shared = self.metrics.shared();
        // Our own come first: whoever defines a metric of the same name does not take ours away.
        self_metrics::show(&mut page, snapshot, &shared, VERSION, &process);
        shared.store.show(&mut page, now);
        drop(shared);
        page.text()
    }
}

#[cfg(test)]
mod tests;
