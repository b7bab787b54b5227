//! `scripts/original`, which plays configurations on a binary of the original and on ours. No original is needed here: both are ours, or
//! one of them is a script that changes what ours does.

use crate::support::deadline::InTime;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const OURS: &str = env!("CARGO_BIN_EXE_containerpilot");

const VERSION_3: &str = "{ // A comment.
    consul: '{{ .CONSUL }}:8500', logging: { level: \"INFO\" },
    jobs: [
        { name: 'preStart', exec: '/no/such/prepare --all' },
        { name: 'app', port: 8000, tags: ['a'], exec: ['serve', '-p', 8000], restarts: 'unlimited',
          when: { source: 'preStart', once: 'exitSuccess' }, health: { exec: 'look', interval: 10, ttl: 25 } },
        { name: 'on-change', exec: 'react', when: { source: 'watch.db', each: 'changed' } },
        { name: 'leave', exec: 'leave now', when: { source: 'app', once: 'stopping' } },
    ],
    watches: [{ name: 'db', interval: 5 }],
    telemetry: {},
}";

const VERSION_2: &str = r#"{ "consul": "localhost:8500", "preStart": ["/bin/prepare", "two words"], "postStop": "after",
    "services": [{ "name": "old", "port": 7000, "health": "look", "poll": 10, "ttl": 25 }],
    "backends": [{ "name": "db", "poll": 5, "onChange": "react" }] }"#;

/// A folder with both configurations, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("containerpilot-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("files")).unwrap();
        fs::write(path.join("files/three.json5"), VERSION_3).unwrap();
        fs::write(path.join("files/two.json"), VERSION_2).unwrap();
        fs::write(
            path.join("files/index.json"),
            r#"{"v3": [{ "file": "three.json5", "env": { "CONSUL": "x" } }]}"#,
        )
        .unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Plays the files of a folder with `bin` as the original. Returns the exit code and what is printed.
fn play(folder: &Folder, bin: &Path) -> (i32, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/original");
    let mut command = Command::new("python3");
    command.arg(script).args(["--ours", OURS, "--seconds", "3", "--bin"]).arg(bin);
    let output = command.arg("--dir").arg(folder.0.join("files")).output_in_time().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code().unwrap(), text)
}

#[test]
fn c3_c8_original_harness_finds_no_difference_between_equal_binaries() {
    let folder = Folder::new("same");
    fs::write(folder.0.join("files/broken.json5"), "{ jobs: [{ name: }] }").unwrap();
    let (code, text) = play(&folder, Path::new(OURS));
    assert!(text.contains("broken.json5: not played: not JSON5"), "{text}");
    assert!(text.ends_with("2 files played, 0 differ, 1 not played\n"), "{text}");
    assert_eq!(code, 0, "{text}");
}

#[test]
fn c3_c8_original_harness_prints_differences_of_starts_services_order_and_exit_code() {
    let folder = Folder::new("other");
    let other = folder.0.join("other");
    // It changes ports, does not wait for preStart, kills the supervisor at SIGTERM, and has its own exit code.
    let script = format!(
        "#!/bin/sh\n[ $1 = -version ] && exec {OURS} -version\n\
         /bin/sed -i 's/: 8000,/: 8001,/; s/\"source\": \"preStart\"/\"source\": \"global\"/; s/\"exitSuccess\"/\"startup\"/; s/7000/7001/' \
         ${{2#file://}}\n{OURS} \"$@\" & child=$!\ntrap 'kill -KILL $child; exit 7' TERM\nwait $child\n"
    );
    fs::write(&other, script).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, text) = play(&folder, &other);
    for line in [
        "three.json5: exit code: original 7 in the phase stop, ours 0 in the phase stop",
        "three.json5: started leave now (phase stop): original no, ours once",
        "three.json5: cut short serve -p 8000: original yes, ours no",
        "three.json5: registered app at 127.0.0.1:8000 with tags ['a']: original no, ours yes",
        "three.json5: registered app at 127.0.0.1:8001 with tags ['a']: original yes, ours no",
        "three.json5: registered at the end containerpilot: original yes, ours no",
        "three.json5: order /no/such/prepare --all, then serve -p 8000: original no, ours yes",
        "two.json: exit code: original 7 in the phase stop, ours 0 in the phase stop",
        "two.json: registered old at 127.0.0.1:7001 with tags []: original yes, ours no",
        "two.json: started after (phase stop): original no, ours once",
        "two.json: cut short main-program --serve: original yes, ours no",
        "2 files played, 2 differ, 0 not played",
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
    assert!(!text.contains("started react") && !text.contains("TTL"), "what both do was printed\n{text}");
    assert_eq!(code, 1, "{text}");
}

/// The public configurations, each program behind a start script without `exec` and slow to stop, each hook slower than
/// the usual stop timeout.
#[test]
#[ignore = "slow: plays forty configurations with programs that stop slowly"]
fn s14_s15_no_program_of_a_public_configuration_is_cut_short() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/original");
    let mut command = Command::new("python3");
    let output = command.arg(script).args(["--ours", OURS, "--seconds", "3", "--parallel", "16"]);
    let output = output.output_in_time().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" files played, 0 cut short, "), "{text}");
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn x6_original_harness_refuses_wrong_usage() {
    let folder = Folder::new("usage");
    let (code, text) = play(&folder, Path::new("/no/such/binary"));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("/no/such/binary"), "{text}");
}
