//! Unusual uses of the command line (C1, C5, X4, X6).

use crate::support::deadline::InTime;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_containerpilot");

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn containerpilot(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(BINARY);
    let Output { status, stdout, stderr } =
        command.args(arguments).env_remove("CONTAINERPILOT").output_in_time().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn c1_dangling_symlink_in_a_directory_is_an_error() {
    let folder = folder("dangling");
    std::fs::write(folder.join("10.json5"), "{}").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("20.json5")).unwrap();
    let (code, _, stderr) = containerpilot(&["check", folder.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("20.json5: no such file or directory"), "{stderr}");
}

#[test]
fn c1_subdirectory_of_a_directory_is_ignored() {
    let folder = folder("nested");
    std::fs::write(folder.join("10.json5"), "{}").unwrap();
    std::fs::create_dir(folder.join("20.json5")).unwrap();
    assert_eq!(containerpilot(&["check", folder.to_str().unwrap()]).0, Some(0));
}

#[test]
fn x4_format_json_prints_json_even_for_unreadable_files() {
    let (code, stdout, stderr) = containerpilot(&["check", "--format", "json", "/nonexistent.json5"]);
    assert_eq!(code, Some(1));
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["ok"], false);
    let message = answer["problems"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot read /nonexistent.json5: no such"), "{message}");
    assert!(stderr.contains(message), "{stderr}");
}

#[test]
fn x6_empty_path_is_reported() {
    let (code, _, stderr) = containerpilot(&["check", ""]);
    assert_eq!(
        (code, stderr.as_str()),
        (Some(1), "containerpilot: the path of the configuration is empty\n")
    );
}

/// A host on which scripts, directories and the user are not as the configuration needs them.
#[test]
fn c7_check_looks_at_scripts_directories_and_users() {
    let folder = folder("processes");
    for (name, text) in [
        ("good", "#!/bin/sh\n"),
        ("env", "#!/usr/bin/env -S sh -e\n"),
        ("windows", "#!/bin/sh\r\necho hi\r\n"),
        ("missing", "#! /nonexistent/sh -e\n"),
        ("no-python", "#!/usr/bin/env no-such-python\n"),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let at = |name: &str| folder.join(name).display().to_string();
    let scripts = ["good", "env", "windows", "missing", "no-python"];
    let jobs = scripts.map(|name| format!("{{ exec: '{}' }}", at(name))).join(", ");
    let file = at("a.json5");
    let directories =
        format!("{{ exec: 'true', cwd: '{}' }}, {{ exec: 'true', cwd: '{}' }}", at("none"), at("good"));
    std::fs::write(&file, format!("{{ jobs: [{jobs}, {directories}, {{ exec: 'true', user: 1 }}] }}"))
        .unwrap();

    let check = |command: &mut Command| {
        let output = command.args(["check", &file]).env_remove("CONTAINERPILOT").output_in_time().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        let found = text.lines().filter_map(|line| line.strip_prefix("warning: ").map(str::to_owned));
        found.collect::<Vec<String>>()
    };
    let mut expected = vec![
        format!("interpreter `/bin/sh\\r` of `{}` not found", at("windows")),
        format!("interpreter `/nonexistent/sh` of `{}` not found", at("missing")),
        format!("interpreter `no-such-python` of `{}` not found", at("no-python")),
        format!("directory `{}` not found", at("none")),
        format!("directory `{}` not found", at("good")),
    ];
    let user = "no permission to switch to user `1`".to_owned();
    if nix::unistd::geteuid().is_root() {
        assert_eq!(check(&mut Command::new(BINARY)), expected);
        expected.push(user);
        let mut unprivileged = Command::new("setpriv");
        assert_eq!(check(unprivileged.args(["--bounding-set=-setuid", BINARY])), expected);
    } else {
        expected.push(user);
        assert_eq!(check(&mut Command::new(BINARY)), expected);
    }
}

#[test]
fn c10_run_does_not_treat_a_path_as_a_program() {
    for arguments in [&["run", "a.json5"][..], &["a.json5"], &["no/such/folder/a.json"]] {
        let (code, _, stderr) = containerpilot(arguments);
        assert_eq!(code, Some(1));
        assert!(stderr.contains("cannot read ") && stderr.contains("a.json"), "{stderr}");
    }
    let program = "To run a program, put `--` before it.";
    refused(&["run", "nginx"], &format!("there is no configuration `nginx`\n{program}"), " run");
    let missing = format!("there is no configuration `./nginx`, and no such command\n{program}");
    refused(&["./nginx"], &missing, "");
    refused(&["run", "a.json5", "b"], "unexpected argument `b`: put `--` before a program", " run");
    refused(&["run", "-config", "a", "b.json5"], "two configurations: -config `a` and `b.json5`", " run");
}

#[test]
fn x4_words_after_a_named_configuration_are_ignored_with_a_warning() {
    let path = folder("words").join("a.json5");
    let config = path.to_str().unwrap();
    std::fs::write(&path, "{ jobs: [{ name: 'a', exec: 'echo it runs' }] }").unwrap();
    let warning = |words: &str| {
        format!("containerpilot: ignoring `{words}` after the configuration: to run it, write `-- {words}`\n")
    };
    for (before, words) in
        [(&["-config", config][..], "/bin/app -x"), (&["run", "-config", config], "/bin/app")]
    {
        let arguments: Vec<&str> = before.iter().copied().chain(words.split(' ')).collect();
        let (code, stdout, stderr) = containerpilot(&arguments);
        assert_eq!((code, stderr), (Some(0), warning(words)), "{arguments:?}");
        assert!(stdout.contains("it runs"), "{stdout}");
    }
    let mut by_variable = Command::new(BINARY);
    let output = by_variable.arg("/bin/app").env("CONTAINERPILOT", config).output_in_time().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr), (Some(0), warning("/bin/app").into()));
    // What looks like a command is one, and every other command refuses what it does not know.
    let (code, _, stderr) = containerpilot(&["-config", config, "statsu"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("unknown command `statsu`: did you mean `status`?"), "{stderr}");
    let (code, ..) = containerpilot(&["status", "a", "/bin/app", "-config", config]);
    assert_eq!(code, Some(2));
}

#[test]
fn x6_path_that_looks_like_a_flag_follows_a_double_dash() {
    let (code, _, stderr) = containerpilot(&["check", "--", "-nonexistent.json5"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("cannot read -nonexistent.json5: "), "{stderr}");
}

#[test]
fn c5_short_line_is_shown_whole() {
    let path = folder("whole").join("a.json5");
    std::fs::write(
        &path,
        r#"{ jobs: [{ name: "web", exec: "sleep 100", restarts: "unlimited", prot: 80 }] }"#,
    )
    .unwrap();
    let (_, _, stderr) = containerpilot(&["check", path.to_str().unwrap()]);
    assert!(stderr.contains("1 | { jobs: [{ name: \"web\""), "{stderr}");
}

/// Asserts the exit code 2, and the first line of the error and its hint.
fn refused(arguments: &[&str], message: &str, hint: &str) {
    let (code, _, stderr) = containerpilot(arguments);
    assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr, format!("containerpilot: {message}\nTry `containerpilot help{hint}`.\n"));
}

#[test]
fn x6_empty_and_impossible_values_of_flags_are_refused() {
    refused(&["wait", "a", "running", "--timeout", ""], "invalid -timeout ``: it is empty", " wait");
    refused(&["health", "-timeout="], "invalid -timeout ``: it is empty", " health");
    refused(&["logs", "-n", ""], "invalid -lines ``: it is empty", " logs");
    refused(&["logs", "-n", "-1"], "invalid -lines `-1`: it must be 0 or more", " logs");
    refused(&["logs", "-n", "x"], "invalid -lines `x`: not a number", " logs");
    refused(&["simulate", "--explore", "0"], "invalid -explore `0`: it must be at least 1", " simulate");
    refused(&["simulate", "--explore", ""], "invalid -explore ``: it is empty", " simulate");
}

#[test]
fn x6_usage_errors_refer_to_the_help_of_the_command() {
    refused(&["status", "a", "b"], "unexpected argument `b` for `status`", " status");
    let usage = "missing argument; usage: containerpilot wait [FLAGS] [JOB…] STATE";
    refused(&["wait"], usage, " wait");
    let (_, _, stderr) = containerpilot(&["help", "foo"]);
    assert!(stderr.contains("unknown command, topic or key `foo`") && !stderr.contains("`--`"), "{stderr}");
}

#[test]
fn x4_an_unknown_signal_is_refused_before_the_supervisor_is_asked() {
    refused(
        &["signal", "web", "FOO"],
        "unknown signal `FOO`; use a name such as TERM or a number",
        " signal",
    );
    refused(&["signal", "web", "-9"], "write the signal without a dash: 9", " signal");
    refused(&["signal", "web", "-TERM"], "write the signal without a dash: TERM", " signal");
}

#[test]
fn l5_a_value_without_a_key_is_not_repeated() {
    refused(&["-putenv", "s3cr3t"], "the value of -putenv is not KEY=VALUE", "");
    refused(&["putenv", "s3cr3t"], "argument 1 is not KEY=VALUE", " putenv");
}

#[test]
fn c5_a_program_is_not_a_configuration() {
    let (code, _, stderr) = containerpilot(&["check", env!("CARGO_BIN_EXE_containerpilot")]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: this is a program, not a configuration\n"), "{stderr}");
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
}

#[test]
fn l5_a_password_in_the_consul_address_is_not_printed() {
    let path = folder("password").join("a.json5");
    std::fs::write(&path, r#"{ consul: "http://me:hunter2@localhost:1", jobs: [{ exec: "true" }] }"#)
        .unwrap();
    let path = path.to_str().unwrap();
    let socket = folder("password-socket").join("socket");
    for arguments in [&["check", path][..], &["check", "--format", "json", path], &["-config", path]] {
        let mut command = Command::new(BINARY);
        let output = command.args(arguments).env("CONTAINERPILOT_SOCKET", &socket).output_in_time().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(text.contains("a Consul address cannot contain a user or password"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
