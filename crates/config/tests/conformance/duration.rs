//! `duration.json`: durations as a field of a configuration holds them.

use containerpilot_config::decode::weak_text;
use containerpilot_config::duration;
use containerpilot_config::json5::{self, Value as Json5};
use serde_json::Value;

use super::harness::{Outcome, run};

#[test]
fn c3_vectors_duration() {
    run("duration.json", |case| {
        let parsed = json5::parse(format!("{{v: {}}}", case["input"]).as_bytes());
        let Some(Json5::Object(members)) = parsed.root.map(|root| root.value) else {
            return Outcome::Failed("no value".to_owned());
        };
        let found = weak_text(&members[0].value.value).map(|text| duration::parse(&text));
        let expected = &case["as_field"];
        let expected = if expected["ok"] == Value::Bool(true) { expected["ns"].as_i64() } else { None };
        if found.as_ref().and_then(|found| found.as_ref().ok().copied()) == expected {
            Outcome::Passed
        } else {
            Outcome::Failed(format!("{}: expected {expected:?}, found {found:?}", case["input"]))
        }
    });
}
