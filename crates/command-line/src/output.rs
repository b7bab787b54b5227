//! Writes to standard output and to files.

use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::failure::Failure;

/// Prints to standard output. A closed pipe is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    write_stdout(text.as_bytes()).map(drop)
}

/// Writes to standard output. Returns false if its reader has gone.
pub fn write_stdout(bytes: &[u8]) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes to the file `out`, or to standard output if it is empty or `-`.
pub fn write(out: &str, text: &[u8]) -> Result<(), Failure> {
    if !matches!(out, "" | "-") {
        return std::fs::write(Path::new(out), text)
            .map_err(|error| Failure::Failed(format!("cannot write {out}: {error}")));
    }
    write_stdout(text).map(drop)
}
