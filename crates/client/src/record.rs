//! `record`: the recording of a running supervisor (B3).

use std::io::{self, IsTerminal};

use containerpilot_command_line::failure::Failure;
use containerpilot_command_line::flags::Arguments;
use containerpilot_command_line::output::write;

use super::client::Client;

pub(super) fn record(args: &Arguments) -> Result<(), Failure> {
    let out = args.text("out");
    if matches!(out, "" | "-") && io::stdout().is_terminal() {
        let why = "a recording is not text: redirect it, as in `containerpilot record > incident.cprec`, or use --out";
        return Err(Failure::Usage(why.to_owned()));
    }
    let response = Client::of(args).get("/v3/recording")?;
    if !response.is_success() {
        return Err(Failure::Failed(response.reason()));
    }
    write(out, &response.body)
}
