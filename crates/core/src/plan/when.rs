//! When a job runs: its trigger, and how long it waits for it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Cron;
use crate::event::{Code, Source};

/// When a job runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct When {
    /// What starts it.
    pub trigger: Trigger,
    /// How long it waits for the trigger before it gives up (W5).
    pub timeout: Option<Duration>,
}

impl When {
    /// At startup, once: the default (W1).
    #[must_use]
    pub const fn at_startup() -> Self {
        let event = EventPattern { source: Source::Global, code: Code::Startup };
        Self { trigger: Trigger::Event { event, repeat: Repeat::Once }, timeout: None }
    }

    /// The events that can trigger it.
    #[must_use]
    pub fn patterns(&self) -> &[EventPattern] {
        match &self.trigger {
            Trigger::Event { event, .. } => core::slice::from_ref(event),
            Trigger::All { conditions, .. } | Trigger::Any { conditions, .. } => conditions,
            Trigger::Interval {
                first: FirstTick::AtEvent(event) | FirstTick::IntervalAfter(event), ..
            }
            | Trigger::Cron { after: Some(event), .. } => core::slice::from_ref(event),
            Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => &[],
        }
    }

    /// How often it is triggered. A periodic job is triggered by every tick, and the event before its first tick counts
    /// once.
    #[must_use]
    pub fn repeat(&self) -> Repeat {
        match &self.trigger {
            Trigger::Event { repeat, .. } | Trigger::All { repeat, .. } | Trigger::Any { repeat, .. } => {
                if *repeat == Repeat::Once {
                    Repeat::Once
                } else {
                    Repeat::Each
                }
            }
            Trigger::Interval { first: FirstTick::AtStartup, .. } | Trigger::Cron { after: None, .. } => {
                Repeat::Each
            }
            Trigger::Interval { .. } | Trigger::Cron { .. } | Trigger::Manual | Trigger::Never => {
                Repeat::Once
            }
        }
    }

    /// Returns true if every event starts a run of its own (W21).
    #[must_use]
    pub const fn queues_events(&self) -> bool {
        matches!(
            self.trigger,
            Trigger::Event { repeat: Repeat::EachQueued, .. }
                | Trigger::All { repeat: Repeat::EachQueued, .. }
                | Trigger::Any { repeat: Repeat::EachQueued, .. }
        )
    }

    /// Returns true if it runs on a schedule: at an interval or at certain times.
    #[must_use]
    pub const fn is_periodic(&self) -> bool {
        matches!(self.trigger, Trigger::Interval { .. } | Trigger::Cron { .. })
    }

    /// Returns true if its schedule starts at startup.
    #[must_use]
    pub const fn ticks_from_startup(&self) -> bool {
        matches!(
            self.trigger,
            Trigger::Interval { first: FirstTick::AtStartup, .. } | Trigger::Cron { after: None, .. }
        )
    }

    /// Returns true if it runs at the moment when its schedule starts.
    #[must_use]
    pub const fn runs_at_once(&self) -> bool {
        matches!(self.trigger, Trigger::Interval { first: FirstTick::AtStartup | FirstTick::AtEvent(_), .. })
    }

    /// Its schedule, if it runs at certain times (W15).
    #[must_use]
    pub const fn cron(&self) -> Option<&Cron> {
        match &self.trigger {
            Trigger::Cron { cron, .. } => Some(cron),
            _ => None,
        }
    }

    /// Returns true if only a user starts it (W17).
    #[must_use]
    pub const fn is_manual(&self) -> bool {
        matches!(self.trigger, Trigger::Manual)
    }

    /// Returns true if the startup of the supervisor starts it.
    #[must_use]
    pub fn starts_at_startup(&self) -> bool {
        let is_startup = |event: &EventPattern| event.code == Code::Startup;
        match &self.trigger {
            Trigger::Interval { first: FirstTick::AtStartup, .. } => true,
            Trigger::Event { event, .. } | Trigger::Interval { first: FirstTick::AtEvent(event), .. } => {
                is_startup(event)
            }
            Trigger::Any { conditions, .. } => conditions.iter().any(is_startup),
            Trigger::All { .. }
            | Trigger::Interval { .. }
            | Trigger::Cron { .. }
            | Trigger::Manual
            | Trigger::Never => false,
        }
    }

    /// Returns true if it needs several conditions to hold at the same time.
    #[must_use]
    pub const fn needs_all(&self) -> bool {
        matches!(self.trigger, Trigger::All { .. })
    }

    /// Returns true if a stop event can trigger it, so that it still runs during a shutdown (S3).
    #[must_use]
    pub fn has_stop_event(&self) -> bool {
        self.patterns().iter().any(|event| event.code.is_stop_event())
    }
}

/// What starts a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Trigger {
    /// An event (W1–W3).
    Event {
        /// The event.
        event: EventPattern,
        /// The first one, or every one.
        repeat: Repeat,
    },
    /// Every interval (W4).
    Interval {
        /// The interval.
        every: Duration,
        /// The first run.
        first: FirstTick,
    },
    /// At certain times (W15).
    Cron {
        /// The times.
        cron: Box<Cron>,
        /// The event that starts the schedule (W16); `None` for startup.
        after: Option<EventPattern>,
    },
    /// All conditions hold (W12).
    All {
        /// The conditions.
        conditions: Vec<EventPattern>,
        /// The first time, or every time they start to hold.
        repeat: Repeat,
    },
    /// Any of these events (W12).
    Any {
        /// The events.
        conditions: Vec<EventPattern>,
        /// The first one, or every one.
        repeat: Repeat,
    },
    /// A user, and nothing else (W17).
    Manual,
    /// The file names no event that exists. 3.8 accepts that, so the job waits.
    Never,
}

impl Trigger {
    /// Startup, and then every interval (W4).
    #[must_use]
    pub const fn every(every: Duration) -> Self {
        Self::Interval { every, first: FirstTick::AtStartup }
    }
}

/// When a periodic job runs first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FirstTick {
    /// At startup.
    AtStartup,
    /// At this event (W16).
    AtEvent(EventPattern),
    /// One interval after this event, as in ContainerPilot 2 (C8).
    IntervalAfter(EventPattern),
}

/// A source and a code to wait for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventPattern {
    /// The source.
    pub source: Source,
    /// The code.
    pub code: Code,
}

/// How often a trigger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repeat {
    /// The first time only.
    Once,
    /// Every time. Of several events during a run, the last one starts a further run (W7).
    Each,
    /// Every time. Events during a run are queued, and each starts a run (W21). [`When::repeat`] calls it `Each`.
    EachQueued,
}
