//! What the core reports about its state: status and explanations.

pub mod explain;
pub mod status;
pub mod words;
