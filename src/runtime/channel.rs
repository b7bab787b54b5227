//! What other threads have to say to the loop.
//!
//! This is the seam for everything that waits on the network: it lives on threads of its own, with whatever
//! machinery it likes, and sends what it has found out.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use containerpilot_core::ids::{CheckRunId, JobIx, WatchIx};
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Level, Watch};

use crate::process::sys::Waker;
use crate::runtime::query::Query;
use crate::runtime::reload::Loaded;

/// LoopMessage from another thread.
#[derive(Debug)]
pub(crate) enum LoopMessage {
    /// The addresses of a check's host, or why there are none.
    Resolved(CheckRunId, Result<Vec<SocketAddr>, String>),
    /// What a watch sees, where it was in the plan when it began to look.
    Seen(Arc<Watch>, WatchIx, Vec<Instance>),
    /// A service is out of the catalog: its id, and where its job was in the plan when that was asked for.
    Withdrawn(String, JobIx),
    /// A configuration was loaded for a reload, or could not be.
    Loaded(Box<Loaded>),
    /// Something for the log.
    Said(Level, String),
    /// A question, with the way back for its answer.
    Query(Query),
}

/// The loop's end.
#[derive(Debug)]
pub(crate) struct LoopReceiver {
    receiver: Receiver<LoopMessage>,
    sender: Sender<LoopMessage>,
    waker: Arc<Waker>,
}

/// The other threads' end.
#[derive(Clone, Debug)]
pub(crate) struct LoopSender {
    sender: Sender<LoopMessage>,
    waker: Arc<Waker>,
}

impl LoopReceiver {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        Ok(Self { receiver, sender, waker: Arc::new(Waker::new()?) })
    }

    /// An end for another thread.
    pub(crate) fn sender(&self) -> LoopSender {
        LoopSender { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }

    /// Ready when there is news.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// The news that have come.
    pub(crate) fn take(&self) -> impl Iterator<Item = LoopMessage> {
        self.waker.clear();
        self.receiver.try_iter()
    }
}

impl LoopSender {
    /// Sends news. Says whether somebody will read it: nobody does any more when the supervisor is leaving.
    pub(crate) fn send(&self, news: LoopMessage) -> bool {
        let sent = self.sender.send(news).is_ok();
        if sent {
            self.waker.wake();
        }
        sent
    }
}
