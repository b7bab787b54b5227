//! Everything the core remembers. Nothing here decides anything; the rules do.

pub(crate) mod dependency_graph;
pub mod health;
pub(crate) mod job;
pub mod journal;
pub(crate) mod plan_state;
pub(crate) mod run;
pub(crate) mod supervisor;
pub mod timer_queue;
pub(crate) mod timers;
pub(crate) mod watch;
