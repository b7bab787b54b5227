//! The vectors of `json5.json`: C3 reads every JSON5 1.0 text, and only those.

use std::path::PathBuf;

use containerpilot_config::json5::{self, Node, SyntaxKind, Value as Json5};
use serde_json::Value;

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | u32::from(digit(byte));
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Equal by value; the last of several equal keys counts.
fn same(node: &Node, expected: &Value) -> bool {
    if let Some(name) = expected.get("$number").and_then(Value::as_str) {
        let Json5::Number(number) = &node.value else { return false };
        return match name {
            "NaN" => number.value.is_nan(),
            "Infinity" => number.value == f64::INFINITY,
            "-Infinity" => number.value == f64::NEG_INFINITY,
            _ => number.value == 0.0 && number.value.is_sign_negative(),
        };
    }
    match (&node.value, expected) {
        (Json5::Null, Value::Null) => true,
        (Json5::Bool(found), Value::Bool(expected)) => found == expected,
        (Json5::Number(found), Value::Number(expected)) => Some(found.value) == expected.as_f64(),
        (Json5::String(found), Value::String(expected)) => found == expected,
        (Json5::List(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| same(a, b))
        }
        (Json5::Object(found), Value::Object(expected)) => {
            found.iter().all(|member| expected.contains_key(&member.key))
                && expected.iter().all(|(key, value)| {
                    found
                        .iter()
                        .rfind(|member| member.key == *key)
                        .is_some_and(|member| same(&member.value, value))
                })
        }
        _ => false,
    }
}

fn check(case: &Value) -> Result<(), String> {
    let text = match (case["text"].as_str(), case["text_b64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(text)) => base64(text),
        _ => return Err("no text".to_owned()),
    };
    let specified = case["spec"] == Value::Bool(true);
    let ok = if specified { &case["ok"] } else { &case["spec_ok"] } == &Value::Bool(true);
    let parsed = json5::parse(&text);
    if parsed.errors.is_empty() != ok {
        return Err(format!("expected ok {ok}, found {:?}", parsed.errors));
    }
    if !ok {
        let not_object = case["kind"] == "not-object";
        let found = parsed.errors.iter().any(|error| error.kind == SyntaxKind::NotObject);
        return if found == not_object { Ok(()) } else { Err(format!("{:?}", parsed.errors)) };
    }
    let deep;
    let field = if specified { "value" } else { "spec_value" };
    let expected = match case[&format!("{field}_json")].as_str() {
        Some(json) => {
            let mut reader = serde_json::Deserializer::from_str(json);
            reader.disable_recursion_limit();
            deep = serde::de::Deserialize::deserialize(&mut reader).map_err(|error| format!("{error}"))?;
            &deep
        }
        None => &case[field],
    };
    let root = parsed.root.ok_or("no root")?;
    if same(&root, expected) { Ok(()) } else { Err(format!("expected {expected}, found {:?}", root.value)) }
}

#[test]
fn c3_vectors_json5() {
    let text = std::fs::read_to_string(folder().join("json5.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut failed = 0;
    for case in &cases {
        if let Err(reason) = check(case) {
            failed += 1;
            println!("json5.json {} {}: {reason}", case["id"], case["text"]);
        }
    }
    println!("json5.json: {} passed, {failed} failed", cases.len() - failed);
    assert_eq!(failed, 0);
}
