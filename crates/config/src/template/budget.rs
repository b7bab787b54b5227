//! Keeps one rendering within its bounds.

use super::funcs::Problem;
use crate::limits;

/// What a rendering has used up.
#[derive(Debug, Default)]
pub(super) struct Budget {
    steps: u64,
    bytes: u64,
}

impl Budget {
    /// Counts steps: nodes visited, turns of a loop, moves of a regular expression.
    pub(super) fn step(&mut self, steps: u64) -> Result<(), Problem> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > limits::TEMPLATE_STEPS {
            return Err(Problem::fatal(format!(
                "the template takes more than {} steps",
                limits::TEMPLATE_STEPS
            ))
            .help("look for a `loop` with a large number, or a template that calls itself"));
        }
        Ok(())
    }

    /// Counts bytes before they are made.
    pub(super) fn bytes(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > limits::TEMPLATE_BYTES {
            return Err(too_much());
        }
        Ok(())
    }

    /// How many bytes may still be made.
    pub(super) fn left(&self) -> usize {
        usize::try_from(limits::TEMPLATE_BYTES.saturating_sub(self.bytes)).unwrap_or(usize::MAX)
    }
}

/// The problem of a rendering that makes too much text.
pub(super) fn too_much() -> Problem {
    Problem::fatal(format!(
        "the template makes more than {} MB of text",
        limits::TEMPLATE_BYTES / (1024 * 1024)
    ))
    .help("look for a text that grows with every turn of a `range`")
}
