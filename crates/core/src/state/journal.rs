//! The record of what happened and why: the last events, each with the one that caused it.

use alloc::collections::VecDeque;

use crate::event::Code;
use crate::ids::{EventId, JobIx, WatchIx};
use crate::input::ExitStatus;
use crate::time::Time;

/// Where an event came from, as the core knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The supervisor.
    Global,
    /// A job.
    Job(JobIx),
    /// A watch.
    Watch(WatchIx),
    /// A signal, by number.
    Signal(u8),
    /// A source of a plan that was in force before a reload.
    Former(u32),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, in the order of sending.
    pub id: EventId,
    /// The event that caused it, if it was not the world.
    pub cause: Option<EventId>,
    /// When it was sent.
    pub at: Time,
    /// Where it came from.
    pub origin: Origin,
    /// What it says.
    pub code: Code,
    /// How the process ended, for the two exit events.
    pub exit: Option<ExitStatus>,
}

/// How many events are pending_event, unless somebody wants more.
const MOST: usize = 1024;

/// The last events.
#[derive(Debug)]
pub struct Journal {
    events: VecDeque<Event>,
    most: usize,
}

impl Default for Journal {
    fn default() -> Self {
        Self { events: VecDeque::new(), most: MOST }
    }
}

impl Journal {
    pub(crate) fn write(&mut self, event: Event) {
        if self.events.len() >= self.most {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(crate) fn keep(&mut self, most: usize) {
        self.most = most.max(MOST);
    }

    /// Changes what is pending_event.
    pub(crate) fn for_each_mut(&mut self, change: impl FnMut(&mut Event)) {
        self.events.iter_mut().for_each(change);
    }

    /// The events that are pending_event, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// An event by its number, if it is still pending_event.
    #[must_use]
    pub fn event(&self, id: EventId) -> Option<&Event> {
        let first = self.events.front()?.id.0;
        let place = usize::try_from(id.0.checked_sub(first)?).ok()?;
        self.events.get(place)
    }
}
