//! Messages from other threads to the event loop.
//!
//! Everything that waits for the network or a disk runs on its own thread and sends its results here.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use containerpilot_core::ids::{JobIx, WatchIx};
use containerpilot_core::input::Instance;
use containerpilot_core::plan::{Level, Watch};

use crate::process::orphans::Report;
use crate::process::sys::Waker;
use crate::runtime::query::Query;
use crate::runtime::reload::Loaded;

/// A message from another thread.
#[derive(Debug)]
pub(crate) enum LoopMessage {
    /// The addresses of a host that checks wait for, or the error of the look-up.
    Resolved(String, Result<Vec<IpAddr>, String>),
    /// The instances that a watch has found, with the watch's index when it started.
    WatchResult(Arc<Watch>, WatchIx, Vec<Instance>),
    /// A service was deregistered: its id, and its job's index when that was requested.
    Deregistered(String, JobIx),
    /// The result of loading a configuration for a reload.
    Loaded(Box<Loaded>),
    /// What was found out about orphans.
    OrphansRead(Report),
    /// A log entry.
    Log(Level, String),
    /// A query, with the channel for its reply.
    Query(Query),
}

/// The receiving end, in the loop.
#[derive(Debug)]
pub(crate) struct LoopReceiver {
    receiver: Receiver<LoopMessage>,
    sender: Sender<LoopMessage>,
    waker: Arc<Waker>,
}

/// The sending end, in other threads.
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

    pub(crate) fn sender(&self) -> LoopSender {
        LoopSender { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }

    /// Readable when there are messages.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// Takes all messages that have arrived.
    pub(crate) fn take(&self) -> impl Iterator<Item = LoopMessage> {
        self.waker.clear();
        self.receiver.try_iter()
    }
}

impl LoopSender {
    /// Sends a message. Returns false if the loop has ended.
    pub(crate) fn send(&self, message: LoopMessage) -> bool {
        let sent = self.sender.send(message).is_ok();
        if sent {
            self.waker.wake();
        }
        sent
    }
}
