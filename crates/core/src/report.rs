//! What the core reports about its state: status, health and explanations.

pub mod explain;
pub mod explain_watch;
pub mod health;
pub mod status;
pub mod words;
