//! What the core knows at a moment.

pub(crate) mod dependency_graph;
pub(crate) mod job;
pub mod journal;
pub(crate) mod supervisor;
pub mod timer_queue;
pub(crate) mod timers;
