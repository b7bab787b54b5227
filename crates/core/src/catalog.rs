//! The reconciliation of the catalog with the desired state: which request to send next, and when.

mod backoff;
pub mod connectivity;
pub mod interruption;
pub mod lock_requests;
pub mod ownership;
pub mod reconcile;
pub mod watch_queries;
