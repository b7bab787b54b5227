//! `explain`: why a job is in its current state (X5), or what a watch knows (X9). `containerpilot_core::report` builds the
//! sentences.

use super::client::Client;
use super::flags::Arguments;
use super::responses::{Explanation, WatchExplanation};
use super::terminal::sanitized;
use super::{Failure, as_json, print};
use crate::net::percent_encoded;

pub(super) fn explain(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let client = Client::of(args);
    let mut response = client.get(&format!("/v3/jobs/{}/explain", percent_encoded(&name)))?;
    let watch = name.strip_prefix("watch.").filter(|_| response.is_not_found());
    if let Some(watch) = watch {
        response = client.get(&format!("/v3/watches/{}/explain", percent_encoded(watch)))?;
    }
    let response = response.success()?;
    if json {
        return print(&format!("{}\n", response.text().trim_end()));
    }
    let sentences = match watch {
        Some(_) => response.json::<WatchExplanation>()?.sentences,
        None => response.json::<Explanation>()?.sentences,
    };
    print(&sentences.iter().map(|line| sanitized(line) + "\n").collect::<String>())
}
