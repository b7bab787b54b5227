//! The control socket: HTTP on a unix socket, for watching and controlling a running supervisor (X1, X2).
//!
//! The socket listens before the first job starts (E4). Until its first connection the event loop polls it; then the
//! network thread is started and takes over the listener. After that the loop receives queries and requests, never
//! connections.
//!
//! `socket` creates the file, `routes` maps paths to endpoints, `bodies` parses request bodies, `endpoints` handles
//! requests, `events` streams events, `responses` defines the JSON of the responses, `render` fills it in.

mod bodies;
mod endpoints;
mod events;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod render;
mod routes;
pub(crate) mod socket;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use containerpilot_core::plan;
use containerpilot_process::sys;
use tokio::sync::watch;

use self::endpoints::ControlApi;
use self::socket::{SocketError, SocketFile};
use crate::logs::Tails;
use crate::messages::query_handle::QueryHandle;
use crate::net::Net;
use crate::net::server::{Listener, ServerLimits, serve};
use crate::telemetry::Metrics;

/// The event loop's part of the control socket.
#[derive(Debug)]
pub(crate) struct ControlServer {
    plan: plan::Control,
    file: SocketFile,
    /// Whether the file's mode lets users other than its owner write.
    open_to_others: Arc<AtomicBool>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// No client has connected yet.
    Listening(UnixListener),
    /// The network thread has the listener.
    Served { shutdown: watch::Sender<()>, finished: mpsc::Receiver<()> },
}

fn is_open_to_others(plan: &plan::Control) -> bool {
    plan.mode & 0o022 != 0
}

/// What the control socket's endpoints need from the rest of the supervisor.
pub(crate) struct ControlHandles {
    pub(crate) queries: QueryHandle,
    pub(crate) metrics: Metrics,
    pub(crate) tails: Tails,
}

impl ControlServer {
    /// Listens on the socket of a plan.
    pub(crate) fn open(plan: &plan::Control) -> Result<Self, SocketError> {
        Self::listen(plan, socket::LOCK_TIMEOUT)
    }

    fn listen(plan: &plan::Control, lock_timeout: Duration) -> Result<Self, SocketError> {
        let (listener, file) = socket::open(plan, lock_timeout)?;
        let open_to_others = Arc::new(AtomicBool::new(is_open_to_others(plan)));
        Ok(Self { plan: plan.clone(), file, open_to_others, state: State::Listening(listener) })
    }

    /// R3: applies another plan. At another path the new socket listens before the old one is removed; requests on the
    /// old one get their complete response. If the plan cannot be applied, the socket stays as it is.
    pub(crate) fn follow(current: &mut Option<Self>, wanted: &plan::Control) -> Result<(), SocketError> {
        match current {
            Some(current) if current.plan.socket == wanted.socket => {
                if (current.plan.mode, &current.plan.group) != (wanted.mode, &wanted.group) {
                    current.file.set_permissions(wanted)?;
                    current.open_to_others.store(is_open_to_others(wanted), Ordering::Relaxed);
                }
                current.plan = wanted.clone();
            }
            // The event loop must not wait for the lock.
            _ => {
                if let Some(old) = current.replace(Self::listen(wanted, Duration::ZERO)?) {
                    old.unlink()?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &str {
        &self.plan.socket
    }

    /// The descriptor to poll until the first connection; -1 afterwards.
    pub(crate) fn poll_fd(&self) -> RawFd {
        match &self.state {
            State::Listening(listener) => listener.as_raw_fd(),
            State::Served { .. } => -1,
        }
    }

    /// Passes the listener to the network thread, at the first connection. If that fails, the socket keeps listening.
    pub(crate) fn serve(&mut self, net: &Net, handles: ControlHandles) -> io::Result<()> {
        let State::Listening(listener) = &self.state else { return Ok(()) };
        // A failed registration closes the descriptor that it was given.
        let listener = listener.try_clone()?;
        let listener = {
            // Registers the listener with the network thread's runtime.
            let _entered = net.handle().enter();
            tokio::net::UnixListener::from_std(listener)?
        };
        let api = ControlApi {
            handles,
            own_uid: sys::effective_ids().0,
            open_to_others: Arc::clone(&self.open_to_others),
        };
        let (shutdown, shutdown_requested) = watch::channel(());
        let (finished_sender, finished) = mpsc::channel();
        net.spawn(async move {
            serve(Listener::Unix(listener), ServerLimits::CONTROL, api, shutdown_requested).await;
            drop(finished_sender);
        });
        self.state = State::Served { shutdown, finished };
        Ok(())
    }

    /// S6: removes the socket's file.
    pub(crate) fn unlink(&self) -> Result<(), SocketError> {
        self.file.remove()
    }

    /// Waits until every request in progress has its response, at most until the deadline.
    pub(crate) fn finish(self, deadline: Instant) {
        if let State::Served { shutdown, finished } = self.state {
            drop(shutdown);
            // Nothing is sent: the receiver is disconnected when the server has finished.
            let _ = finished.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }
}
