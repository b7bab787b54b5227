//! Limits the steps and the memory of one rendering.

use crate::error::FunctionError;
use crate::limits;

/// The steps and bytes used so far.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    steps: u64,
    bytes: u64,
}

impl Budget {
    /// Charges steps: nodes visited, iterations of a loop, steps of a regular expression.
    pub(crate) fn step(&mut self, steps: u64) -> Result<(), FunctionError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > limits::STEPS {
            return Err(FunctionError::fatal(format!(
                "the template takes more than {} steps",
                limits::STEPS
            ))
            .help("look for a `loop` with a large number or a template that calls itself"));
        }
        Ok(())
    }

    /// Charges bytes before they are allocated.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<(), FunctionError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > limits::BYTES {
            return Err(too_many_bytes());
        }
        Ok(())
    }

    /// The number of bytes that remain.
    pub(crate) fn remaining(&self) -> usize {
        usize::try_from(limits::BYTES.saturating_sub(self.bytes)).unwrap_or(usize::MAX)
    }
}

/// The error of a rendering that exceeds its memory.
pub(crate) fn too_many_bytes() -> FunctionError {
    FunctionError::fatal(format!(
        "the template creates more than {} MiB of text",
        limits::BYTES / (1024 * 1024)
    ))
    .help("look for a string that grows with every iteration of a `range`")
}
