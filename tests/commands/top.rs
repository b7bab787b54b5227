//! `top`, in a real terminal: tmux.

use std::process::Command;

use super::{command, json, run_err, run_ok, supervisor, wait};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, wait_until};
use crate::support::tmux::Tmux;

impl Tmux {
    fn top(&self, it: &Supervisor, before: &str) {
        let pilot = env!("CARGO_BIN_EXE_containerpilot");
        let line =
            format!("clear; {before} {pilot} top -interval 200ms -socket {}", it.file("socket").display());
        self.keys(&[&line, "Enter"]);
        self.wait_for("the table", |screen| screen.contains("JOB") && screen.contains("q quit"));
    }

    /// The terminal is as before: no alternate screen, a cursor, and what is typed is shown.
    fn is_restored(&self) {
        self.wait_for("the prompt", |screen| {
            screen.trim_end().ends_with("prompt>") && !screen.contains("q quit")
        });
        let flags = self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"]);
        assert_eq!(flags.trim(), "0 1 1");
        self.keys(&["stty -a | grep -o -- '-*icanon' > /dev/null; stty -a | grep -c -- ' -echo '", "Enter"]);
        self.wait_for("the answer of stty", |screen| screen.lines().any(|line| line == "0"));
    }
}

const JOBS: &str = "{ jobs: [
    { name: 'busy', exec: ['sh', '-c', 'while :; do sleep 0.01; done'], restarts: 'unlimited' },
    { name: 'talk', exec: ['sh', '-c', 'i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; done; printf \"\\\\033[31mred\\\\033[2J\\\\007 漢字\\\\n\"; exec sleep 1000'] },
    { name: 'app', exec: 'true', when: { source: 'gate', once: 'exitSuccess' } },
    { name: 'gate', exec: 'sleep 1000', restarts: 3 },
  ] }";

fn row<'a>(screen: &'a str, job: &str) -> Vec<&'a str> {
    let line = screen.lines().find(|line| line.starts_with(&format!("{job} ")));
    line.map(|line| line.split_whitespace().collect()).unwrap_or_default()
}

#[test]
fn x12_top_shows_sorts_filters_and_restarts_after_a_question() {
    let it = supervisor(JOBS);
    wait(&it, "busy", "running");
    let Some(tmux) = Tmux::open(&it.file("tmux")) else { return };
    tmux.top(&it, "");
    tmux.wait_for("states, CPU and memory", |screen| {
        let busy = row(screen, "busy");
        busy.get(1) == Some(&"running")
            && busy
                .get(6)
                .and_then(|cpu| cpu.strip_suffix('%')?.parse::<f64>().ok())
                .is_some_and(|cpu| cpu > 0.0)
            && busy.get(7).is_some_and(|memory| memory.ends_with('K') || memory.ends_with('M'))
            && row(screen, "app").join(" ").contains("waiting until gate exits successfully")
    });
    let order = |screen: &str| -> Vec<String> {
        let jobs = screen.lines().filter_map(|line| line.split(' ').next());
        jobs.filter(|job| ["busy", "talk", "app", "gate"].contains(job)).map(str::to_owned).collect()
    };
    assert_eq!(order(&tmux.screen()), ["busy", "talk", "app", "gate"]);
    tmux.keys(&[">"]);
    tmux.wait_for("sorted by name", |screen| {
        screen.contains("JOB*") && order(screen) == ["app", "busy", "gate", "talk"]
    });
    tmux.keys(&["o"]);
    tmux.wait_for("the other way", |screen| {
        screen.contains("JOB^") && order(screen) == ["talk", "gate", "busy", "app"]
    });
    tmux.keys(&["/", "g", "a", "t", "Enter"]);
    tmux.wait_for("filtered", |screen| order(screen) == ["gate", "app"] && screen.contains("2 with `gat`"));
    tmux.keys(&["Home", "r"]);
    tmux.wait_for("the question", |screen| screen.contains("restart gate? y/n"));
    let pid = || json(&run_ok(&it, &["status", "gate", "--format", "json"]))["pid"].clone();
    let before = pid();
    tmux.keys(&["n"]);
    tmux.wait_for("no question", |screen| screen.contains("q quit"));
    assert_eq!(pid(), before);
    tmux.keys(&["r", "y"]);
    tmux.wait_for("the answer", |screen| screen.contains("gate: stopping, will start again"));
    wait_until("another process", || pid().is_i64() && pid() != before);
    tmux.keys(&["k", "k", "i", "l", "l", "Enter"]);
    tmux.wait_for("the signal", |screen| screen.contains("sent SIGKILL to process group"));
    tmux.keys(&["q"]);
    tmux.is_restored();
}

