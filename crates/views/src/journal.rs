//! Events and starts of the journal, for clients.

use std::sync::Arc;
use std::time::SystemTime;

use containerpilot_core::event::Code;
use containerpilot_core::ids::{EventId, RunId};
use containerpilot_core::state::journal::{Detail, Event, Start};
use containerpilot_core::{Core, sort_by};

use crate::clock::WallClock;

/// A record of the journal for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalRecord {
    Event(EventRecord),
    Start(StartRecord),
}

/// The start of a run for clients (X10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRecord {
    pub run: RunId,
    /// The last event before it.
    pub after: EventId,
    pub time: SystemTime,
    pub source: String,
    pub pid: i32,
    /// The event that started the run; `None` if it was started by hand or by a tick.
    pub trigger: Option<EventId>,
    pub tick: bool,
    pub cron: bool,
    pub restarts: u64,
}

/// An event for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub id: EventId,
    pub time: SystemTime,
    pub source: String,
    pub code: Code,
    pub cause: Option<EventId>,
    pub detail: Detail,
}

/// Events and starts in the order in which they happened.
pub fn records<'a>(
    core: &Core,
    clock: WallClock,
    events: impl Iterator<Item = &'a Event>,
    starts: impl Iterator<Item = &'a Start>,
) -> Vec<Arc<JournalRecord>> {
    let events = events.map(|event| {
        let Event { id, cause, at, origin, code, detail } = *event;
        let (time, source) = (clock.at(at), core.origin_name(origin));
        (id, JournalRecord::Event(EventRecord { id, time, source, code, cause, detail }))
    });
    let starts = starts.map(|start| {
        let Start { run, after, at, origin, pid, trigger, tick, cron, restarts } = *start;
        let (time, source) = (clock.at(at), core.origin_name(origin));
        let record = StartRecord { run, after, time, source, pid, trigger, tick, cron, restarts };
        (after, JournalRecord::Start(record))
    });
    let mut records: Vec<(EventId, JournalRecord)> = events.chain(starts).collect();
    // A stable sort: an event comes before the starts after it.
    sort_by(&mut records, |(place, _), (other, _)| place.cmp(other));
    records.into_iter().map(|(_, record)| Arc::new(record)).collect()
}
