//! The reference page of scenarios, generated from the fields.

use std::fmt::Write;

use containerpilot_config::decode::Section;
use containerpilot_config::reference::{EVENTS, tables_of};

use crate::fields::ScenarioFields;
use crate::moment::WORDS;

/// The page, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from(
        "# Reference: every key of a scenario\n\n\
         This page is generated from the fields in the program, and a test keeps it up to date. See [Simulate](simulate.md) for \
         what scenarios are for. Values have the same form as in a configuration: a number is in seconds, a single value can replace a \
         list, and keys that start with `x-` are ignored. A scenario is not a template.\n",
    );
    out.push_str(&tables_of(&ScenarioFields::INFO));
    out.push_str(
        "\n## Moments\n\nWhat an expectation can name: a source and a word, such as `server healthy` or `watch.db changed`. A moment \
         of the supervisor is only a word, such as `shutdown`. Signals such as `SIGHUP` are moments if a job \
         waits for them.\n\n| word | source | when it happens |\n| --- | --- | --- |\n",
    );
    for (word, who, when) in EVENTS.iter().chain(&WORDS) {
        let _ = writeln!(out, "| `{word}` | {who} | {when} |");
    }
    out
}
