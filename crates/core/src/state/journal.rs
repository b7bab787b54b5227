//! The journal: the last events, each with the event that caused it, and the last starts of runs (X10).

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::event::Code;
use crate::ids::{EventId, FileIx, JobIx, LockIx, RunId, WatchIx};
use crate::input::ExitStatus;
use crate::outcome::Outcome;
use crate::signal::Signal;
use crate::time::Time;

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// The supervisor.
    Global,
    /// A job.
    Job(JobIx),
    /// A watch.
    Watch(WatchIx),
    /// A rendered file.
    File(FileIx),
    /// A lock.
    Lock(LockIx),
    /// A signal to the supervisor.
    Signal(Signal),
    /// A job, watch or file of an earlier plan, by its index in the list of removed sources.
    Removed(u32),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number.
    pub id: EventId,
    /// The event that caused it; `None` if an input did. For the exit of a run, the event that started the run.
    pub cause: Option<EventId>,
    /// When it was sent.
    pub at: Time,
    /// Its source.
    pub origin: Origin,
    /// Its code.
    pub code: Code,
    /// Its details.
    pub detail: Detail,
}

impl Event {
    /// How the process exited, for the two exit events.
    #[must_use]
    pub const fn exit(&self) -> Option<ExitStatus> {
        match self.detail {
            Detail::Exit { status, .. } => Some(status),
            Detail::None | Detail::Ended(_) => None,
        }
    }
}

/// The details of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// Nothing.
    None,
    /// For the two exit events.
    Exit {
        /// How the process exited.
        status: ExitStatus,
        /// Why the supervisor ended the run; `None` if the process exited by itself.
        ended_by: Option<EndReason>,
    },
    /// For `stopped`: how the job ended (X7).
    Ended(Outcome),
}

/// Why the supervisor ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// It reached its timeout (P5).
    Timeout,
    /// Its checks failed, and the job is restarted (H8).
    Unhealthy,
    /// A user stopped the job.
    ByHand,
    /// The action of a job stopped the job (W19).
    ByAction,
    /// A reload replaced or removed the job.
    Reload,
    /// The supervisor shut down.
    Shutdown,
    /// A source that the job is bound to was gone (W18).
    SourceGone,
    /// The job stopped for another reason.
    Stop,
}

impl EndReason {
    /// The name in the JSON of the control socket, also for people: `ended by NAME`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unhealthy => "failed checks",
            Self::ByHand => "hand",
            Self::ByAction => "action",
            Self::Reload => "reload",
            Self::Shutdown => "shutdown",
            Self::SourceGone => "lost requirement",
            Self::Stop => "stop",
        }
    }
}

/// The start of a run. It is not an event: no job can wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The run.
    pub run: RunId,
    /// The last event before it.
    pub after: EventId,
    /// When the program was executed.
    pub at: Time,
    /// The job.
    pub origin: Origin,
    /// The process.
    pub pid: i32,
    /// The event that started the run; `None` if it was started by hand or by a tick.
    pub trigger: Option<EventId>,
    /// True if a tick started it, other than the first of an interval (W4).
    pub tick: bool,
    /// True if it runs at times of day (W15).
    pub cron: bool,
    /// Restarts since the job was last started by an event.
    pub restarts: u64,
}

/// The default capacity.
const CAPACITY: usize = 1024;

/// The last events.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Journal {
    events: VecDeque<Event>,
    starts: VecDeque<Start>,
    /// How many starts were recorded in all.
    start_count: u64,
    capacity: usize,
}

impl Default for Journal {
    fn default() -> Self {
        Self { events: VecDeque::new(), starts: VecDeque::new(), start_count: 0, capacity: CAPACITY }
    }
}

impl Journal {
    pub(crate) fn write(&mut self, event: Event) {
        if self.events.len() >= self.capacity {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(crate) fn write_start(&mut self, start: Start) {
        if self.starts.len() >= self.capacity {
            self.starts.pop_front();
        }
        self.starts.push_back(start);
        self.start_count += 1;
    }

    pub(crate) fn set_capacity(&mut self, events: usize) {
        self.capacity = events.max(CAPACITY);
    }

    /// The sources of all events and starts.
    pub(crate) fn origins_mut(&mut self) -> impl Iterator<Item = &mut Origin> {
        let events = self.events.iter_mut().map(|event| &mut event.origin);
        events.chain(self.starts.iter_mut().map(|start| &mut start.origin))
    }

    /// The starts of runs, oldest first. They begin where the events do.
    pub fn starts(&self) -> impl DoubleEndedIterator<Item = &Start> {
        let first = self.events.front().map_or(EventId(0), |event| event.id);
        self.starts.iter().filter(move |start| start.after >= first)
    }

    /// The job of a run, also when it has run again since; `None` if too many others have.
    pub(crate) fn origin_of(&self, run: RunId) -> Option<Origin> {
        self.starts.iter().rev().find(|start| start.run == run).map(|start| start.origin)
    }

    /// How many starts were recorded in all.
    #[must_use]
    pub const fn start_count(&self) -> u64 {
        self.start_count
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
