//! The reference page of scenarios, made from the table of fields.

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
         This page is made from the program's own table, and a test keeps it true. What scenarios are for is told in \
         [Simulate](simulate.md). Values are read as in a configuration: a number is seconds, one value may stand where a list is \
         allowed, and keys that begin with `x-` are left alone. A scenario is no template.\n",
    );
    out.push_str(&tables_of(&ScenarioFields::INFO));
    out.push_str(
        "\n## Moments\n\nWhat can be expected to happen: who, and what, with a blank between them, such as `server healthy`, \
         `watch.db changed` or, where it happens to the whole, only what: `shutdown`. `SIGHUP` and `SIGUSR2` are moments too, \
         where a job waits for them.\n\n| what | who | it comes |\n| --- | --- | --- |\n",
    );
    for (word, who, when) in EVENTS.iter().chain(&WORDS) {
        let _ = writeln!(out, "| `{word}` | {who} | {when} |");
    }
    out
}
