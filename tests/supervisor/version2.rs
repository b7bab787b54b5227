//! ContainerPilot 2 files run unchanged (C8).

use std::fs;

use crate::support::program::programs;
use crate::support::supervisor::{Mode, Supervisor, modes};

/// Writes a configuration file in a new directory, for which `DIR` stands; returns the directory and the path.
fn file(name: &str, text: &str) -> (String, String) {
    let folder = std::env::temp_dir().join(format!("containerpilot-legacy-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.to_str().unwrap().to_owned();
    let path = format!("{folder}/containerpilot.json");
    fs::write(&path, text.replace("DIR", &folder)).unwrap();
    (folder, path)
}

#[test]
fn c8_main_program_needs_no_double_dash_and_its_exit_code_is_returned() {
    let (_, path) = file("bare", r#"{ "services": [] }"#);
    for mode in modes() {
        for config in [format!("file://{path}"), path.clone()] {
            let run = Supervisor::with_args(mode, &["-config", &config, "sh", "-c", "echo out; exit 7"]);
            let (code, log) = run.wait();
            assert_eq!(code, 7);
            assert!(log.lines().any(|line| line == "out"), "its output does not pass through unchanged");
        }
    }
}

#[test]
fn c8_configuration_text_is_accepted_in_place_of_a_path() {
    for mode in modes() {
        let text = r#"{ "preStart": "echo {{ .HOME }}", "services": [] }"#;
        assert_eq!(Supervisor::with_args(mode, &["-config", text, "sh", "-c", "exit 3"]).wait().0, 3);
        let script = format!("export CONTAINERPILOT='{text}'");
        assert_eq!(Supervisor::with_setup_and_args(mode, &script, &["sh", "-c", "exit 4"]).wait().0, 4);
    }
}

#[test]
fn c8_hooks_and_main_program_run_in_the_order_of_version_2() {
    let text = r#"{
        "preStart": ["sh", "-c", "echo 1 preStart >> DIR/order"],
        "preStop": ["sh", "-c", "echo 3 preStop >> DIR/order"],
        "postStop": ["sh", "-c", "echo 5 postStop >> DIR/order"],
        "coprocesses": [{ "name": "beside", "command": "sleep 1000" }]
    }"#;
    for mode in modes() {
        let (folder, path) = file("order", text);
        let order = format!("{folder}/order");
        let _ = fs::remove_file(&order);
        let script = format!(
            "trap 'echo 4 signalled >> {order}; exit 0' TERM; echo 2 program >> {order}; echo ready; \
             while :; do sleep 0.02; done"
        );
        let mut run = Supervisor::with_args(mode, &["-config", &path, "sh", "-c", &script]);
        run.wait_for_line("ready");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
        let order = fs::read_to_string(&order).unwrap();
        assert_eq!(order, "1 preStart\n2 program\n3 preStop\n4 signalled\n5 postStop\n");
    }
}

#[test]
fn c8_s5_exit_code_is_that_of_the_program_and_not_of_post_stop() {
    let (_, path) = file("post-stop-code", r#"{ "postStop": ["sh", "-c", "exit 4"] }"#);
    for (script, code) in [("exit 0", 0), ("exit 7", 7)] {
        assert_eq!(
            Supervisor::with_args(Mode::Plain, &["-config", &path, "sh", "-c", script]).wait().0,
            code
        );
    }
    let program = format!("{}/on-signal.sh", programs());
    let mut run = Supervisor::with_args(Mode::Plain, &["-config", &path, &program, "TERM", "exit 9"]);
    run.wait_for_line("ready");
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn c8_on_start_is_the_old_name_of_pre_start() {
    let (_, path) = file("on-start", r#"{ "onStart": ["sh", "-c", "echo preparing; exit 6"] }"#);
    for mode in modes() {
        let (code, log) =
            Supervisor::with_args(mode, &["-config", &path, "sh", "-c", "echo the program"]).wait();
        assert_eq!(code, 6);
        assert!(log.contains("preparing") && !log.contains("the program"));
    }
}

#[test]
fn c8_failed_pre_start_ends_the_container_with_its_exit_code() {
    let text = r#"{ "preStart": ["sh", "-c", "exit 6"], "preStop": "touch DIR/stopped", "postStop": "touch DIR/after" }"#;
    for mode in modes() {
        let (folder, path) = file("fails", text);
        let run = Supervisor::with_args(mode, &["-config", &path, "touch", &format!("{folder}/program")]);
        assert_eq!(run.wait().0, 6);
        for name in ["program", "stopped", "after"] {
            assert!(!fs::exists(format!("{folder}/{name}")).unwrap(), "{name} ran");
        }
    }
}

#[test]
fn c8_tasks_run_and_backends_see_services() {
    let text = r#"{
        "services": [{ "name": "web", "port": 80, "health": "true", "poll": 1, "ttl": 5, "interfaces": "static:10.0.0.1" }],
        "backends": [{ "name": "web", "poll": 1, "onChange": ["sh", "-c", "echo changed"] }],
        "tasks": [{ "name": "tick", "command": "echo tock", "frequency": "100ms" }]
    }"#;
    let (_, path) = file("tasks", text);
    let mut run = Supervisor::with_args(modes()[0], &["-config", &path, "sleep", "1000"]);
    run.wait_for_lines("tock", 3);
    run.wait_for_lines(" changed", 1);
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn c8_w4_tasks_run_first_one_interval_after_pre_start() {
    let text = r#"{
        "preStart": ["sh", "-c", "sleep 0.5; echo prepared"],
        "tasks": [{ "name": "often", "command": "echo tock", "frequency": "100ms" },
                  { "name": "rarely", "command": "echo too-early", "frequency": "1h" }]
    }"#;
    let (_, path) = file("later", text);
    for mode in modes() {
        let mut run = Supervisor::with_args(mode, &["-config", &path, "sleep", "1000"]);
        run.wait_for_line("prepared");
        assert!(!run.log_so_far().contains("tock"), "{}", run.log_so_far());
        run.wait_for_lines("tock", 3);
        run.signal("-TERM");
        let (code, log) = run.wait();
        assert_eq!(code, 0);
        assert!(!log.contains("too-early"));
    }
}

#[test]
fn c8_sigusr1_toggles_maintenance() {
    let text = r#"{
        "services": [{ "name": "web", "port": 80, "health": "sh -c true", "poll": 1, "ttl": 5, "interfaces": "static:10.0.0.1" }],
        "logging": { "level": "DEBUG" }
    }"#;
    let (_, path) = file("usr1", text);
    for mode in modes() {
        let mut run =
            Supervisor::with_args(mode, &["-config", &path, "sh", "-c", "echo ready; exec sleep 1000"]);
        run.wait_for_lines("ready", 1);
        run.signal("-USR1");
        run.wait_for_line("enterMaintenance");
        run.signal("-USR1");
        run.wait_for_line("exitMaintenance");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn c8_d8_maintenance_pauses_tasks_backends_and_sensors() {
    let text = r#"{
        "services": [{ "name": "web", "port": 80, "poll": 1, "ttl": 5, "interfaces": "static:10.0.0.1" }],
        "backends": [{ "name": "web", "poll": 1, "onChange": "echo instances-changed" }],
        "tasks": [{ "name": "tick", "command": "echo tock", "frequency": "50ms" }],
        "telemetry": { "port": 0, "interfaces": "lo", "sensors": [
            { "name": "load", "type": "gauge", "poll": "50ms", "check": ["sh", "-c", "echo measured >&2; echo 1"] }] }
    }"#;
    let (_, path) = file("pause", text);
    for mode in modes() {
        let program = ["sh", "-c", "while :; do echo pulse; sleep 0.05; done"];
        let mut run =
            Supervisor::with_args(mode, &[&["-config", path.as_str()], program.as_slice()].concat());
        run.wait_for_line("instances-changed");
        run.wait_for_line("measured");
        run.signal("-USR1");
        run.wait_for_line("entering maintenance mode");
        // Runs that have started go on.
        for _ in 0..10 {
            run.wait_for_line("pulse");
        }
        let before = run.log_so_far();
        for _ in 0..20 {
            run.wait_for_line("pulse");
        }
        let paused = run.log_so_far();
        for text in ["tock", "measured", "instances-changed"] {
            assert_eq!(
                before.matches(text).count(),
                paused.matches(text).count(),
                "{text} in maintenance mode\n{paused}"
            );
        }
        run.signal("-USR1");
        run.wait_for_line("leaving maintenance mode");
        run.wait_for_line("instances-changed");
        run.wait_for_line("tock");
        run.wait_for_line("measured");
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn c8_x4_argument_beside_a_version_3_file_is_ignored() {
    let (_, path) = file("three", "{ jobs: [{ exec: 'sleep 1000' }] }");
    let mut run = Supervisor::with_args(modes()[0], &["-config", &path, "nginx"]);
    run.wait_for_line("sleep started");
    assert!(run.stderr().contains("ignoring `nginx` after the configuration"), "{}", run.stderr());
    run.signal("-TERM");
    assert_eq!(run.wait().0, 0);
}
