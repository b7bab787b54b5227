//! Command lines with the results of 3.8, from `flags.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::action::{Action, action};
use crate::flags::{FlagErrorKind, parse};
use crate::table::MAIN_FLAGS;

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Version => "version",
        Action::Template => "template",
        Action::Control(name) => name,
        Action::Run => "run",
    }
}

fn error_name(kind: FlagErrorKind) -> &'static str {
    match kind {
        FlagErrorKind::Help => "help",
        FlagErrorKind::UnknownFlag => "unknown-flag",
        FlagErrorKind::MissingValue => "missing-value",
        FlagErrorKind::BadBoolean => "bad-boolean",
        FlagErrorKind::BadPair => "bad-pair",
        FlagErrorKind::BadSyntax => "bad-syntax",
    }
}

/// The result of parsing, in the format of the vectors.
fn outcome(case: &Value) -> Value {
    let args: Vec<&str> = case["argv"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let flags = match parse(MAIN_FLAGS, &args) {
        Ok(flags) => flags,
        Err(error) => {
            return json!({"ok": false, "error": error_name(error.kind), "exit": if error.kind == FlagErrorKind::Help { 0 } else { 2 }});
        }
    };
    let rest: Vec<_> = flags.rest.iter().map(|arg| arg.to_str().unwrap()).collect();
    let pairs = |name| flags.pairs(name).into_iter().collect::<BTreeMap<_, _>>();
    json!({
        "ok": true,
        "action": action_name(action(&flags)),
        "effective_config": match flags.text("config") {
            "" => case["env"]["CONTAINERPILOT"].as_str().unwrap_or_default(),
            path => path,
        },
        "result": {
            "config": flags.text("config"), "out": flags.text("out"), "maintenance": flags.text("maintenance"),
            "template": flags.is_on("template"), "reload": flags.is_on("reload"), "ping": flags.is_on("ping"),
            "version": flags.is_on("version"), "putenv": pairs("putenv"), "putmetric": pairs("putmetric"),
            "rest": rest,
        },
    })
}

#[test]
fn x3_vectors_flags() {
    let text = std::fs::read_to_string(folder().join("flags.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut failed = 0;
    for case in &cases {
        let found = outcome(case);
        let fields = ["ok", "error", "exit", "action", "effective_config", "result"];
        // Fields that the case does not have are not compared.
        let same = fields
            .iter()
            .all(|field| case.get(field).is_none_or(|expected| found.get(field) == Some(expected)));
        if !same {
            failed += 1;
            println!("flags.json {} {}: expected {case}, found {found}", case["id"], case["argv"]);
        }
    }
    // Not `println!`, which the test runner captures.
    let figures = format!("flags.json: {} passed, {failed} failed\n", cases.len() - failed);
    let _ = std::io::Write::write_all(&mut std::io::stdout(), figures.as_bytes());
    assert_eq!(failed, 0);
}
