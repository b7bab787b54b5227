//! `completions jobs`: what the completion scripts ask for. `containerpilot-tools` prints the scripts themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use containerpilot_api::responses::Status;
use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output::print;
use containerpilot_core::inserted;
use containerpilot_text::screen::sanitized;

use crate::client::Client;

/// Prints the names of the running supervisor's jobs and groups, one per line; nothing if the supervisor does not
/// answer.
pub(crate) fn jobs(args: &Arguments) -> Result<(), Failure> {
    // Completion must be fast and must not print errors.
    let client = Client::of(&args.flags_only()).with_timeout(Duration::from_secs(1));
    let status = client.get("/v3/status").map_err(Failure::from).and_then(|response| response.json());
    let status: Status = status.unwrap_or_default();
    let groups: BTreeSet<String> =
        inserted(status.jobs.iter().flat_map(|job| &job.groups).map(|group| format!("@{group}")));
    let names = status.jobs.iter().map(|job| &job.name).chain(&groups);
    print(&names.map(|name| format!("{}\n", sanitized(name))).collect::<String>())
}
