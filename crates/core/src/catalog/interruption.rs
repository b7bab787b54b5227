//! When the catalog was unavailable.

use crate::time::Time;

/// The last time at which the catalog was unavailable for a client. It may have been restarted meanwhile and have lost
/// every service: a state that was confirmed at this time or before is not known any longer (D11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// When it was. While it lasts, this is the time of the first failed request; then that of the last one.
    pub at: Time,
    /// True if the catalog answers all clients again.
    pub is_over: bool,
    /// When it has first answered a client, while it was unavailable for others.
    pub answered_at: Option<Time>,
}
