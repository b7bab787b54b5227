//! Helpers for unit tests. A test that collects children must not share a process with tests that start some.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "an internal crate: a comment that repeats a name says nothing")]
#![expect(clippy::unwrap_used, reason = "a failed helper fails the test")]

pub mod openssl;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Defines tests that each run in their own process: the test starts the same binary again with only itself.
#[macro_export]
macro_rules! isolated {
    ($(fn $name:ident() $body:block)*) => {
        $(#[test]
        fn $name() {
            $crate::run_isolated(concat!(module_path!(), "::", stringify!($name)), || $body);
        })*
    };
}

/// Reports that a test is not run, and why: on standard error, and in the file that `scripts/test` prints at the end.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    // A test in a process of its own runs on the main thread, and its name is the first argument.
    let isolated = std::env::args().nth(1).unwrap_or_default();
    let test = thread.name().filter(|name| *name != "main").unwrap_or(&isolated);
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os("CONTAINERPILOT_TEST_SKIPS") {
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, format!("{test}: {reason}\n").as_bytes()).unwrap();
    }
}

const ISOLATED: &str = "CONTAINERPILOT_TEST_ISOLATED";

/// Runs a test in its own process.
pub fn run_isolated(path: &str, test: impl FnOnce()) {
    if std::env::var_os(ISOLATED).is_some() {
        return test();
    }
    let (_, name) = path.split_once("::").unwrap();
    // The supervisor blocks signals before it has a second thread; the test harness has threads from the start.
    let output = std::process::Command::new("timeout")
        .args(["60", "env", "--block-signal=CHLD,HUP,INT,TERM,USR1,USR2"])
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ISOLATED, "1")
        .output()
        .unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Reads a pipe until its end.
pub fn read_all(pipe: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(pipe).read_to_string(&mut text).unwrap();
    text
}

/// A new folder for one test, which must remove it.
pub fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("containerpilot-test-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Waits until the condition holds, at most ten seconds.
pub fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "the condition did not hold within 10s");
        std::thread::sleep(Duration::from_millis(2));
    }
}
