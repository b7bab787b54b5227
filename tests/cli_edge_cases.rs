//! Unusual uses of the command line (C1, C5, X4, X6).
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::path::PathBuf;
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn containerpilot(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    let Output { status, stdout, stderr } =
        command.args(arguments).env_remove("CONTAINERPILOT").output().unwrap();
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
    assert!(stderr.contains("20.json5 cannot be read"), "{stderr}");
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
    assert!(message.starts_with("/nonexistent.json5 cannot be read"), "{message}");
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

#[test]
fn x6_run_does_not_treat_a_path_as_a_program() {
    let (code, _, stderr) = containerpilot(&["run", "a.json5"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("use -config for a configuration"), "{stderr}");
}

#[test]
fn x6_path_that_looks_like_a_flag_follows_a_double_dash() {
    let (code, _, stderr) = containerpilot(&["check", "--", "-nonexistent.json5"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("-nonexistent.json5 cannot be read"), "{stderr}");
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
