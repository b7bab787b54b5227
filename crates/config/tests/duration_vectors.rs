//! The vectors of `duration.json`, as configurations reach the parser: through a text field (C3).

use std::path::PathBuf;

use containerpilot_config::duration;
use serde_json::Value;

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

/// The text a text field makes of a value; lists and objects are none.
fn field_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(value) => Some(u8::from(*value).to_string()),
        Value::Number(number) => number.as_f64().map(|number| number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn check(case: &Value) -> Result<(), String> {
    let expected = &case["as_field"];
    let found = field_text(&case["input"]).map(|text| duration::parse(&text));
    let ns = found.as_ref().and_then(|found| found.as_ref().ok().copied());
    let expected = if expected["ok"] == Value::Bool(true) { expected["ns"].as_i64() } else { None };
    if ns == expected { Ok(()) } else { Err(format!("expected {expected:?}, found {found:?}")) }
}

#[test]
fn c3_vectors_duration() {
    let text = std::fs::read_to_string(folder().join("duration.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut failed = 0;
    for case in &cases {
        if let Err(reason) = check(case) {
            failed += 1;
            println!("duration.json {} {}: {reason}", case["id"], case["input"]);
        }
    }
    println!("duration.json: {} passed, {failed} failed", cases.len() - failed);
    assert_eq!(failed, 0);
}
