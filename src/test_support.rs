//! Tests that collect children must not share a process with others that start some.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::process::reaper::{Ended, Reaper};

/// Makes tests that each run in a process of their own: the test starts the same binary again, for itself alone.
macro_rules! isolated {
    ($(fn $name:ident() $body:block)*) => {
        $(#[test]
        fn $name() {
            crate::test_support::alone(concat!(module_path!(), "::", stringify!($name)), || $body);
        })*
    };
}
pub(crate) use isolated;

const ALONE: &str = "CONTAINERPILOT_TEST_ALONE";

/// Runs a test in a process of its own.
pub(crate) fn alone(path: &str, test: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let (_, name) = path.split_once("::").unwrap();
    // The supervisor holds its signals before it has a second thread; the test harness has one from the start.
    let output = std::process::Command::new("timeout")
        .args(["60", "env", "--block-signal=CHLD,HUP,INT,TERM,USR1,USR2"])
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Everything that comes out of a pipe until its end.
pub(crate) fn all(pipe: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(pipe).read_to_string(&mut text).unwrap();
    text
}

/// Collects children until so many of ours have ended.
pub(crate) fn collect(reaper: &mut Reaper, count: usize) -> Vec<Ended> {
    let mut ended = Vec::new();
    until(|| {
        reaper.collect(&mut ended);
        ended.len() >= count
    });
    ended
}

/// A new folder that no other test has. Whoever made it removes it.
pub(crate) fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("containerpilot-test-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Waits until something holds, at most ten seconds.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "it did not come to hold in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}
