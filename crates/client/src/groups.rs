//! Groups of jobs on the command line: `@web` stands for the jobs of the group (W22).

use containerpilot_api::job_names::is_group;
use containerpilot_api::responses::Status;
use containerpilot_command_line::failure::Failure;

use super::client::Client;

/// The jobs that names mean. The status is read only if one of them is a group.
pub(super) fn expanded(client: &Client, names: &[&str]) -> Result<Vec<String>, Failure> {
    if !names.iter().any(|name| is_group(name)) {
        return Ok(names.iter().map(|name| (*name).to_owned()).collect());
    }
    Ok(client.get("/v3/status")?.json::<Status>()?.expanded(names)?)
}
