//! What waits to be sent, between the threads. Pushing takes a lock for a moment and never waits for the network.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use containerpilot_otlp::{Batch, Buffer};
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Outbox {
    buffer: Mutex<Buffer>,
    /// Notified when there is something to send, and when there is enough for a request.
    changed: Notify,
    /// Items that were taken and neither sent nor dropped.
    in_progress: AtomicU64,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: Mutex::new(Buffer::new(limit)),
            changed: Notify::new(),
            in_progress: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        // After a panic the batch that was being written may have a broken item; the collector refuses that batch.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds items.
    pub(super) fn push(&self, write: impl FnOnce(&mut Buffer)) {
        let mut buffer = self.lock();
        let before = (buffer.is_empty(), buffer.has_complete());
        write(&mut buffer);
        let after = (buffer.is_empty(), buffer.has_complete());
        drop(buffer);
        if before != after {
            self.changed.notify_one();
        }
    }

    pub(super) fn take(&self) -> Option<Batch> {
        let batch = self.lock().take();
        let items = batch.as_ref().map_or(0, |batch| batch.items);
        self.in_progress.store(items, Ordering::Relaxed);
        batch
    }

    /// What was taken is sent or dropped.
    pub(super) fn done(&self) {
        self.in_progress.store(0, Ordering::Relaxed);
    }

    pub(super) fn take_dropped(&self) -> u64 {
        self.lock().take_dropped()
    }

    /// How many items wait, or were taken and not sent.
    pub(super) fn unsent(&self) -> u64 {
        self.lock().items() + self.in_progress.load(Ordering::Relaxed)
    }

    /// Waits until there is something to send.
    pub(super) async fn filled(&self) {
        while self.lock().is_empty() {
            self.changed.notified().await;
        }
    }

    /// Waits until there is enough for a request.
    pub(super) async fn completed(&self) {
        while !self.lock().has_complete() {
            self.changed.notified().await;
        }
    }
}
