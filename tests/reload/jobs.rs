//! What a reload does to jobs and watches.

use std::fs;

use super::{reload, reload_to, rewrite, run, summary};
use crate::support::config::Config;
use crate::support::http_client::Pilot;
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

const SLEEP: &str = "exec: 'sleep 1000'";

#[test]
fn r3_unchanged_jobs_keep_their_process_and_changed_ones_are_restarted() {
    let mut pilot = Pilot::start(&Config::new().jobs(["gone", "other", "kept"], SLEEP));
    let (pid, before) = (pilot.pid_of("kept"), pilot.pid_of("other"));
    let changed =
        Config::new().job("kept", SLEEP).job("new", "exec: 'sleep 1002'").job("other", "exec: 'sleep 1001'");
    let answer = reload_to(&pilot, &changed);
    assert_eq!(summary(&answer), "kept|other|new|gone");
    pilot.wait_for_state("new", "running");
    assert_eq!(pilot.job("kept")["pid"], pid);
    assert_ne!(pilot.pid_of("other"), before);
    let status = pilot.get("/v3/status").json();
    assert_eq!(status["jobs"].as_array().unwrap().len(), 3, "{status}");
    pilot.supervisor.wait_for_line("reload: restarted other; started new; removed gone; kept 1 job");
    pilot.supervisor.signal("-TERM");
    let (code, log) = pilot.supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("kept exited on SIGTERM"));
}

#[test]
fn r3_reload_of_an_unchanged_file_does_nothing() {
    let pilot = Pilot::start(&Config::new().job("a", SLEEP).job("b", "exec: 'true'"));
    pilot.wait_for_state("b", "complete");
    let pid = pilot.pid_of("a");
    for _ in 0..3 {
        assert_eq!(summary(&reload(&pilot)), "a,b|||");
    }
    assert_eq!(pilot.job("a")["pid"], pid);
    assert_eq!(pilot.job("b")["state"], "complete", "the complete job was started again");
}

#[test]
fn r3_reload_restarts_jobs_whose_variables_were_set() {
    let jobs = r#"{ jobs: [
        { name: "app", exec: ["sh", "-c", "echo COLOUR is ${COLOUR:-black}; exec sleep 60"] },
        { name: "own", exec: "sleep 60", env: { COLOUR: "green" } },
    ] }"#;
    let mut pilot = Pilot::start(jobs);
    pilot.supervisor.wait_for_line("COLOUR is black");
    assert_eq!(run(&pilot, &["putenv", "COLOUR=red"]).0, 0);
    let (code, plan, _) = run(&pilot, &["check", "--diff"]);
    assert!(code == 0 && plan.contains("restart    app") && plan.contains("keep       own"), "{plan}");
    assert_eq!(summary(&reload(&pilot)), "own|app||");
    pilot.supervisor.wait_for_line("COLOUR is red");
    assert_eq!(summary(&reload(&pilot)), "app,own|||");
}

#[test]
fn r3_hooks_of_a_changed_job_run_when_it_is_stopped() {
    let bye = "exec: ['sh', '-c', 'echo stopping >> @/hooks'], when: { source: 'web', each: 'stopping' }";
    let config = |seconds: u32| Config::new().job("web", format!("exec: 'sleep {seconds}'")).job("bye", bye);
    let pilot = Pilot::start(&config(1000));
    pilot.wait_for_state("web", "running");
    let answer = reload_to(&pilot, &config(1001));
    assert_eq!(summary(&answer), "bye|web||");
    assert_eq!(fs::read_to_string(pilot.supervisor.file("hooks")).unwrap(), "stopping\n");
    pilot.wait_for_state("web", "running");
}

