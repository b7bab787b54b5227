//! The vectors of `exec.json` (P8). Where 3.8 slips, the answer differs on purpose; each sort of slip is
//! recognised by what the case holds, and counted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use containerpilot_config::command;
use containerpilot_config::json5::{self, Node, Value};

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

fn field<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Value::Object(members) = &node.value else { return None };
    members.iter().rfind(|member| member.key == key).map(|member| &member.value)
}

fn arguments(raw: &Node) -> Option<Vec<String>> {
    let arguments: Vec<String> = match &raw.value {
        Value::String(text) => command::split(text),
        Value::List(items) => items
            .iter()
            .map(|item| match &item.value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(command::number_text(number)),
                Value::Bool(value) => Some(value.to_string()),
                Value::Null | Value::List(_) | Value::Object(_) => None,
            })
            .collect::<Option<_>>()?,
        _ => return None,
    };
    Some(arguments).filter(|arguments| !arguments.is_empty())
}

/// The name of the slip that explains why 3.8 answers otherwise, if one does.
fn departure(raw: &Node, expected: Option<&[String]>, found: Option<&[String]>) -> Option<&'static str> {
    match (&raw.value, expected?, found) {
        (Value::String(text), [empty], None) if empty.is_empty() && text.trim().is_empty() => {
            Some("a command of blanks is refused")
        }
        (Value::String(_), expected, Some(found)) => {
            let kept = expected.iter().filter(|argument| !argument.is_empty());
            kept.eq(found).then_some("runs of spaces count as one")
        }
        (Value::List(items), _, None) => {
            if items.iter().any(|item| matches!(item.value, Value::List(_) | Value::Object(_))) {
                return Some("a list or an object as an argument is refused");
            }
            items.iter().any(|item| item.value == Value::Null).then_some("null as an argument is refused")
        }
        (Value::List(items), expected, Some(found)) => {
            let explained = |((item, expected), found): ((&Node, &String), &String)| match &item.value {
                Value::Number(number) => {
                    expected == found || expected.contains('e') && expected.parse() == Ok(number.value)
                }
                _ => expected == found,
            };
            let same_length = items.len() == expected.len() && items.len() == found.len();
            let explained = same_length && items.iter().zip(expected).zip(found).all(explained);
            explained.then_some("numbers are written without an exponent")
        }
        _ => None,
    }
}

#[test]
fn p8_vectors_exec() {
    // Read with the project's own reader, because it keeps numbers as they are written.
    let text = std::fs::read_to_string(folder().join("exec.json")).unwrap();
    let parsed = json5::parse(format!("{{cases: {text}}}").as_bytes());
    assert_eq!(parsed.errors, []);
    let root = parsed.root.unwrap();
    let Some(Value::List(cases)) = field(&root, "cases").map(|cases| &cases.value) else { panic!() };
    let (mut failed, mut departures) = (0, BTreeMap::<_, usize>::new());
    for case in cases {
        let raw = field(case, "raw").unwrap();
        let expected = match field(case, "argv").map(|argv| &argv.value) {
            Some(Value::List(_)) => arguments(field(case, "argv").unwrap()),
            _ => None,
        };
        let found = arguments(raw);
        if found == expected {
            continue;
        }
        if let Some(slip) = departure(raw, expected.as_deref(), found.as_deref()) {
            *departures.entry(slip).or_default() += 1;
        } else {
            failed += 1;
            println!("exec.json {:?}: expected {expected:?}, found {found:?}", field(case, "id"));
        }
    }
    for (slip, count) in &departures {
        println!("exec.json: on purpose: {slip}: {count}");
    }
    let on_purpose: usize = departures.values().sum();
    println!(
        "exec.json: {} passed, {failed} failed, {on_purpose} differ on purpose",
        cases.len() - failed - on_purpose
    );
    assert_eq!(failed, 0);
}
