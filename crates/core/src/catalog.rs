//! The reconciliation of the catalog with the desired state: which request to send next, and when.

pub mod contact;
pub mod follow;
pub mod reconcile;
