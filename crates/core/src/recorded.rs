//! Which texts are in a recording as they are (B1).
//!
//! A recording has hashes in place of texts, unless a field says otherwise with one of these functions: a field that
//! is forgotten is hashed. They change nothing where a state is written without hashes. The keys of maps are names, and
//! stay.
//!
//! What stays is what decisions, reports and people refer to: names, paths, addresses, users, schedules, and sentences
//! of the supervisor about jobs. Arguments, values and everything that programs and servers have said may contain a
//! secret.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use serde::{Serialize, Serializer};

/// How a text is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As a hash.
    Hashed,
    /// As it is.
    AsIs,
    /// As a hash that is a text if the value is one, and ends with a newline if the value does: it may become a
    /// variable.
    Value,
    /// As a hash of each part between the variables of replicas.
    Word,
    /// As a hash with its first slash.
    UrlPath,
}

impl Manner {
    const NAMED: [(&'static str, Self); 5] = [
        ("recorded as a hash", Self::Hashed),
        ("recorded as it is", Self::AsIs),
        ("recorded as a value", Self::Value),
        ("recorded as a word", Self::Word),
        ("recorded as a path", Self::UrlPath),
    ];

    /// The name of the struct by which a serializer is told.
    fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, manner)| *manner == self).map_or("", |(name, _)| name)
    }

    /// The manner that the name of a struct stands for.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(other, _)| *other == name).map(|(_, manner)| *manner)
    }
}

/// Bytes, which serde would write one by one.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_bytes(self.0)
    }
}

/// A value that is recorded in this manner.
struct Marked<T>(Manner, T);

impl<T: Serialize> Serialize for Marked<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_newtype_struct(self.0.name(), &self.1)
    }
}

/// Every text in it stays.
pub(crate) fn as_is<T: Serialize, S: Serializer>(value: &T, out: S) -> Result<S::Ok, S::Error> {
    Marked(Manner::AsIs, value).serialize(out)
}

/// Of each pair, the first text stays.
pub(crate) fn names_as_is<T: Serialize, S: Serializer>(
    pairs: &[(String, T)],
    out: S,
) -> Result<S::Ok, S::Error> {
    out.collect_seq(pairs.iter().map(|(name, value)| (Marked(Manner::AsIs, name), value)))
}

/// The path and the query of a URL.
pub(crate) fn url_path<S: Serializer>(path: &str, out: S) -> Result<S::Ok, S::Error> {
    Marked(Manner::UrlPath, path).serialize(out)
}

/// A word of a command.
pub(crate) fn word<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
    Marked(Manner::Word, Bytes(bytes)).serialize(out)
}

/// Bytes that are only compared.
pub(crate) fn bytes<S: Serializer>(bytes: &Option<Arc<[u8]>>, out: S) -> Result<S::Ok, S::Error> {
    bytes.as_deref().map(|bytes| Marked(Manner::Hashed, Bytes(bytes))).serialize(out)
}

/// What a watch has found.
pub(crate) fn value<S: Serializer>(value: &Arc<[u8]>, out: S) -> Result<S::Ok, S::Error> {
    Marked(Manner::Value, Bytes(value)).serialize(out)
}

/// The same, if there is something.
pub(crate) fn optional_value<S: Serializer>(value: &Option<Arc<[u8]>>, out: S) -> Result<S::Ok, S::Error> {
    value.as_deref().map(|value| Marked(Manner::Value, Bytes(value))).serialize(out)
}

/// The same, by name.
pub(crate) fn values<S: Serializer>(values: &BTreeMap<String, Arc<[u8]>>, out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(values.iter().map(|(name, value)| (name, Marked(Manner::Value, Bytes(value)))))
}
