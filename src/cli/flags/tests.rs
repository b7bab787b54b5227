use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::table::MAIN_FLAGS;
use super::super::{Action, action};
use super::*;

fn parse<A: AsRef<OsStr>>(args: &[A]) -> Result<Arguments, FlagError> {
    super::parse(MAIN_FLAGS, args)
}

fn kind(args: &[&str]) -> FlagErrorKind {
    parse(args).unwrap_err().kind
}

#[test]
fn x3_one_dash_or_two_with_or_without_equals() {
    for args in [&["-config", "c"][..], &["--config", "c"], &["-config=c"], &["--config=c"]] {
        assert_eq!(parse(args).unwrap().text("config"), "c");
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
fn x3_flags_may_stand_behind_a_subcommands_arguments() {
    let args: Vec<OsString> = ["a", "-ping", "b", "--", "-config"].into_iter().map(OsString::from).collect();
    let found = parse_mixed(MAIN_FLAGS, &args).unwrap();
    assert!(found.is_on("ping"));
    assert_eq!(found.rest, ["a", "b", "-config"]);
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
    assert_eq!(kind(&["--help"]), FlagErrorKind::Help);
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

/// What was made of the arguments, in the words of the vectors.
fn outcome(case: &Value) -> Value {
    let args: Vec<&str> = case["argv"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let flags = match parse(&args) {
        Ok(flags) => flags,
        Err(error) => {
            return json!({"ok": false, "error": error_name(error.kind), "exit": if error.kind == FlagErrorKind::Help { 0 } else { 2 }});
        }
    };
    let rest: Vec<_> = flags.rest.iter().map(|arg| arg.to_str().unwrap()).collect();
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
            "version": flags.is_on("version"), "putenv": flags.pairs("putenv"), "putmetric": flags.pairs("putmetric"),
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
        // A field that the case leaves out, such as the path when only the version is printed, does not matter.
        let same = fields
            .iter()
            .all(|field| case.get(field).is_none_or(|expected| found.get(field) == Some(expected)));
        if !same {
            failed += 1;
            println!("flags.json {} {}: expected {case}, found {found}", case["id"], case["argv"]);
        }
    }
    // Directly, because the test runner keeps what `println!` prints to itself.
    let figures = format!("flags.json: {} passed, {failed} failed\n", cases.len() - failed);
    let _ = std::io::Write::write_all(&mut std::io::stdout(), figures.as_bytes());
    assert_eq!(failed, 0);
}
