//! The control plane: HTTP on a unix socket, by which a running supervisor is watched and steered (X1, X2).
//!
//! The socket listens before the first job starts (E4), and costs no more than that: the loop waits for its first
//! connection beside everything else, and only then is the network's thread started and given the listener. From then
//! on the loop hears nothing of connections, only questions and wishes (see `inquiry`).
//!
//! `socket` makes the file, `routes` says which path means what, `endpoints` does it, `events` streams, `render` has
//! the forms of the answers.

mod endpoints;
mod events;
mod render;
mod routes;
mod socket;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Instant;

use containerpilot_core::plan;
use tokio::sync::watch;

use self::endpoints::Plane;
use self::socket::SocketFile;
use crate::inquiry::Desk;
use crate::logs::Tails;
use crate::net::Net;
use crate::net::serve::{Limits, serve};
use crate::sys;
use crate::telemetry::Metrics;

/// The control socket, as the loop holds it.
#[derive(Debug)]
pub(crate) struct Control {
    file: SocketFile,
    /// Whether somebody has opened it to more than its owner.
    opened: bool,
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

/// What the control plane speaks with.
pub(crate) struct Means {
    pub(crate) desk: Desk,
    pub(crate) metrics: Metrics,
    pub(crate) tails: Tails,
}

impl Control {
    /// Listens on the socket that a plan asks for. What stands in the way is said in words.
    pub(crate) fn open(plan: &plan::Control) -> Result<Self, String> {
        let (listener, file) = socket::open(plan).map_err(|refusal| refusal.message)?;
        Ok(Self { file, opened: plan.mode & 0o022 != 0, stage: Stage::Waiting(listener) })
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
        let plane = Plane { desk, metrics, tails, own_user: sys::effective_ids().0, opened: self.opened };
        // 3.8 closes every connection after its answer, and scripts read to the end.
        let limits = Limits { persistent: false, ..Limits::default() };
        let (end, ending) = watch::channel(());
        let (tell_ended, ended) = mpsc::channel();
        net.spawn(async move {
            serve(listener, limits, plane, ending).await;
            drop(tell_ended);
        });
        self.stage = Stage::Served { end, ended };
        Ok(())
    }

    /// S6: nobody finds the socket any more.
    pub(crate) fn unlink(&self) {
        self.file.remove();
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
