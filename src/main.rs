//! The `containerpilot` program. Everything is in the library, so that tests and fuzz targets can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    containerpilot::main()
}
