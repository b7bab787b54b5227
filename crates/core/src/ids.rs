//! Identifiers.

use serde::{Deserialize, Serialize};

/// A job, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobIx(pub u32);

/// A watch, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WatchIx(pub u32);

/// A rendered file, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileIx(pub u32);

/// A lock, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockIx(pub u32);

/// A check, by its index in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CheckIx(pub u32);

/// One run of a job: one process, or the attempt to start one. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub u64);

/// One rendering of a file. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RenderId(pub u64);

/// One run of a check, or of the test of a file. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CheckRunId(pub u64);

/// An event. Events are numbered in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId(pub u64);

macro_rules! index {
    ($($name:ident),*) => {
        $(impl $name {
            /// The index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// From an index. A plan never has 2³² of anything.
            #[must_use]
            pub fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        })*
    };
}

index!(JobIx, WatchIx, FileIx, LockIx, CheckIx);
