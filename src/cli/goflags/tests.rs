use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

fn kind(args: &[&str]) -> FlagErrorKind {
    parse(args).unwrap_err().kind
}

#[test]
fn x3_one_dash_or_two_with_or_without_equals() {
    for args in [&["-config", "c"][..], &["--config", "c"], &["-config=c"], &["--config=c"]] {
        assert_eq!(parse(args).unwrap().config, "c");
    }
}

#[test]
fn x3_an_unknown_flag_is_answered_with_the_nearest() {
    for (arg, suggestion) in [
        ("-confg", Some("-config")),
        ("-Config", Some("-config")),
        ("-c", Some("-config")),
        ("-t", Some("-template")),
        ("-maintenace", Some("-maintenance")),
        ("-put", Some("-putenv or -putmetric")),
        ("-bogus", None),
        ("-\u{fc}\u{fc}\u{fc}", None),
    ] {
        let error = parse(&[arg]).unwrap_err();
        assert_eq!(error.kind, FlagErrorKind::UnknownFlag);
        assert_eq!(
            error.message.split("did you mean ").nth(1).map(|rest| rest.trim_end_matches("?)")),
            suggestion
        );
    }
}

#[test]
fn x3_every_flag_of_the_table_has_a_place() {
    for flag in &FLAGS {
        let args = match flag.kind {
            FlagKind::Bool => vec![format!("-{}", flag.name)],
            FlagKind::Text => vec![format!("-{}", flag.name), "x".to_owned()],
            FlagKind::Pairs => vec![format!("-{}", flag.name), "k=v".to_owned()],
        };
        assert_ne!(parse(&args).unwrap(), Flags::default(), "-{}", flag.name);
        assert!(usage().contains(flag.help));
    }
}

#[cfg(unix)]
#[test]
fn x3_an_argument_that_is_not_utf8_is_kept_in_the_rest_and_refused_in_a_flag() {
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"x\xff");
    assert_eq!(parse(&[OsStr::new("-ping"), odd]).unwrap().rest, [odd]);
    assert_eq!(parse(&[OsStr::new("-config"), odd]).unwrap_err().kind, FlagErrorKind::BadSyntax);
    assert_eq!(parse(&[OsStr::from_bytes(b"-\xff")]).unwrap_err().kind, FlagErrorKind::BadSyntax);
}

#[test]
fn x3_help_is_no_failure() {
    assert_eq!(kind(&["-h"]), FlagErrorKind::Help);
    assert_eq!(parse(&["--help"]).unwrap_err().exit_code(), 0);
    assert_eq!(kind(&["-config"]), FlagErrorKind::MissingValue);
}

fn folder() -> PathBuf {
    let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/config/tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or_else(|| PathBuf::from(copy), PathBuf::from)
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Version => "version",
        Action::Template => "template",
        Action::Reload => "reload",
        Action::Maintenance => "maintenance",
        Action::PutEnv => "putenv",
        Action::PutMetric => "putmetric",
        Action::Ping => "ping",
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

/// What was made of the arguments, in the words of the vectors.
fn outcome(case: &Value) -> Value {
    let args: Vec<&str> = case["argv"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let flags = match parse(&args) {
        Ok(flags) => flags,
        Err(error) => {
            return json!({"ok": false, "error": error_name(error.kind), "exit": error.exit_code()});
        }
    };
    let rest: Vec<_> = flags.rest.iter().map(|arg| arg.to_str().unwrap()).collect();
    json!({
        "ok": true,
        "action": action_name(flags.action()),
        "effective_config": flags.effective_config(case["env"]["CONTAINERPILOT"].as_str()),
        "result": {
            "config": flags.config, "out": flags.out, "maintenance": flags.maintenance,
            "template": flags.template, "reload": flags.reload, "ping": flags.ping, "version": flags.version,
            "putenv": flags.putenv, "putmetric": flags.putmetric, "rest": rest,
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
        // A field that the case leaves out, such as the path when only the version is printed, does not matter.
        let same = fields
            .iter()
            .all(|field| case.get(field).is_none_or(|expected| found.get(field) == Some(expected)));
        if !same {
            failed += 1;
            println!("flags.json {} {}: expected {case}, found {found}", case["id"], case["argv"]);
        }
    }
    println!("flags.json: {} passed, {failed} failed", cases.len() - failed);
    assert_eq!(failed, 0);
}
