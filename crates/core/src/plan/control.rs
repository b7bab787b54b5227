//! The control socket.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::Principal;

/// The control socket (X1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Its path.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub socket: String,
    /// True if the supervisor must not start without it, because the configuration names the path.
    pub required: bool,
    /// Its mode.
    pub mode: u16,
    /// The group it belongs to.
    pub group: Option<Principal>,
}
