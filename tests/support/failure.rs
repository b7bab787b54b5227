//! What a test that fails prints: the logs of the supervisors that it has started.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use super::deadline::InTime;
use super::program::{code, err};

/// How much of a log is printed, from its end, in bytes.
const PRINTED: usize = 256 << 10;
/// How many supervisors of a test that have ended are remembered.
const REMEMBERED: usize = 8;

thread_local! {
    /// The logs of the supervisors that this thread has waited for or dropped.
    static ENDED: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// Prints the log of a supervisor that is dropped if the test is failing. If it fails later, its panic prints the log.
pub(crate) fn report(what: &str, log: &str) {
    let log = tail(log.as_bytes());
    let text = format!("--- the log of {what}:\n{}\n--- end of the log of {what}", log.trim_end());
    if std::thread::panicking() {
        eprintln!("{text}");
        return;
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            default(info);
            ENDED.take().iter().for_each(|text| eprintln!("{text}"));
        }));
    });
    ENDED.with_borrow_mut(|ended| {
        ended.push_back(text);
        ended.drain(..ended.len().saturating_sub(REMEMBERED));
    });
}

/// The environment variable of [`in_own_process`].
pub(crate) const CASE: &str = "CONTAINERPILOT_TEST_CASE";

/// Runs a test in a process of its own, with a case that may fail on purpose; returns its exit code and standard error.
pub(crate) fn in_own_process(test: &str, case: &str) -> (i32, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(CASE, case);
    let output = command.output_in_time().unwrap();
    (code(&output), err(&output))
}

/// The end of a text.
fn tail(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[text.len().saturating_sub(PRINTED)..]).into_owned()
}

/// The end of a regular file; empty if it cannot be read.
pub(crate) fn tail_of_file(path: &Path) -> String {
    let mut text = Vec::new();
    // Opening a pipe could wait for a writer.
    if path.is_file()
        && let Ok(mut file) = File::open(path)
    {
        let _ = file.seek(SeekFrom::End(-i64::try_from(PRINTED).unwrap_or_default()));
        let _ = file.take(PRINTED as u64).read_to_end(&mut text);
    }
    tail(&text)
}