#[test]
fn r3_unchanged_job_keeps_its_restart_count_and_health() {
    let web =
        "exec: ['sh', '-c', 'test -e @/once || { touch @/once; exit 1; }; exec sleep 1000'], restarts: 5,
               health: { exec: 'true', interval: 1, ttl: 10 }";
    let pilot = Pilot::start(&Config::new().job("web", web));
    // It may have been healthy in its first run already.
    wait_until("it is healthy in its second run", || {
        let web = pilot.job("web");
        web["health"] == "healthy" && web["restarts"] == 1
    });
    let before = pilot.job("web");
    reload_to(&pilot, &Config::new().job("other", SLEEP).job("web", web));
    let after = pilot.job("web");
    for key in ["pid", "restarts", "health", "restartsLeft", "startedAt"] {
        assert_eq!(before[key], after[key], "{key}");
    }
}

#[test]
fn r3_only_new_and_changed_jobs_see_startup() {
    let old = "exec: ['sh', '-c', 'echo x >> @/old'], when: { each: 'startup' }";
    let config = Config::new().job("old", old).job("a", SLEEP);
    let pilot = Pilot::start(&config);
    wait_until("the old job has run", || pilot.supervisor.size("old") > 0);
    reload_to(&pilot, &config.job("b", "exec: 'touch @/new'"));
    wait_until("the new job has seen startup", || pilot.supervisor.file("new").exists());
    pilot.wait_for_state("b", "complete");
    assert_eq!(pilot.supervisor.size("old"), 2, "the old job has run again");
}

#[test]
fn c6_reload_restarts_all_coprocesses_with_new_limits() {
    let config = |restarts: u32| {
        let coprocesses = format!(
            "coprocesses: [{{ name: 'co', command: 'sleep 1000' }},
               {{ name: 'short', command: ['sh', '-c', 'echo x >> @/short'], restarts: {restarts} }}]"
        );
        Config::new().job("main", SLEEP).keys(coprocesses)
    };
    let pilot = Pilot::start(&config(1));
    wait_until("it is restarted", || pilot.supervisor.size("short") == 4);
    let (main, co) = (pilot.pid_of("main"), pilot.pid_of("co"));
    let answer = reload_to(&pilot, &config(2));
    assert_eq!(answer["kept"], serde_json::json!(["main"]), "{answer}");
    assert_ne!(pilot.pid_of("co"), co);
    assert_eq!(pilot.job("main")["pid"], main);
    wait_until("it is restarted up to the new limit", || pilot.supervisor.size("short") == 4 + 6);
}

#[test]
fn w10_replacing_the_last_job_does_not_end_the_supervisor() {
    let pilot = Pilot::start(&Config::new().job("a", SLEEP));
    pilot.wait_for_state("a", "running");
    let answer = reload_to(&pilot, &Config::new().job("b", SLEEP));
    assert_eq!(summary(&answer), "||b|a");
    pilot.wait_for_state("b", "running");
}

