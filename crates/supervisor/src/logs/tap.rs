//! A copy of everything that is logged, for the export to a collector (T6).
//!
//! Without a tap, each read of a pipe and each entry costs one comparison.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use containerpilot_core::ids::RunId;
use containerpilot_core::log_entry::Fields;
use containerpilot_core::plan::Level;
use containerpilot_log_format::StreamName;

use super::LogSource;

/// Gets a copy of everything that is logged. It is called on the log threads and must not wait for anything.
pub(crate) trait Tap: Debug + Send + Sync {
    /// Output of a process, with secrets hidden (P11): one text, or, with `several`, one for each line.
    fn output(&self, origin: &TapOrigin<'_>, text: &[u8], several: bool);
    /// An entry of the supervisor.
    fn entry(&self, entry: &TapEntry<'_>);
}

/// Where output comes from.
pub(crate) struct TapOrigin<'a> {
    pub(crate) source: &'a LogSource,
    pub(crate) stream: StreamName,
    pub(crate) level: Level,
    pub(crate) time: SystemTime,
}

/// An entry of the supervisor.
pub(crate) struct TapEntry<'a> {
    pub(crate) time: SystemTime,
    pub(crate) level: Level,
    pub(crate) job: Option<&'a str>,
    /// The run of the job that it is about, or the last one.
    pub(crate) run: Option<RunId>,
    pub(crate) fields: Option<&'a Fields>,
    pub(crate) message: &'a str,
}

/// The tap, if there is one.
#[derive(Debug, Default)]
pub(super) struct TapSlot {
    is_set: AtomicBool,
    tap: Mutex<Option<Arc<dyn Tap>>>,
}

impl TapSlot {
    pub(super) fn set(&self, tap: Option<Arc<dyn Tap>>) {
        let is_set = tap.is_some();
        *self.tap.lock().unwrap_or_else(PoisonError::into_inner) = tap;
        self.is_set.store(is_set, Ordering::Release);
    }

    pub(super) fn get(&self) -> Option<Arc<dyn Tap>> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        self.tap.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
