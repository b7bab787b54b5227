//! Events that wait for the end of a run (W7, W21).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::state::journal::Event;

/// W21: how many events a queue holds.
pub(crate) const MAX_PENDING: usize = 1000;

/// The events that came during a run, and start the next runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum PendingEvents {
    /// One event, for a run that serves all of them (W7).
    Latest(Option<Event>),
    /// Every event, for a run each (W21).
    Queue(Box<EventQueue>),
}

/// The events of a job with `queue: "all"`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EventQueue {
    events: VecDeque<Event>,
    /// How many events were dropped in all generations.
    dropped: u64,
    /// True from the first dropped event until the queue is empty.
    overflowing: bool,
}

impl PendingEvents {
    pub(crate) fn new(queue: bool) -> Self {
        if queue { Self::Queue(Box::default()) } else { Self::Latest(None) }
    }

    /// Returns true if every event starts a run.
    pub(crate) const fn is_queue(&self) -> bool {
        matches!(self, Self::Queue(_))
    }

    /// Adds an event. Returns true if it is the first of a burst for which another one was dropped.
    pub(crate) fn push(&mut self, event: Event) -> bool {
        match self {
            Self::Latest(latest) => {
                *latest = Some(event);
                false
            }
            Self::Queue(queue) => {
                let is_full = queue.events.len() >= MAX_PENDING;
                if is_full {
                    queue.events.pop_front();
                    queue.dropped = queue.dropped.saturating_add(1);
                }
                queue.events.push_back(event);
                is_full && !core::mem::replace(&mut queue.overflowing, true)
            }
        }
    }

    /// The event that starts the next run.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        match self {
            Self::Latest(latest) => latest.take(),
            Self::Queue(queue) => {
                let event = queue.events.pop_front();
                queue.overflowing &= !queue.events.is_empty();
                event
            }
        }
    }

    /// Puts back the event that was to start the next run.
    pub(crate) fn put_back(&mut self, event: Event) {
        match self {
            Self::Latest(latest) => *latest = Some(event),
            Self::Queue(queue) => queue.events.push_front(event),
        }
    }

    /// A run starts, and serves what is pending, unless each event needs a run of its own.
    pub(crate) const fn serve(&mut self) {
        if let Self::Latest(latest) = self {
            *latest = None;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Latest(latest) => usize::from(latest.is_some()),
            Self::Queue(queue) => queue.events.len(),
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        match self {
            Self::Latest(_) => 0,
            Self::Queue(queue) => queue.dropped,
        }
    }

    /// Keeps only stop events (S3).
    pub(crate) fn retain_stop_events(&mut self) {
        match self {
            Self::Latest(latest) => *latest = latest.filter(|event| event.code.is_stop_event()),
            Self::Queue(queue) => queue.events.retain(|event| event.code.is_stop_event()),
        }
    }

    pub(crate) fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    /// The next generation counts on.
    pub(crate) fn continue_from(&mut self, old: &Self) {
        if let Self::Queue(queue) = self {
            queue.dropped = old.dropped();
        }
    }

    #[cfg(feature = "fingerprint")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        let (latest, queue) = match self {
            Self::Latest(latest) => (latest.as_ref(), None),
            Self::Queue(queue) => (None, Some(&queue.events)),
        };
        latest.into_iter().chain(queue.into_iter().flatten())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        let (latest, queue) = match self {
            Self::Latest(latest) => (latest.as_mut(), None),
            Self::Queue(queue) => (None, Some(&mut queue.events)),
        };
        latest.into_iter().chain(queue.into_iter().flatten())
    }
}
