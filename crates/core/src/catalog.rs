//! Keeping the catalog equal to what the jobs want: which request to send next, and when.

pub mod contact;
pub mod follow;
pub mod reconcile;
