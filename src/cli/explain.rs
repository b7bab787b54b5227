//! `explain`: why a job is in its current state (X5). `containerpilot_core::report` builds the sentences.

use super::client::Client;
use super::flags::Arguments;
use super::responses::Explanation;
use super::terminal::sanitized;
use super::{Failure, as_json, print};
use crate::net::percent_encoded;

pub(super) fn explain(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let response =
        Client::of(args)?.get(&format!("/v3/jobs/{}/explain", percent_encoded(&name)))?.success()?;
    if json {
        return print(&format!("{}\n", response.text().trim_end()));
    }
    let explanation: Explanation = response.json()?;
    let lines: String = explanation.sentences.iter().map(|line| sanitized(line) + "\n").collect();
    print(&lines)
}
