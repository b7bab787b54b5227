//! The program behind the playground of the manual (`docs/playground`): reads a configuration and a scenario, and
//! writes the output of `check`, `graph` and `simulate`.
//!
//! It is compiled to WebAssembly and runs once for each change of the text. Request and answer are JSON, on standard
//! input and output: a page needs no other interface to run it, and a test runs it as any other program.
#![forbid(unsafe_code)]

mod answer;

use std::io::{Read, Write, stdin, stdout};
use std::process::ExitCode;

use crate::answer::{Request, answer};

/// A page sends less.
const MAX_BYTES: u64 = 4 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the exit code still reports the failure.
            let _ = writeln!(std::io::stderr(), "playground: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> std::io::Result<()> {
    let mut text = Vec::new();
    stdin().take(MAX_BYTES).read_to_end(&mut text)?;
    let request: Request = serde_json::from_slice(&text)?;
    let mut out = serde_json::to_vec(&answer(request))?;
    out.push(b'\n');
    stdout().write_all(&out)
}
