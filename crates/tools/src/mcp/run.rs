//! Runs a command, with a deadline and a limit for its output.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use containerpilot_process::error_text::describe;

/// How long a command may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The longest text of an answer.
const LONGEST_TEXT: usize = 256 << 10;

/// The programs whose commands the tools run.
pub(super) struct Programs {
    pub(super) containerpilot: PathBuf,
    pub(super) tools: PathBuf,
    /// The working directory. Files are below it.
    pub(super) folder: PathBuf,
    /// The control socket, if it was named.
    pub(super) socket: Option<String>,
}

/// What a tool answers.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl Outcome {
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

/// Runs a command. Its output, and then its messages, are the answer; a failure is an error.
pub(super) fn run(command: &mut Command) -> Outcome {
    run_until(command, DEADLINE)
}

fn run_until(command: &mut Command, limit: Duration) -> Outcome {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            return Outcome::failed(format!("cannot execute {program}: {}", describe(&error)));
        }
    };
    let streams = [child.stdout.take().map(read), child.stderr.take().map(read)];
    let deadline = Instant::now() + limit;
    let mut text = String::new();
    for stream in streams.into_iter().flatten() {
        let Ok(bytes) = stream.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
            // If it has exited meanwhile, there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
            return Outcome::failed(format!(
                "the command did not end within {limit:?}, and was killed; what it asked of the supervisor may still be done"
            ));
        };
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    // Its streams are closed, so it has exited or is about to.
    match child.wait() {
        Ok(status) => Outcome { text: shortened(text), is_error: !status.success() },
        Err(error) => Outcome::failed(format!("cannot wait for the command: {}", describe(&error))),
    }
}

/// Reads a stream to its end on a thread, and keeps its beginning.
fn read(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let limit = u64::try_from(LONGEST_TEXT).unwrap_or(u64::MAX).saturating_add(1);
        let result = stream.by_ref().take(limit).read_to_end(&mut kept);
        // A command whose output is not read would wait.
        let _ = result.and_then(|_| std::io::copy(&mut stream, &mut std::io::sink()));
        // After the deadline the receiver is gone: the answer was sent without it.
        let _ = sender.send(kept);
    });
    receiver
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let mut end = LONGEST_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("\n… the rest is left out: ask for less");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        run_until(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn x19_a_command_that_does_not_end_is_killed_and_its_output_is_bounded() {
        let outcome = shell("exec sleep 1000", Duration::from_millis(100));
        assert!(outcome.is_error && outcome.text.contains("did not end within 100ms"), "{}", outcome.text);
        let endless = shell("exec yes", Duration::from_millis(300));
        assert!(endless.is_error && endless.text.contains("did not end"), "{}", endless.text);
        let minute = Duration::from_secs(60);
        let long = shell("head -c 10000000 /dev/zero; echo end >&2", minute);
        assert!(!long.is_error && long.text.len() < LONGEST_TEXT + 100, "{}", long.text.len());
        assert!(long.text.ends_with("the rest is left out: ask for less"));
        let failed = shell("echo out; echo err >&2; exit 3", minute);
        assert_eq!((failed.text.as_str(), failed.is_error), ("out\nerr\n", true));
        let missing = run_until(&mut Command::new("/nonexistent"), minute);
        assert_eq!(missing.text, "cannot execute /nonexistent: no such file or directory");
    }
}
