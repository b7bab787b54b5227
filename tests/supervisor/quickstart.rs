//! The example that every reader tries first does what its comments say.

use std::process::Command;

use crate::support::{Supervisor, ways};

const EXAMPLE: &str = include_str!("../../examples/quickstart.json5");

#[test]
fn the_quickstart_runs_from_its_start_to_its_stop() {
    for how in ways() {
        let mut run = Supervisor::behind(how, "export FOLDER=@/world", EXAMPLE);
        run.line("the folder is there");
        run.line("server started");
        run.line("the server is healthy");
        // It is healthy a moment before it says so itself.
        run.lines("serving", 1);
        assert!(run.file("world/up").exists());
        run.signal("-TERM");
        let up = run.file("world/up");
        let (code, log) = run.end();
        assert_eq!(code, 0, "{log}");
        let place = |text: &str| {
            let found = log.lines().position(|line| line.contains(text));
            found.unwrap_or_else(|| panic!("no `{text}` in\n{log}"))
        };
        // A task, then the server that waits for it; the ticker at the startup; the hook before the server's end.
        assert!(place("setup exited with code 0") < place("server started"), "{log}");
        assert!(place("serving") < place("SIGTERM"), "{log}");
        assert!(place("ticker exited with code 0") < place("SIGTERM"), "{log}");
        assert!(place("the server is about to stop") < place("server stopping: sent"), "{log}");
        assert!(place("farewell exited with code 0") < place("server exited on SIGTERM"), "{log}");
        assert!(!up.exists());
    }
}

#[test]
fn the_quickstarts_server_is_started_again_whenever_it_ends() {
    let how = ways()[0];
    let mut run = Supervisor::behind(how, "export FOLDER=@/world", EXAMPLE);
    let line = run.line("server started (pid ");
    let pid = line.split("pid ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    run.line("the server is healthy");
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    run.line("server exited on SIGKILL");
    run.line("server started");
    run.signal("-TERM");
    let (code, log) = run.end();
    assert_eq!(code, 0);
    assert_eq!(log.matches("greeter started").count(), 1, "once is once: {log}");
}
