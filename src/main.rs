//! The `containerpilot` program: what a container needs while it runs. `crates/client` has the commands,
//! `crates/supervisor` the supervisor.
#![no_main]
#![forbid(unsafe_code)]

use std::ffi::OsString;

use containerpilot_client::Supervisor;

containerpilot_process::entry!(run);

fn run(args: &[OsString]) -> u8 {
    let (run, check) = (containerpilot_supervisor::supervise, containerpilot_supervisor::check_credentials);
    containerpilot_client::main(args, Supervisor { run, check })
}
