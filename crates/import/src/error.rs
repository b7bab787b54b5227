//! Why a configuration cannot be converted.

use std::borrow::Cow;

/// Why a configuration cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        why: String,
    },
    /// A file is not in the format of its program.
    #[error("{file}:{line}: {message}")]
    Invalid {
        /// The file.
        file: String,
        /// Its line, starting with 1.
        line: usize,
        /// What is wrong, and what to do.
        message: String,
    },
    /// The files contain nothing that could run.
    #[error("{path}: {message}")]
    Empty {
        /// The file or directory.
        path: String,
        /// What was expected there.
        message: Cow<'static, str>,
    },
}
