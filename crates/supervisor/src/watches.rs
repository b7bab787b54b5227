//! Watches that need no catalog (D13): peers, names and files.
//!
//! `tcp`, `http` and `dns` are polled by tasks on the network thread (`poll`), which share the timers of its runtime.
//! Files are followed with inotify on a thread of their own (`files`), because a file system may not answer. Both only
//! report the current state to the event loop when it has changed; the core decides what is an event.

mod files;
mod find_file;
mod poll;

use std::io;
use std::sync::Arc;

use containerpilot_core::ids::WatchIx;
use containerpilot_core::input::WatchResult;
use containerpilot_core::plan::{Plan, Watch, WatchKind};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use self::files::FileWatches;
use self::poll::{CONCURRENT_POLLS, PollTask};
use crate::messages::{LoopMessage, LoopSender};

/// A watch that is followed, and where its answers go.
#[derive(Clone, Debug)]
struct Followed {
    watch: Arc<Watch>,
    /// The index when it was first followed. The loop finds the watch if a reload has moved it.
    ix: WatchIx,
    sender: LoopSender,
}

impl Followed {
    fn tell(&self, answer: WatchResult) {
        self.sender.send(LoopMessage::Watched(Arc::clone(&self.watch), self.ix, answer));
    }
}

/// The event loop's handle of all watches that need no catalog.
#[derive(Debug)]
pub(crate) struct LocalWatches {
    polled: Vec<(Followed, AbortHandle)>,
    polls: Arc<Semaphore>,
    files: Option<FileWatches>,
    /// True if the watches of the last plan are followed.
    is_current: bool,
}

impl Default for LocalWatches {
    fn default() -> Self {
        let polls = Arc::new(Semaphore::new(CONCURRENT_POLLS));
        Self { polled: Vec::new(), polls, files: None, is_current: true }
    }
}

impl LocalWatches {
    /// Whether a plan has watches that are polled on the network thread.
    pub(crate) fn needs_network(plan: &Plan) -> bool {
        plan.watches.iter().any(|watch| is_polled(&watch.kind))
    }

    /// Whether all watches of the last plan are followed.
    pub(crate) fn is_current(&self) -> bool {
        self.is_current
    }

    /// Follows the watches of a plan, at the start or after a reload. Those that have not changed go on. Without the
    /// runtime of the network thread, polled watches stay as they were.
    pub(crate) fn follow(
        &mut self,
        plan: &Plan,
        runtime: Option<&Handle>,
        sender: &LoopSender,
    ) -> io::Result<()> {
        self.is_current = false;
        let followed = |nth: usize, watch: &Watch| Followed {
            watch: Arc::new(watch.clone()),
            ix: WatchIx::at(nth),
            sender: sender.clone(),
        };
        let watches = || plan.watches.iter().enumerate();
        self.polled.retain(|(followed, task)| {
            let is_kept = plan.watches.contains(&followed.watch);
            if !is_kept {
                task.abort();
            }
            is_kept
        });
        let is_new = |watch: &Watch, known: &[(Followed, AbortHandle)]| {
            !known.iter().any(|(followed, _)| *followed.watch == *watch)
        };
        for (nth, watch) in watches().filter(|(_, watch)| is_polled(&watch.kind)) {
            if let Some(runtime) = runtime.filter(|_| is_new(watch, &self.polled)) {
                let followed = followed(nth, watch);
                let task = PollTask::new(followed.clone(), Arc::clone(&self.polls));
                self.polled.push((followed, runtime.spawn(task.run()).abort_handle()));
            }
        }
        let files = watches().filter_map(|(nth, watch)| match &watch.kind {
            WatchKind::File { path } => Some((path.clone(), followed(nth, watch))),
            _ => None,
        });
        let files: Vec<_> = files.collect();
        if !files.is_empty() && self.files.is_none() {
            self.files = Some(FileWatches::start()?);
        }
        if let Some(thread) = &self.files {
            thread.follow(files);
        }
        self.is_current = runtime.is_some() || !Self::needs_network(plan);
        Ok(())
    }
}

fn is_polled(kind: &WatchKind) -> bool {
    match kind {
        WatchKind::Tcp { .. } | WatchKind::Http(_) | WatchKind::Dns { .. } => true,
        WatchKind::Service { .. }
        | WatchKind::File { .. }
        | WatchKind::Key { .. }
        | WatchKind::Prefix { .. } => false,
    }
}
