//! The line of output that makes a process ready (H11).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use containerpilot_config::template::Pattern;

/// How much of a line is looked at.
const MAX_LINE: usize = 4096;

/// Looks for a line in the output of one process, on both of its streams, until it is found.
pub(crate) struct ReadyLine {
    pattern: Pattern,
    found: AtomicBool,
    report: Box<dyn Fn() + Send + Sync>,
}

impl ReadyLine {
    /// `report` is called on the log thread, once, and must not wait.
    pub(crate) fn new(pattern: Pattern, report: impl Fn() + Send + Sync + 'static) -> Self {
        Self { pattern, found: AtomicBool::new(false), report: Box::new(report) }
    }

    /// Looks at complete lines. Returns true if nothing more must be looked at.
    pub(super) fn look(&self, lines: &[u8]) -> bool {
        if self.found.load(Ordering::Relaxed) {
            return true;
        }
        let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
        let matches = |line: &[u8]| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.pattern.is_match(line.get(..MAX_LINE).unwrap_or(line))
        };
        let found = lines.split(|byte| *byte == b'\n').any(matches);
        if found && !self.found.swap(true, Ordering::Relaxed) {
            (self.report)();
        }
        found
    }
}

impl fmt::Debug for ReadyLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReadyLine").field("found", &self.found).finish_non_exhaustive()
    }
}