#[test]
fn x12_top_shows_logs_and_explanations_and_follows_the_size_of_the_terminal() {
    let it = supervisor(JOBS);
    wait(&it, "talk", "running");
    let Some(tmux) = Tmux::open(&it.file("tmux")) else { return };
    tmux.top(&it, "");
    tmux.keys(&["Down", "l"]);
    // What the job has written for a terminal is only text.
    tmux.wait_for("the end of the log", |screen| {
        screen.starts_with("log of talk, following\n") && screen.contains("line 300\nred\u{fffd} 漢字\n")
    });
    tmux.keys(&["PPage"]);
    tmux.wait_for("older lines", |screen| screen.contains("not following") && screen.contains("line 280"));
    tmux.keys(&["Home"]);
    tmux.wait_for("the first line", |screen| screen.contains("\nline 1\nline 2\n"));
    tmux.keys(&["f"]);
    tmux.wait_for("the end again", |screen| screen.contains("line 300\n") && screen.contains(", following"));
    tmux.keys(&["q", "End", "Up", "e"]);
    tmux.wait_for("why", |screen| {
        screen.contains("app: waiting to start") && screen.contains("waiting until gate exits")
    });
    tmux.keys(&["Escape"]);
    tmux.wait_for("the table", |screen| screen.contains("q quit") && screen.contains("RESTARTS"));
    tmux.run(&["resize-window", "-x", "40", "-y", "8"]);
    tmux.wait_for("fewer columns", |screen| {
        !screen.contains("RESTARTS")
            && row(screen, "talk").get(1) == Some(&"running")
            && screen.lines().count() == 8
    });
    tmux.run(&["resize-window", "-x", "120", "-y", "20"]);
    tmux.wait_for("all columns", |screen| screen.contains("RESTARTS") && screen.contains("UPTIME"));
    tmux.keys(&["?"]);
    tmux.wait_for("help", |screen| screen.contains("reverse the order"));
    tmux.keys(&["C-c"]);
    tmux.is_restored();
}

#[test]
fn x12_top_restores_the_terminal_however_it_ends_and_waits_for_a_supervisor_that_is_gone() {
    let config = "{ jobs: [{ name: 'web', exec: 'sleep 1000' }] }";
    let it = supervisor(config);
    wait(&it, "web", "running");
    let Some(tmux) = Tmux::open(&it.file("tmux")) else { return };
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        tmux.top(&it, "");
        let pid = tmux.run(&["display-message", "-p", "#{pane_pid}"]);
        let pkill =
            Command::new("pkill").args([&format!("-{signal}"), "-P", pid.trim()]).status_in_time().unwrap();
        assert!(pkill.success());
        tmux.wait_for("the reason", |screen| screen.contains(&format!("received SIG{signal}")));
        tmux.keys(&["echo code $?", "Enter"]);
        tmux.wait_for("the exit code", |screen| screen.contains(&format!("code {code}\n")));
        tmux.is_restored();
    }
    // A bug: the message is readable, too.
    // A backtrace would push it off the screen.
    tmux.top(&it, "RUST_BACKTRACE=0 CONTAINERPILOT_FAILPOINT=top:5");
    tmux.wait_for("the message of the panic", |screen| screen.contains("on purpose, at `top`"));
    tmux.is_restored();

    tmux.top(&it, "");
    let socket = it.file("socket");
    it.signal("-TERM");
    tmux.wait_for("that it is gone", |screen| {
        screen.contains("no supervisor answers") && screen.contains("trying again")
    });
    let again = Supervisor::start(
        super::Mode::Plain,
        &format!(
            "{{ control: {{ socket: '{}' }}, jobs: [{{ name: 'later', exec: 'sleep 1000' }}] }}",
            socket.display()
        ),
    );
    tmux.wait_for("the new supervisor", |screen| row(screen, "later").get(1) == Some(&"running"));
    tmux.keys(&["q"]);
    tmux.is_restored();
    drop(again);
}

#[test]
fn x12_top_prints_tables_without_a_terminal() {
    let it = supervisor(JOBS);
    wait(&it, "talk", "running");
    let shown = run_ok(&it, &["top", "--once", "--sort", "job"]);
    let heads: Vec<&str> = shown.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads, ["JOB", "STATE", "HEALTH", "RESTARTS", "PID", "UPTIME", "CPU", "MEMORY", "NOTE"]);
    let first: Vec<&str> = shown.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(first, ["app", "busy", "gate", "talk"]);
    let cpu = row(&shown, "busy")[6].trim_end_matches('%').parse::<f64>().unwrap();
    assert!(cpu > 0.0, "{shown}");
    // A reader that closes the pipe ends it.
    let mut top = command(&it, &["top", "--interval", "100ms"]);
    let mut top = top.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(top.stdout.take().unwrap()));
    let heads = lines.by_ref().map(Result::unwrap).filter(|line| line.starts_with("JOB ")).take(3).count();
    assert_eq!(heads, 3);
    drop(lines);
    assert!(top.status_in_time().unwrap().success());
    // Nothing is measured unless it is asked for.
    assert!(json(&run_ok(&it, &["status", "--format", "json"]))["jobs"][0].get("cpuSeconds").is_none());
    let usage = |args: &[&str]| super::run_command(&it, args).0;
    assert_eq!((usage(&["top", "--sort", "colour"]), usage(&["top", "--interval", "1ms"])), (2, 2));
    it.signal("-TERM");
    wait_until("the socket is gone", || !it.file("socket").exists());
    assert!(run_err(&it, &["top", "--once"]).starts_with("no supervisor answers at"));
}
