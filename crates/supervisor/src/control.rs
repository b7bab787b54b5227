//! The control socket: HTTP on a unix socket, for watching and controlling a running supervisor (X1, X2).
//!
//! The socket listens before the first job starts (E4). Until its first connection the event loop polls it; then the
//! network thread is started and takes over the listener. After that the loop receives queries and requests, never
//! connections.
//!
//! `socket` creates the file, `access` decides who may use it, `routes` maps paths to endpoints, `bodies` parses
//! request bodies, `endpoints` handles requests, `events` streams events, `render` fills in the responses. The JSON of
//! these is defined in `crates/api/src/responses.rs`, because the commands read it.

mod access;
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
use std::sync::mpsc;
use std::time::{Duration, Instant};

use containerpilot_core::plan;
use tokio::sync::watch;

use self::access::Access;
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
    access: Access,
    state: State,
}

#[derive(Debug)]
enum State {
    /// No client has connected yet.
    Listening(UnixListener),
    /// The network thread has the listener.
    Served { shutdown: watch::Sender<()>, finished: mpsc::Receiver<()> },
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
        Ok(Self { plan: plan.clone(), file, access: Access::new(plan), state: State::Listening(listener) })
    }

    /// R3: applies another plan. At another path the new socket listens before the old one is removed; requests on the
    /// old one get their complete response. If the plan cannot be applied, the socket stays as it is.
    pub(crate) fn follow(current: &mut Option<Self>, wanted: &plan::Control) -> Result<(), SocketError> {
        match current {
            Some(current) if current.plan.socket == wanted.socket => {
                if (current.plan.mode, &current.plan.group) != (wanted.mode, &wanted.group) {
                    current.file.set_permissions(wanted)?;
                    current.access.follow(wanted);
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
        let api = ControlApi { handles, access: self.access.clone() };
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
