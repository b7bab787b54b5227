//! The answers to watches (E6, D13). An adapter only reports the current state; `watches.rs` decides what is an
//! event.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The bytes of a file, a key or a response.
pub type ValueBytes = Arc<[u8]>;

/// Values by name: the files of a directory, or the keys below a prefix.
pub type Entries = BTreeMap<String, ValueBytes>;

/// The longest value, and the largest sum of the names and values of entries. What is larger is not an answer.
pub const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// What a watch finds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// These instances, in any order.
    Instances(Vec<Instance>),
    /// This value.
    Value(#[serde(serialize_with = "crate::recorded::value")] ValueBytes),
    /// These values by name. There may be none, as in an empty directory.
    Entries(#[serde(serialize_with = "crate::recorded::values")] Entries),
    /// Nothing: no such file or key.
    Absent,
    /// A peer that accepts connections.
    Up,
    /// A peer that does not respond, or not as it should, and why. A value that is known stays.
    Down(String),
}

impl Answer {
    /// Returns true unless it is empty, absent or down.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        match self {
            Self::Instances(instances) => !instances.is_empty(),
            Self::Value(_) | Self::Entries(_) | Self::Up => true,
            Self::Absent | Self::Down(_) => false,
        }
    }

    /// The answer in words.
    #[must_use]
    pub fn words(&self) -> String {
        let count = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {many}"),
        };
        match self {
            Self::Instances(instances) if instances.is_empty() => "no healthy instances".into(),
            Self::Instances(instances) => count(instances.len(), "healthy instance", "healthy instances"),
            Self::Value(value) => count(value.len(), "byte", "bytes"),
            Self::Entries(entries) => count(entries.len(), "entry", "entries"),
            Self::Absent => "does not exist".into(),
            Self::Up => "accepts connections".into(),
            Self::Down(why) => why.clone(),
        }
    }
}

/// What a watch has found, or why that is not known. The reason is text: the core shows it, and compares it with the
/// previous one, so that the log has one entry for each reason.
pub type WatchResult = Result<Answer, String>;

/// A healthy instance of a watched service (E6).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// Its id in the catalog.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub id: String,
    /// Its address: usually an IP address, but a catalog may contain any name.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub address: String,
    /// Its port.
    pub port: u16,
    /// Its tags. They are kept up to date, but a change of them is not an event.
    pub tags: Vec<String>,
    /// Its metadata. Like its tags, it does not make an event.
    pub meta: BTreeMap<String, String>,
}

impl Instance {
    /// `10.0.0.1:80` or `[::1]:80`, or only the address if the port is not known.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match (self.port, self.address.contains(':')) {
            (0, _) => self.address.clone(),
            (port, true) => format!("[{}]:{port}", self.address),
            (port, false) => format!("{}:{port}", self.address),
        }
    }

    /// What makes it another instance if it changes (E6).
    #[must_use]
    pub fn identity(&self) -> (&str, &str, u16) {
        (&self.id, &self.address, self.port)
    }
}
