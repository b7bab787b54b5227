//! `examples/quickstart.json5` does what its comments say.

use std::process::Command;

use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, modes};

const EXAMPLE: &str = include_str!("../../examples/quickstart.json5");

#[test]
fn quickstart_runs_from_start_to_shutdown() {
    for mode in modes() {
        let mut run = Supervisor::with_setup(mode, "export FOLDER=@/world", EXAMPLE);
        run.wait_for_line("the folder is there");
        run.wait_for_line("server started");
        run.wait_for_line("the server is healthy");
        // The check may pass before the server has written this line.
        run.wait_for_lines("serving", 1);
        assert!(run.file("world/up").exists());
        run.signal("-TERM");
        let up = run.file("world/up");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        let line_number = |text: &str| {
            let found = log.lines().position(|line| line.contains(text));
            found.unwrap_or_else(|| panic!("no `{text}`"))
        };
        assert!(line_number("setup exited with code 0") < line_number("server started"));
        assert!(line_number("serving") < line_number("SIGTERM"));
        assert!(line_number("ticker exited with code 0") < line_number("SIGTERM"));
        assert!(line_number("the server is about to stop") < line_number("server stopping: sent"));
        assert!(line_number("farewell exited with code 0") < line_number("server exited on SIGTERM"));
        assert!(!up.exists());
    }
}

#[test]
fn quickstart_server_is_restarted_when_it_exits() {
    let mode = modes()[0];
    let mut run = Supervisor::with_setup(mode, "export FOLDER=@/world", EXAMPLE);
    let line = run.wait_for_line("server started (pid ");
    let pid = line.split("pid ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    run.wait_for_line("the server is healthy");
    assert!(Command::new("kill").args(["-KILL", &pid]).status_in_time().unwrap().success());
    run.wait_for_line("server exited on SIGKILL");
    run.wait_for_line("server started");
    run.signal("-TERM");
    let (code, log) = run.wait();
    assert_eq!(code, 0);
    assert_eq!(log.matches("greeter started").count(), 1, "a job with `once` ran again");
}
