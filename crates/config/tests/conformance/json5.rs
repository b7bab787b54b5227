//! `json5.json`: every JSON5 1.0 text is read, and only those. Where 3.8's reader differs from the specification, the
//! specification counts, and the case is a deviation.

use containerpilot_config::json5::{self, Node, SyntaxKind, Value as Json5};
use serde_json::Value;

use super::harness::{Outcome, bytes, run};

#[test]
fn c3_vectors_json5() {
    run("json5.json", |case| match check(case) {
        Ok(()) if case["spec"] == Value::Bool(true) => Outcome::Passed,
        Ok(()) => Outcome::Deviates("json5"),
        Err(why) => Outcome::Failed(why),
    });
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
    let text = bytes(case, "text");
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
