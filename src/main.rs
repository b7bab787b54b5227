//! The `containerpilot` program: what a container needs while it runs. `crates/client` has the commands,
//! `crates/supervisor` the supervisor.
#![no_main]
#![forbid(unsafe_code)]

use std::ffi::OsString;

containerpilot_process::entry!(run);

fn run(args: &[OsString]) -> u8 {
    containerpilot_client::main(args, containerpilot_supervisor::supervise)
}
