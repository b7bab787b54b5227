//! What the core reports about its state: status, explanations, and the difference between two plans.

pub mod explain;
pub mod plan_diff;
pub mod status;
pub mod words;
