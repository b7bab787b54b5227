//! `explain`: why a job runs, or does not (X5). The supervisor knows the sentences; they are only printed here.

use serde_json::Value;

use super::answer::Look;
use super::client::{Client, percent_encoded};
use super::flags::Arguments;
use super::terminal::visible;
use super::{Failure, as_json, print};

pub(super) fn explain(args: &Arguments) -> Result<(), Failure> {
    let json = as_json(args)?;
    let name = args.rest.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let answer = Client::of(args)?.get(&format!("/v3/jobs/{}/explain", percent_encoded(&name)))?.success()?;
    if json {
        return print(&format!("{}\n", answer.text().trim_end()));
    }
    let explanation = answer.json()?;
    let sentences = explanation.list("sentences").iter().filter_map(Value::as_str);
    let lines: String = sentences.map(|line| visible(line) + "\n").collect();
    print(&lines)
}
