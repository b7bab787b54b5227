//! Numbers that stand for things of the plan and for runs of jobs.

/// A job, by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobIx(pub u32);

/// A watch, by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchIx(pub u32);

/// A check, by its place among those of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckIx(pub u32);

/// One run of a job: one process, or the attempt to start one. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// One run of a check. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckRun(pub u64);

/// An event, in the order of their sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

macro_rules! place {
    ($($name:ident),*) => {
        $(impl $name {
            /// The place as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The place at an index; a plan never has 2³² of anything.
            #[must_use]
            pub fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        })*
    };
}

place!(JobIx, WatchIx, CheckIx);
