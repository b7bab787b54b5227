//! `logs` and `events`, with and without `--follow`.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};

use super::{TIMEOUT, command, json, run_err, run_ok, supervisor, wait};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, wait_until};

const TALK: &str = "{ jobs: [{ name: 'talk', exec: ['sh', '-c', 'for n in 1 2 3 4 5; do echo line $n; done; exec sleep 1000'],
                               restarts: 3 },
                             { name: 'hup', exec: ['sh', '-c', 'echo called'], when: { source: 'SIGHUP' } }] }";

/// A running command and its output, line by line.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn new(it: &Supervisor, args: &[&str]) -> Self {
        let mut child = command(it, args).stdout(Stdio::piped()).spawn().unwrap();
        let stdout: ChildStdout = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for the next line that contains `text`.
    fn wait_for_line(&self, text: &str) -> String {
        loop {
            let line =
                self.lines.recv_timeout(TIMEOUT).unwrap_or_else(|error| panic!("no line `{text}`: {error}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits until it exits; returns its exit code.
    fn wait(mut self) -> i32 {
        let mut status = None;
        wait_until("the command exits", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code().unwrap()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn l6_logs_of_all_jobs_has_the_lines_of_jobs_with_the_same_name_once() {
    let mut it = supervisor(
        "{ jobs: [{ name: 'twin', exec: ['sh', '-c', 'echo one; exec sleep 1000'] },
                  { name: 'twin', exec: ['sh', '-c', 'echo two; exec sleep 1000'] }, { name: 'other', exec: 'sleep 1000' }] }",
    );
    it.wait_for_lines("twin ", 2);
    let lines = || {
        let text = run_ok(&it, &["logs"]);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    crate::support::supervisor::wait_until("both lines are kept", || lines().len() >= 2);
    assert_eq!(lines(), ["twin | one", "twin | two"]);
}

#[test]
fn l6_logs_shows_the_last_lines_and_follows_new_ones() {
    let mut it = supervisor(TALK);
    it.wait_for_line("line 5");
    let lines = |nth: std::ops::RangeInclusive<u32>| nth.map(|n| format!("line {n}\n")).collect::<String>();
    crate::support::supervisor::wait_until("the lines are kept", || {
        run_ok(&it, &["logs", "talk"]) == lines(1..=5)
    });
    assert_eq!(run_ok(&it, &["logs", "talk", "-n", "2"]), lines(4..=5));
    assert_eq!(run_ok(&it, &["logs", "--lines=0", "talk"]), "");
    assert!(run_ok(&it, &["logs", "-n", "1"]).contains("talk | line 5\n"));
    let follow = Following::new(&it, &["logs", "-f", "-n", "1", "talk"]);
    follow.wait_for_line("line 5");
    let both = Following::new(&it, &["logs", "-f"]);
    both.wait_for_line("talk | line 5");
    it.signal("-HUP");
    both.wait_for_line("hup | called");
    run_ok(&it, &["signal", "talk", "KILL"]);
    follow.wait_for_line("line 1");
    follow.wait_for_line("line 5");
    assert!(run_err(&it, &["logs", "tlak"]).contains("`talk`"));
    it.signal("-TERM");
    assert_eq!((follow.wait(), both.wait()), (0, 0));
}

#[test]
fn x11_logs_of_several_jobs_are_in_the_order_of_their_times() {
    let speak = |name: &str, first: &str, second: &str| {
        format!(
            "{{ name: '{name}', exec: ['sh', '-c', 'until test -e @/{first}; do sleep 0.02; done; echo {first}; \
             until test -e @/{second}; do sleep 0.02; done; echo {second}; exec sleep 1000'] }}"
        )
    };
    let mut it =
        supervisor(&format!("{{ jobs: [{}, {}] }}", speak("b", "one", "three"), speak("a", "two", "four")));
    wait(&it, "b", "running");
    wait(&it, "a", "running");
    let mut middle = String::new();
    for word in ["one", "two", "three", "four"] {
        if word == "three" {
            middle = run_ok(&it, &["status", "--format", "json"]);
        }
        std::fs::write(it.file(word), "").unwrap();
        it.wait_for_line(&format!(" {word}"));
        crate::support::supervisor::wait_until("the line is kept", || run_ok(&it, &["logs"]).contains(word));
    }
    let all = ["b | one", "a | two", "b | three", "a | four"];
    assert_eq!(run_ok(&it, &["logs"]).lines().collect::<Vec<_>>(), all);
    assert_eq!(run_ok(&it, &["logs", "a", "b"]).lines().collect::<Vec<_>>(), all);
    let follow = Following::new(&it, &["logs", "-f"]);
    assert_eq!(all.map(|_| follow.lines.recv_timeout(TIMEOUT).unwrap()), all);
    let with_times = run_ok(&it, &["logs", "-t"]);
    let times: Vec<&str> = with_times.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    assert!(
        times.is_sorted() && times.iter().all(|time| time.len() == 24 && time.ends_with('Z')),
        "{with_times}"
    );
    let one = run_ok(&it, &["logs", "--timestamps", "a"]);
    assert!(one.lines().next().unwrap().ends_with("Z two") && one.lines().count() == 2, "{one}");
    let now = json(&middle)["now"].as_str().unwrap().to_owned();
    assert_eq!(run_ok(&it, &["logs", "--since", &now]).lines().collect::<Vec<_>>(), all[2..]);
    assert_eq!(run_ok(&it, &["logs", "--since", &now, "a"]), "four\n");
    assert_eq!(run_ok(&it, &["logs", "--since", "1h"]).lines().count(), 4);
    assert_eq!(run_ok(&it, &["logs", "--since", "0s"]), "");
}

#[test]
fn x4_e2_events_shows_all_events_in_order_and_follows_new_ones() {
    let it = supervisor(TALK);
    wait(&it, "talk", "running");
    let shown = run_ok(&it, &["events"]);
    assert!(shown.lines().next().unwrap().ends_with("1  startup"), "{shown}");
    let follow = Following::new(&it, &["events", "--follow"]);
    follow.wait_for_line("startup");
    let objects = Following::new(&it, &["events", "-f", "--format", "json", "-n", "1"]);
    it.signal("-HUP");
    let line = follow.wait_for_line("SIGHUP");
    follow.wait_for_line(&format!(
        "hup exitSuccess, code 0  (run started by {})",
        line.split_whitespace().nth(1).unwrap()
    ));
    let exit = json(&objects.wait_for_line("\"exit\":{\"code\":0,\"signal\":null}"));
    assert_eq!(
        (&exit["source"], &exit["code"], &exit["exit"]["code"]),
        (&"hup".into(), &"exitSuccess".into(), &0.into())
    );
    assert_eq!(run_ok(&it, &["events", "-n", "1"]).lines().count(), 1);
    it.signal("-TERM");
    follow.wait_for_line("shutdown");
    follow.wait_for_line("talk stopped");
    assert_eq!((follow.wait(), objects.wait()), (0, 0));
}

#[test]
fn x10_events_show_starts_and_do_not_call_them_the_cause_of_an_exit() {
    let it = supervisor(TALK);
    wait(&it, "talk", "running");
    let has = |text: &str| {
        let shown = run_ok(&it, &["events"]);
        shown.lines().any(|line| line.contains("talk started, pid ") && line.ends_with(text))
    };
    crate::support::supervisor::wait_until("the start is shown", || has("  (by 1)"));
    let follow = Following::new(&it, &["events", "-f"]);
    follow.wait_for_line("talk started, pid ");
    run_ok(&it, &["signal", "talk", "KILL"]);
    let exit = follow.wait_for_line("talk exitFailed");
    assert!(exit.ends_with("talk exitFailed, SIGKILL  (run started by 1)"), "{exit}");
    let start = follow.lines.recv_timeout(TIMEOUT).unwrap();
    assert!(start.contains("talk started, pid ") && start.ends_with(", restart 1  (by 1)"), "{start}");
    let starts = run_ok(&it, &["events", "--format", "json"]);
    let starts: Vec<_> = starts.lines().map(json).filter(|line| line["startedBy"] == 1).collect();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert!(
        starts.iter().all(|start| start["source"] == "talk" && start["pid"].as_i64() > Some(1)),
        "{starts:?}"
    );
    run_ok(&it, &["stop", "talk"]);
    follow.wait_for_line("talk exitFailed, SIGTERM, ended by hand  (run started by 1)");
    run_ok(&it, &["start", "talk"]);
    assert!(follow.wait_for_line("talk started").ends_with("  (by hand)"));
    it.signal("-TERM");
    follow.wait_for_line("talk exitFailed, SIGTERM, ended by shutdown");
    assert_eq!(follow.wait(), 0);
}

#[test]
fn x4_follower_exits_silently_when_its_output_is_closed() {
    let it = supervisor(TALK);
    wait(&it, "talk", "running");
    let mut child =
        command(&it, &["events", "-f"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    it.signal("-HUP");
    let output = child.output_in_time().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
