//! Recordings (B1–B4): what the core was told, and when, in few bytes.
//!
//! A recording is a header and a row of blocks. A block begins with a checkpoint, which is the state of the core, and
//! has the inputs that followed, each with its time. So a block can be played without those before it, and the oldest
//! are dropped when the memory is full. In a file, a block is written in several chunks, so that little is missing after
//! a crash.
//!
//! A steady container has checks that pass, ten bytes for each as they would be written plainly, and these bytes say
//! little: the same inputs in turn, ids that go up by one, times that hardly differ. [`coder`] spends about one byte on
//! them. Compressing whole blocks afterwards would take a third of a megabyte while it is done.
//!
//! [`Recorder`] and [`Recording`] write and read values of any types; [`StepRecorder`] and [`Replay`] are those of the
//! core.
#![forbid(unsafe_code)]

mod checksum;
mod coder;
mod digest;
mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzz;
mod ids;
mod reader;
mod recorder;
mod steps;

pub use reader::{BlockReader, Damage, DamageKind, ReadError, Recorded, Recording, Unreadable};
pub use recorder::{Chunk, Recorder, Start, TooLarge};
pub use steps::{Replay, ReplayError, Step, StepRecorder};
