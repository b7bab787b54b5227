use super::*;
use crate::table::MAIN_FLAGS;

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
fn x3_an_unknown_flag_gets_a_suggestion() {
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
fn x3_flags_may_follow_the_arguments_of_a_subcommand() {
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
fn x3_help_is_not_an_error() {
    assert_eq!(kind(&["-h"]), FlagErrorKind::Help);
    assert_eq!(kind(&["--help"]), FlagErrorKind::Help);
    assert_eq!(kind(&["-config"]), FlagErrorKind::MissingValue);
}

#[test]
fn x4_a_value_that_may_be_a_secret_is_not_repeated() {
    assert_eq!(not_a_pair("argument 1", "FOO_BAR"), "`FOO_BAR` is not KEY=VALUE");
    for value in ["", "hush", "A1B2", "=x"] {
        assert_eq!(not_a_pair("argument 2", value), "argument 2 is not KEY=VALUE", "{value}");
    }
    assert_eq!(parse(&["-putenv", "hush"]).unwrap_err().message, "the value of -putenv is not KEY=VALUE");
}
