//! What the core reports about its state: status, health and explanations.

pub mod container_health;
pub mod deadlines;
pub mod explain;
pub mod explain_file;
pub mod explain_lock;
pub mod explain_watch;
pub mod graph;
pub mod layout;
pub mod redact;
mod replicas;
pub mod status;
pub mod words;
