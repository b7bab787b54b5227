//! `explain`: why a job is in its current state (X5). The sentences are made by `containerpilot_core::report`.

use super::answers::Explanation;
use super::client::{Client, percent_encoded};
use super::flags::Arguments;
use super::terminal::sanitized;
use super::{Failure, as_json, print};

pub(super) fn explain(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let answer = Client::of(args)?.get(&format!("/v3/jobs/{}/explain", percent_encoded(&name)))?.success()?;
    if json {
        return print(&format!("{}\n", answer.text().trim_end()));
    }
    let explanation: Explanation = answer.json()?;
    let lines: String = explanation.sentences.iter().map(|line| sanitized(line) + "\n").collect();
    print(&lines)
}
