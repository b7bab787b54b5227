//! The rest of a job's process group when it is stopped (S14): a shell without `exec`, a start script, `npm start`.

use std::fs;

use crate::support::deadline::InTime;
use crate::support::program::containerpilot;
use crate::support::skip::skip;
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

/// A configuration with one job that starts the program in this way.
fn config(exec: &str, more: &str) -> String {
    format!("{{ stopTimeout: 300, jobs: [{{ name: 'app', exec: {exec}, {more} }}] }}")
}

/// Starts the program, which is `@/app`, and waits until it runs.
fn start(mode: Mode, exec: &str, more: &str) -> Supervisor {
    let run = Supervisor::with_setup(mode, "ln -s @programs/saves.sh @/app", &config(exec, more));
    wait_until("it runs", || run.size("pids") > 0);
    run
}

/// The signals that the program got. The supervisor may have exited.
fn signals(run: &Supervisor) -> String {
    fs::read_to_string(run.file("signals")).unwrap()
}

/// Lets the program finish its shutdown when it has got its signal. Returns the signals that it got.
fn let_it_finish(mut run: Supervisor) -> String {
    wait_until("it has its signal", || run.size("signals") > 0);
    fs::write(run.file("go"), "").unwrap();
    run.wait_for_line("saved");
    let signals = signals(&run);
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert!(!log.contains("SIGKILL"));
    signals
}

const WAITING: &str = "app waiting for the rest of its process group; at its exit that was ";

#[test]
fn s14_app_behind_a_shell_finishes_its_own_shutdown() {
    let shells = [
        // Two commands, so that no shell executes the last one in its own place.
        "['sh', '-c', '@/app; true']",
        "['bash', '-c', '@/app; true']",
        // A start script that neither executes nor forwards.
        "['sh', '-c', '@/app & wait']",
    ];
    for mode in modes() {
        for shell in shells {
            let mut run = start(mode, shell, "");
            run.signal("-TERM");
            let line = run.wait_for_line(WAITING);
            assert!(line.contains("app (") || line.contains("sh ("), "{line}");
            assert_eq!(let_it_finish(run), "TERM\n", "{shell}");
        }
    }
}

#[test]
fn s14_npm_start_waits_for_the_program() {
    if !std::path::Path::new("/usr/bin/npm").exists() {
        return skip("npm is not installed");
    }
    let config = config("'npm start'", "cwd: '@/', env: { HOME: '@/', npm_config_update_notifier: 'false' }");
    let run = Supervisor::with_setup(modes()[0], "cp @programs/npm/* @/", &config);
    wait_until("it runs", || run.size("pids") > 0);
    run.signal("-TERM");
    // npm waits for its program, or does not, and forwards the signal, or does not: that depends on its version.
    let_it_finish(run);
}

#[test]
fn s14_background_process_that_ignores_sigterm_is_killed_at_the_stop_timeout() {
    let shell = "['sh', '-c', '(trap \"\" TERM; echo x > @/pids; exec sleep 1000) & exec sleep 2000']";
    for mode in modes() {
        let mut run = start(mode, shell, "killAfter: '1s'");
        run.signal("-TERM");
        let line = run.wait_for_line(WAITING);
        assert!(line.contains("sleep ("), "{line}");
        let pid = line.rsplit_once('(').unwrap().1.trim_end().trim_end_matches(')').to_owned();
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert!(log.contains("app other processes did not exit within 1s, sending SIGKILL"));
        if matches!(mode, Mode::Plain) {
            assert!(!std::path::Path::new("/proc").join(&pid).exists(), "{pid} is left behind");
        }
    }
}

#[test]
fn s14_restart_and_reload_start_the_new_process_when_the_group_is_gone() {
    for command in ["restart", "reload"] {
        let mut run = start(modes()[0], "['sh', '-c', '@/app & wait']", "restarts: 'unlimited'");
        if command == "reload" {
            let text = fs::read_to_string(run.file("config.json5")).unwrap();
            fs::write(run.file("config.json5"), text.replace("& wait", "& wait; true")).unwrap();
        }
        let words: &[&str] = if command == "restart" { &["restart", "app"] } else { &["reload"] };
        let asked = std::process::Command::new(containerpilot())
            .args(words)
            .env("CONTAINERPILOT_SOCKET", run.file("socket"))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        run.wait_for_line(WAITING);
        wait_until("it has its signal", || run.size("signals") > 0);
        assert_eq!(run.read("pids").lines().count(), 1, "{command}: it has two processes");
        fs::write(run.file("go"), "").unwrap();
        wait_until("it runs again", || run.read("pids").lines().count() == 2);
        assert!(asked.status_in_time().unwrap().success(), "{command}");
        assert_eq!(signals(&run), "TERM\n");
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert_eq!(log.matches("saved").count(), 2);
    }
}

#[test]
fn s14_stop_scope_process_sends_sigterm_to_the_rest_when_the_process_has_exited() {
    let mut run = start(modes()[0], "['sh', '-c', '@/app & wait']", "stopScope: 'process'");
    run.signal("-TERM");
    run.wait_for_line(WAITING);
    assert_eq!(let_it_finish(run), "TERM\n");
}

#[test]
fn s14_daemon_outside_of_the_group_has_the_same_time() {
    for mode in modes() {
        let mut run = start(mode, "['sh', '-c', 'setsid @/app & exec sleep 1000']", "");
        run.signal("-TERM");
        run.wait_for_line("app left processes outside of its process group, sent SIGTERM");
        assert_eq!(let_it_finish(run), "TERM\n");
    }
}