#[test]
fn s7_reload_keeps_the_main_program_running() {
    let folder = std::env::temp_dir().join(format!("containerpilot-reload-main-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.json5");
    fs::write(&file, &*Config::new().job("side", SLEEP)).unwrap();
    let file = file.to_str().unwrap();
    let main = Supervisor::with_args(Mode::Plain, &["-config", file, "--", "sleep", "1003"]);
    let socket = main.file("socket");
    let pilot = Pilot { supervisor: main, socket };
    wait_until("the control socket exists", || pilot.socket.exists());
    let pid = pilot.pid_of("sleep");
    fs::write(file, "{ jobs: [{ name: 'side', exec: 'sleep 1001' }] }").unwrap();
    assert_eq!(summary(&reload(&pilot)), "sleep|side||");
    assert_eq!((&pilot.job("sleep")["pid"], &pilot.job("sleep")["role"]), (&pid, &"main".into()));
    pilot.supervisor.signal("-TERM");
    assert_eq!(pilot.supervisor.wait().0, 0);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn r1_r3_reload_of_a_directory_in_both_modes() {
    for mode in modes() {
        let folder =
            std::env::temp_dir().join(format!("containerpilot-reload-{}-{mode:?}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1.json5"), &*Config::new().job("a", SLEEP)).unwrap();
        let mut supervisor = Supervisor::with_args(mode, &["-config", folder.to_str().unwrap()]);
        supervisor.wait_for_line("a started");
        fs::write(folder.join("2.json5"), "{ jobs: [{ name: 'b', exec: 'sleep 1001' }] }").unwrap();
        supervisor.signal("-HUP");
        supervisor.wait_for_line("reload: started b; kept 1 job");
        supervisor.wait_for_line("b started");
        supervisor.signal("-TERM");
        assert_eq!(supervisor.wait().0, 0);
        let _ = fs::remove_dir_all(folder);
    }
}

#[test]
fn r3_new_watch_sees_services_that_are_already_healthy() {
    let web = "exec: 'sleep 1000', port: 8080, interfaces: 'static:127.0.0.1',
               health: { exec: 'true', interval: 1, ttl: 10 }";
    let pilot = Pilot::start(&Config::new().job("web", web));
    wait_until("web is healthy", || pilot.job("web")["health"] == "healthy");
    let first = "exec: 'touch @/seen', when: { source: 'watch.web', once: 'healthy' }";
    let watched =
        Config::new().job("first", first).job("web", web).keys("watches: [{ name: 'web', interval: 1 }]");
    reload_to(&pilot, &watched);
    wait_until("the watch sees the service", || pilot.supervisor.file("seen").exists());
    let answer = reload_to(&pilot, &Config::new().job("web", web));
    assert_eq!(summary(&answer), "web|||first");
    assert_eq!(answer["settings"], serde_json::json!(["watches"]));
}

#[test]
fn r3_removed_job_that_ignores_sigterm_is_killed() {
    let stubborn = "exec: ['sh', '-c', 'trap \"\" TERM; touch @/ready; while :; do sleep 1; done']";
    let a = Config::new().keys("stopTimeout: 1").job("a", SLEEP);
    let mut pilot = Pilot::start(&a.clone().job("stubborn", stubborn));
    wait_until("the job is ready", || pilot.supervisor.file("ready").exists());
    rewrite(&pilot, &a);
    assert_eq!(summary(&reload(&pilot)), "a|||stubborn");
    pilot.supervisor.wait_for_line("stubborn exited on SIGKILL");
}

#[test]
fn c8_reload_keeps_the_main_program_of_a_version_2_file_running() {
    let folder = std::env::temp_dir().join(format!("containerpilot-reload-v2-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("containerpilot.json");
    let task = |seconds: u32| {
        format!(
            r#"{{ "services": [], "tasks": [{{ "name": "task", "command": "sleep {seconds}", "frequency": "1h", "timeout": "1h" }}] }}"#
        )
    };
    fs::write(&file, task(1000)).unwrap();
    let supervisor =
        Supervisor::with_args(Mode::Plain, &["-config", file.to_str().unwrap(), "sleep", "1003"]);
    let socket = supervisor.file("socket");
    let mut pilot = Pilot { supervisor, socket };
    wait_until("the control socket exists", || pilot.socket.exists());
    let main = |pilot: &Pilot| {
        let status = pilot.get("/v3/status").json();
        status["jobs"].as_array().unwrap().iter().find(|job| job["role"] == "main").unwrap()["pid"].clone()
    };
    wait_until("the main program runs", || main(&pilot).is_number());
    let pid = main(&pilot);
    fs::write(&file, task(1001)).unwrap();
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("reload: changed, waiting: task; kept 1 job");
    assert_eq!(main(&pilot), pid);
    // A version 3 file has no place for a main program without `--`, so this is an error.
    fs::write(&file, "{ jobs: [] }").unwrap();
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.body.contains("needs `--` before it"), "{answer:?}");
    assert_eq!(main(&pilot), pid);
    let _ = fs::remove_dir_all(folder);
}
