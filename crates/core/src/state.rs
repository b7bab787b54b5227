//! Everything the core remembers, and which changes of it are possible. What happens when is decided in `rules`.

pub(crate) mod dependency_graph;
pub(crate) mod exit_codes;
#[cfg(feature = "fingerprint")]
pub mod fingerprint;
pub(crate) mod job;
pub mod journal;
pub(crate) mod last_ids;
pub mod longest_stop;
pub(crate) mod pending;
pub(crate) mod phase;
pub(crate) mod run;
pub(crate) mod shutdown_deadlines;
pub(crate) mod start_queue;
pub(crate) mod timers;
pub(crate) mod watch_changes;
