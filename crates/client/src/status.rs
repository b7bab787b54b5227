//! `status`: the state of everything, or of one job, watch, rendered file or lock.

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::options::as_json;
use containerpilot_command_line::output::print;
use containerpilot_command_line::terminal::stdout_screen;
use containerpilot_views::status;

use super::client::Client;

pub(super) fn status(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let response = Client::of(args).get("/v3/status")?.success()?;
    let name = args.rest.first().map(|name| name.to_string_lossy());
    let text = status::printed(stdout_screen(), &response.body, name.as_deref(), json);
    print(&text.map_err(|error| Failure::Failed(error.to_string()))?)
}
