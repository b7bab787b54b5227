//! The conformance vectors for templates (C2): the answers of ContainerPilot 3.8 itself.

use containerpilot_config::template::{Environment, Stage, render};
use serde_json::Value;
use std::path::PathBuf;

#[test]
fn c2_template_vectors() {
    let folder = std::env::var_os("VECTORS_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"), PathBuf::from);
    let text = std::fs::read_to_string(folder.join("template.json")).expect("the vectors are there");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("the vectors are a list");
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    for failure in &failures {
        println!("{failure}");
    }
    println!("template.json: {} passed, {} failed", cases.len() - failures.len(), failures.len());
    assert!(failures.is_empty(), "{} cases failed", failures.len());
}

fn check(case: &Value) -> Result<(), String> {
    let id = case["id"].as_str().unwrap_or("?");
    let template = case["template"].as_str().unwrap_or_default();
    let env: Environment = case["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            (name.clone().into_bytes(), value.as_str().unwrap_or_default().as_bytes().to_vec())
        })
        .collect();
    let crashes =
        case["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == "reference-crashes"));
    let answer = render(template.as_bytes(), &env);
    if crashes {
        return Ok(());
    }
    let expected = match (case["ok"].as_bool(), case["output"].as_str(), case["output_b64"].as_str()) {
        (Some(true), Some(text), _) => Ok(text.as_bytes().to_vec()),
        (Some(true), None, Some(encoded)) => Ok(base64(encoded)),
        _ => Err(if case["stage"] == "parse" { Stage::Parse } else { Stage::Exec }),
    };
    let answer = match answer {
        Ok(rendered) => Ok(rendered.text),
        Err(errors) => match errors.first() {
            Some(first) => Err(first.stage),
            None => return Err(format!("{id}: an error without a message")),
        },
    };
    if answer == expected {
        return Ok(());
    }
    let shown = |answer: &Result<Vec<u8>, Stage>| match answer {
        Ok(text) => format!("{:?}", String::from_utf8_lossy(text)),
        Err(stage) => format!("{stage:?} error"),
    };
    Err(format!("{id}: {template:?}\n  expected {}\n  got      {}", shown(&expected), shown(&answer)))
}

fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    out
}
