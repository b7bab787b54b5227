//! Continuation lines: those that belong to the entry before them (L8).
//!
//! A stream with [`Join`] holds the complete lines of one entry until a line follows that does not belong to it, until
//! nothing followed for [`DELAY`], or until the process has exited.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use containerpilot_config::template::Pattern;

/// How long an entry waits for its next line. More than the pause of a process whose CPU time is limited (100 ms).
pub(super) const DELAY: Duration = Duration::from_millis(250);
/// How much of a line is matched.
const MATCHED: usize = 4096;

/// The state of an entry that may be continued. Positions are those in the bytes that the stream holds.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) pattern: Arc<Pattern>,
    /// Where the next line begins: the complete lines before it are one entry.
    pub(super) end: usize,
    /// The next line has no newline before this position.
    pub(super) searched: usize,
    /// When the lines of the entry were read last.
    pub(super) read_at: SystemTime,
    /// The same for the timer.
    pub(super) last_read: Instant,
    /// Whether the log thread has a timer for it.
    pub(super) timed: bool,
    /// True if its time has passed: the entry is written as soon as possible.
    pub(super) due: bool,
}

impl Join {
    pub(super) fn new(pattern: Arc<Pattern>) -> Self {
        Self {
            pattern,
            end: 0,
            searched: 0,
            read_at: SystemTime::UNIX_EPOCH,
            last_read: Instant::now(),
            timed: false,
            due: false,
        }
    }

    /// Returns true if a line belongs to the entry before it.
    pub(super) fn continues(&self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.pattern.is_match(line.get(..MATCHED).unwrap_or(line))
    }
}
