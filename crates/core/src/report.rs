//! What the core reports about its state: status, health and explanations.

pub mod explain;
pub mod health;
pub mod status;
pub mod words;
