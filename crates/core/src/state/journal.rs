//! The journal: the last events, each with the event that caused it.

use alloc::collections::VecDeque;

use crate::event::{Code, UserSignal};
use crate::ids::{EventId, JobIx, WatchIx};
use crate::input::ExitStatus;
use crate::time::Time;

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The supervisor.
    Global,
    /// A job.
    Job(JobIx),
    /// A watch.
    Watch(WatchIx),
    /// A signal to the supervisor.
    Signal(UserSignal),
    /// A job or watch of an earlier plan, by its index in the list of removed sources.
    Removed(u32),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub id: EventId,
    /// The event that caused it; `None` if an input did.
    pub cause: Option<EventId>,
    /// When it was sent.
    pub at: Time,
    /// Its source.
    pub origin: Origin,
    /// Its code.
    pub code: Code,
    /// How the process exited, for the two exit events.
    pub exit: Option<ExitStatus>,
}

/// The default capacity.
const CAPACITY: usize = 1024;

/// The last events.
#[derive(Clone, Debug)]
pub struct Journal {
    events: VecDeque<Event>,
    capacity: usize,
}

impl Default for Journal {
    fn default() -> Self {
        Self { events: VecDeque::new(), capacity: CAPACITY }
    }
}

impl Journal {
    pub(crate) fn write(&mut self, event: Event) {
        if self.events.len() >= self.capacity {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(crate) fn set_capacity(&mut self, events: usize) {
        self.capacity = events.max(CAPACITY);
    }

    pub(crate) fn events_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        self.events.iter_mut()
    }

    /// The events, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// An event by its number, if the journal still has it.
    #[must_use]
    pub fn event(&self, id: EventId) -> Option<&Event> {
        let first = self.events.front()?.id.0;
        let index = usize::try_from(id.0.checked_sub(first)?).ok()?;
        self.events.get(index)
    }
}
