//! `migrate -from PROGRAM`: the real binary converts the fixtures of each program, and `check` accepts the results
//! (C11).
//!
//! A fixture is a file or a folder `tests/tools/import/KIND/NAME`; `tests/tools/import/KIND/NAME.expected` has what the
//! command prints. `BLESS=1` rewrites the expected files.

mod beside;
mod fixtures;
mod recorded;
mod units;

use crate::tools;
use fixtures::convert_all;

#[test]
fn c11_procfiles_are_converted() {
    convert_all("procfile");
}

#[test]
fn c11_files_of_supervisord_are_converted() {
    convert_all("supervisord");
}

#[test]
fn c11_compose_files_are_converted() {
    convert_all("compose");
}

#[test]
fn c11_process_compose_files_are_converted() {
    convert_all("process-compose");
}

#[test]
fn c11_pebble_layers_are_converted() {
    convert_all("pebble");
}

#[test]
fn c11_s6_directories_are_converted() {
    convert_all("s6");
}

#[test]
fn c11_systemd_units_are_converted() {
    convert_all("systemd");
}

#[test]
fn c11_a_file_on_standard_input_is_converted() {
    let done = fixtures::run(
        tools(),
        &fixtures::folder("procfile"),
        &["migrate", "-from", "procfile", "-"],
        "web: serve\n",
    );
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && out.contains("// -:1  web: serve\n"), "{out}");
}

#[test]
fn c11_wrong_command_lines_are_refused() {
    let refused = |words: &[&str]| {
        let done = fixtures::run(
            tools(),
            &fixtures::folder("procfile"),
            &[&["migrate", "-from"], words].concat(),
            "",
        );
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {err}");
        err
    };
    assert!(refused(&["docker-compose", "x"]).contains("(did you mean `compose`?)"));
    assert!(refused(&["s6-overlay", "x"]).contains("(did you mean `s6`?)"));
    assert!(refused(&["supervisor", "x"]).contains("(did you mean `supervisord`?)"));
    assert!(!refused(&["nothing", "x"]).contains("did you mean"));
    assert!(refused(&["procfile"]).contains("name the files of procfile"));
    for words in [&["procfile", "--", "node"][..], &["procfile", "Procfile", "--", "node"]] {
        assert!(refused(words).contains("`-- PROGRAM` is for ContainerPilot 2 files"));
    }
}

#[test]
fn c11_s6_needs_a_directory() {
    for (path, why) in [
        ("-", "cannot read -: standard input is not a directory: name an s6-rc source directory"),
        ("nothing-here", "cannot read nothing-here: no such file or directory"),
        ("legacy.expected", "cannot read legacy.expected: it is not a directory: name an s6-rc"),
    ] {
        let done = fixtures::migrate("s6", &fixtures::folder("s6"), path);
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(error.contains(why), "{error}");
    }
}
