//! `exec.json`: commands in `exec` of a job.

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};
use serde_json::Value;

use super::harness::{Outcome, run};

#[test]
fn p8_vectors_exec() {
    run("exec.json", |case| {
        let raw = &case["raw"];
        let expected: Option<Vec<String>> = case["argv"]
            .as_array()
            .map(|words| words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect());
        let found = arguments(raw);
        if found == expected {
            return Outcome::Passed;
        }
        match expected.as_deref().and_then(|expected| deviation(raw, expected, found.as_deref())) {
            Some(name) => Outcome::Deviates(name),
            None => Outcome::Failed(format!("{raw}: expected {expected:?}, found {found:?}")),
        }
    });
}

/// The program and its arguments in the plan.
fn arguments(raw: &Value) -> Option<Vec<String>> {
    let text = format!("{{ jobs: [{{ name: \"a\", exec: {raw} }}] }}");
    let input = ConfigFile { name: "exec".into(), text: text.into() };
    let loaded = load(vec![input], &StaticHost::default(), Options { version: "" });
    let command = loaded.plan?.jobs.into_iter().next()?.exec.program().cloned()?;
    let words = std::iter::once(&command.program).chain(&command.arguments);
    Some(words.map(|word| word.text().into_owned()).collect())
}

/// The deviation that explains a different result of 3.8, if any.
fn deviation(raw: &Value, expected: &[String], found: Option<&[String]>) -> Option<&'static str> {
    match (raw, found) {
        (_, None) if expected.first().is_some_and(String::is_empty) => Some("blank-commands"),
        (Value::String(_), Some(found)) => {
            expected.iter().filter(|word| !word.is_empty()).eq(found).then_some("command-slips")
        }
        (Value::Array(items), None) => {
            let odd = |item: &Value| item.is_null() || item.is_array() || item.is_object();
            items.iter().any(odd).then_some("odd-arguments")
        }
        (Value::Array(items), Some(found)) => {
            let explained = |((item, expected), found): ((&Value, &String), &String)| {
                let exponent = item.is_number() && expected.contains('e');
                expected == found || exponent && expected.parse::<f64>().ok() == item.as_f64()
            };
            let same_length = items.len() == expected.len() && items.len() == found.len();
            (same_length && items.iter().zip(expected).zip(found).all(explained)).then_some("command-slips")
        }
        _ => None,
    }
}
