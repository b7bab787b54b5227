//! One output of the log and the thread that writes it: the log of the supervisor, or the file of a job (L8).

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use super::Shared;
use super::log_thread::LogWorker;
use super::output::write_stderr;
use super::queue::{QueuedEntry, Work};

/// After this many panics the log thread gives up.
const MAX_PANICS: u32 = 100;
const PANICKED: &str = "internal error on the log thread: lines may be lost; please report it";
const UNFINISHED: &str = "the log could not be finished in time: lines may be lost";
/// How long after its deadline the log thread may take to finish.
const GRACE: Duration = Duration::from_millis(100);

/// An output and its thread.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) shared: Arc<Shared>,
    /// The state of the log thread. The thread locks it except while it waits for the pipes.
    pub(super) worker: Arc<Mutex<LogWorker>>,
    /// Whether the thread was waited for in vain.
    pub(super) stuck: Arc<AtomicBool>,
    /// Whether the thread is started.
    started: AtomicBool,
}

impl Channel {
    pub(super) fn new(worker: LogWorker) -> Self {
        let (shared, stuck) = (Arc::clone(worker.shared()), Arc::clone(worker.stuck()));
        Self { shared, stuck, worker: Arc::new(Mutex::new(worker)), started: AtomicBool::new(false) }
    }

    pub(super) fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Starts the thread if it is not running.
    pub(super) fn start(&self) -> io::Result<()> {
        if self.started.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (worker, shared) = (Arc::clone(&self.worker), Arc::clone(&self.shared));
        let started = std::thread::Builder::new().name("logs".into()).spawn(move || {
            run(&worker, &shared);
            drop(LogWorker::take_retired(&worker));
        });
        started.map(drop).inspect_err(|_| self.started.store(false, Ordering::Relaxed))
    }

    /// Queues work and wakes the thread.
    pub(super) fn push_work(&self, work: Work) {
        self.shared.queue.push_work(work);
        self.shared.queue.wake();
    }

    /// Writes everything: on this thread if the log thread is waiting or was never started, because two thread switches
    /// take longer than the writing.
    pub(super) fn write_all(&self, deadline: Instant, last: Option<QueuedEntry>) -> bool {
        self.shared.queue.push_work(Work::Finish(deadline, last));
        let idle = match self.worker.try_lock() {
            Ok(worker) => Some(worker),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut worker) = idle {
            match catch_unwind(AssertUnwindSafe(|| worker.finish_now(deadline))) {
                Ok(all_written) => return all_written,
                Err(_) => write_stderr(PANICKED),
            }
        }
        self.shared.queue.wake();
        self.wait_finished(deadline)
    }

    /// Waits until the thread has written everything.
    pub(super) fn wait_finished(&self, deadline: Instant) -> bool {
        self.shared.queue.wait_finished(deadline + GRACE).unwrap_or_else(|| {
            // The thread is stuck in a write, for example to a disk that does not answer.
            write_stderr(UNFINISHED);
            false
        })
    }
}

impl Drop for Channel {
    /// Stops the log thread.
    fn drop(&mut self) {
        self.push_work(Work::Finish(Instant::now(), None));
    }
}

/// The log thread.
fn run(worker: &Mutex<LogWorker>, shared: &Shared) {
    for _ in 0..MAX_PANICS {
        // The thread must survive a panic: jobs would get SIGPIPE if their pipes were closed.
        match catch_unwind(AssertUnwindSafe(|| LogWorker::run(worker))) {
            Ok(all_written) => return shared.queue.set_finished(all_written),
            Err(_) => write_stderr(PANICKED),
        }
    }
    shared.queue.set_finished(false);
}
