//! Rendered files: a template, and where its text is written (D15).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Command, Principal};
use crate::answer::Answer;

/// A file that is rendered from a template whenever one of its watches changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedFile {
    /// Its events come from `file.NAME`.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub name: String,
    /// The template, as it was when the configuration was loaded; `None` if it could not be read in time (P15): the
    /// file cannot be rendered until a reload.
    #[serde(serialize_with = "crate::recorded::bytes")]
    pub template: Option<Arc<[u8]>>,
    /// What messages call the template: its path, or `template`.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub template_name: String,
    /// The path that is written.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub to: String,
    /// The permissions of the file.
    pub mode: u16,
    /// The owner of the file.
    pub user: Option<Principal>,
    /// The group of the file.
    pub group: Option<Principal>,
    /// The program that must accept a new text before it is installed.
    pub test: Option<FileTest>,
    /// How long the watches must be calm before the file is rendered again.
    pub debounce: Duration,
    /// The names of the watches that the template uses, each once.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub watches: Vec<String>,
    /// The files of the secrets that the template uses, by the names of the secrets.
    #[serde(serialize_with = "crate::recorded::as_is")]
    pub secrets: BTreeMap<String, String>,
}

/// The program that tests a new text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTest {
    /// The program.
    pub command: Command,
    /// How long it may take.
    pub timeout: Duration,
}

/// What the watches of a file have found, by the names of the watches.
pub type FileData = BTreeMap<String, Answer>;

impl RenderedFile {
    /// The longest delay by `debounce`, so that inputs that never calm down do not keep the file from being rendered.
    #[must_use]
    pub fn longest_delay(&self) -> Duration {
        self.debounce.saturating_mul(4)
    }

    /// The name of the watch for the function `key` of a template.
    #[must_use]
    pub fn key_watch(key: &str) -> String {
        format!("key:{key}")
    }

    /// The name of the watch for the function `keys` of a template.
    #[must_use]
    pub fn prefix_watch(prefix: &str) -> String {
        format!("keys:{prefix}")
    }
}
