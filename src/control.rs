//! The control log_thread: HTTP on a unix socket, by which a running supervisor is watched and steered (X1, X2).
//!
//! The socket listens before the first job starts (E4), and costs no more than that: the loop waits for its first
//! connection beside everything else, and only then is the network's thread started and given the listener. From then
//! on the loop hears nothing of connections, only questions and wishes (see `inquiry`).
//!
//! `socket` makes the file, `routes` says which path means what, `bodies` what is asked for, `endpoints` does it,
//! `events` streams, `render` has the forms of the answers.

mod bodies;
mod endpoints;
mod events;
pub(crate) mod fuzz;
mod render;
mod routes;
mod socket;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use containerpilot_core::plan;
use tokio::sync::watch;

use self::endpoints::Plane;
use self::socket::SocketFile;
use crate::logs::Tails;
use crate::net::Net;
use crate::net::serve::{Limits, Listener, serve};
use crate::process::sys;
use crate::runtime::query::QueryHandle;
use crate::telemetry::Metrics;

/// The control socket, as the loop holds it.
#[derive(Debug)]
pub(crate) struct Control {
    /// How it is wanted.
    plan: plan::Control,
    file: SocketFile,
    /// Whether somebody has opened it to more than its owner.
    opened: Arc<AtomicBool>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Nobody has connected yet.
    Waiting(UnixListener),
    /// The network's thread has it.
    Served { end: watch::Sender<()>, ended: mpsc::Receiver<()> },
    /// It could not be served.
    Closed,
}

fn is_open(plan: &plan::Control) -> bool {
    plan.mode & 0o022 != 0
}

/// What the control log_thread speaks with.
pub(crate) struct Means {
    pub(crate) desk: QueryHandle,
    pub(crate) metrics: Metrics,
    pub(crate) tails: Tails,
}

impl Control {
    /// Listens on the socket that a plan asks for. What stands in the way is said in words.
    pub(crate) fn open(plan: &plan::Control) -> Result<Self, String> {
        Self::listen(plan, socket::NEIGHBOUR)
    }

    fn listen(plan: &plan::Control, write_timeout: Duration) -> Result<Self, String> {
        let (listener, file) = socket::open(plan, write_timeout).map_err(|refusal| refusal.message)?;
        let opened = Arc::new(AtomicBool::new(is_open(plan)));
        Ok(Self { plan: plan.clone(), file, opened, stage: Stage::Waiting(listener) })
    }

    /// R3: what a socket becomes with another plan. At another path there is a new one before the old one goes; whoever
    /// is being answered on the old one is answered to the end. If it cannot be as it is wanted, it stays as it is.
    pub(crate) fn follow(now: &mut Option<Self>, wanted: &plan::Control) -> Result<(), String> {
        match now {
            Some(now) if now.plan.socket == wanted.socket => {
                let (mode, group) = (wanted.mode, &wanted.group);
                if (now.plan.mode, &now.plan.group) != (mode, group) {
                    now.file.resettle(wanted).map_err(|error| {
                        format!("the control socket {} keeps its group and mode: {error}", wanted.socket)
                    })?;
                    now.opened.store(is_open(wanted), Ordering::Relaxed);
                }
                now.plan = wanted.clone();
            }
            // The loop waits for nobody.
            _ => {
                if let Some(old) = now.replace(Self::listen(wanted, Duration::ZERO)?) {
                    old.unlink()?;
                }
            }
        }
        Ok(())
    }

    /// What the loop has to wait for until the first connection; a negative number afterwards.
    pub(crate) fn awaited(&self) -> RawFd {
        match &self.stage {
            Stage::Waiting(listener) => listener.as_raw_fd(),
            Stage::Served { .. } | Stage::Closed => -1,
        }
    }

    /// Somebody has connected: from now on the network's thread serves.
    pub(crate) fn serve(&mut self, net: io::Result<&Net>, means: Means) -> io::Result<()> {
        let Stage::Waiting(listener) = std::mem::replace(&mut self.stage, Stage::Closed) else {
            return Ok(());
        };
        let net = net?;
        // The listener must be made known to the thread's own poller.
        let entered = net.handle().enter();
        let listener = tokio::net::UnixListener::from_std(listener)?;
        drop(entered);
        let Means { desk, metrics, tails } = means;
        let log_thread = Plane {
            desk,
            metrics,
            tails,
            own_user: sys::effective_ids().0,
            opened: Arc::clone(&self.opened),
        };
        // 3.8 closes every connection after its answer, and scripts read to the end.
        let limits = Limits { persistent: false, ..Limits::default() };
        let (end, ending) = watch::channel(());
        let (tell_ended, ended) = mpsc::channel();
        let used = net.used();
        net.spawn(async move {
            serve(Listener::Unix(listener), limits, Box::new(log_thread), used, ending).await;
            drop(tell_ended);
        });
        self.stage = Stage::Served { end, ended };
        Ok(())
    }

    /// S6: nobody finds the socket any more. What stands in the way is said in words.
    pub(crate) fn unlink(&self) -> Result<(), String> {
        let left = |error| format!("the control socket {} could not be removed: {error}", self.plan.socket);
        self.file.remove().map_err(left)
    }

    /// Waits until all who were being answered are, though not beyond the deadline.
    pub(crate) fn finish(self, deadline: Instant) {
        if let Stage::Served { end, ended } = self.stage {
            drop(end);
            // Nothing is ever sent: it is the end of the sender that is waited for.
            let _ = ended.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }
}
