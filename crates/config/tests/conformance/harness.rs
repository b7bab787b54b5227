//! Reads cases and counts results.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use containerpilot_config::template::Environment;
use serde_json::Value;

/// The result of a case.
pub(crate) enum Outcome {
    /// The same as in 3.8.
    Passed,
    /// Different on purpose; the name of the deviation in `docs/compat.md`.
    Deviates(&'static str),
    /// Different, but not on purpose.
    Failed(String),
}

/// The cases of one file.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let folder = std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from);
    let path = folder.join(file);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs every case of a file, prints the counts, and panics if a case failed.
pub(crate) fn run(file: &str, check: impl Fn(&Value) -> Outcome) {
    let (mut passed, mut failures, mut deviations) = (0, Vec::new(), BTreeMap::<_, usize>::new());
    for case in cases(file) {
        match check(&case) {
            Outcome::Passed => passed += 1,
            Outcome::Deviates(name) => *deviations.entry(name).or_default() += 1,
            Outcome::Failed(why) => failures.push(format!("{}: {why}", text(&case, "id"))),
        }
    }
    let deviating: usize = deviations.values().sum();
    let mut figures = format!("{file}: {} passed, {} failed", passed + deviating, failures.len());
    if deviating > 0 {
        let names: Vec<_> = deviations.iter().map(|(name, count)| format!("{name} {count}")).collect();
        figures += &format!("; of the passed, {deviating} deviate on purpose: {}", names.join(", "));
    }
    for failure in &failures {
        figures += &format!("\n    FAILED {failure}");
    }
    say(&figures);
    assert!(failures.is_empty(), "{} cases of {file} failed", failures.len());
}

/// Prints a line even if the test passes.
pub(crate) fn say(figures: &str) {
    let _ = writeln!(std::io::stdout(), "{figures}");
}

/// A string of a case, or the empty string.
pub(crate) fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

/// Returns true if 3.8 accepts the case.
pub(crate) fn accepted(case: &Value) -> bool {
    case["ok"].as_bool().unwrap_or_default()
}

/// Bytes of a case: a string, or base64 in `KEY_b64` if they are not UTF-8.
pub(crate) fn bytes(case: &Value, key: &str) -> Vec<u8> {
    match case[key].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => base64(text(case, &format!("{key}_b64"))),
    }
}

/// The environment of a case.
pub(crate) fn environment(case: &Value) -> Environment {
    let variables = case["env"].as_object().into_iter().flatten();
    variables
        .map(|(name, value)| {
            (name.clone().into_bytes(), value.as_str().unwrap_or_default().as_bytes().to_vec())
        })
        .collect()
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
