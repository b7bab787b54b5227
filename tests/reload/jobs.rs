//! What becomes of jobs.

use std::fs;

use crate::client::Pilot;
use crate::support::{As, Supervisor, until, ways};
use crate::{done, reload, reload_to, rewrite};

const SLEEP: &str = "exec: 'sleep 1000'";

#[test]
fn r3_unchanged_jobs_keep_their_process_and_the_others_do_not() {
    let mut pilot = Pilot::start(&format!(
        "{{ jobs: [{{ name: 'gone', {SLEEP} }}, {{ name: 'other', {SLEEP} }}, {{ name: 'kept', {SLEEP} }}] }}"
    ));
    pilot.await_state("kept", "running");
    let pid = pilot.job("kept")["pid"].clone();
    let before = pilot.job("other")["pid"].clone();
    let answer = reload_to(
        &pilot,
        &format!(
            "{{ jobs: [{{ name: 'kept', {SLEEP} }}, {{ name: 'new', exec: 'sleep 1002' }}, {{ name: 'other', exec: 'sleep 1001' }}] }}"
        ),
    );
    assert_eq!(done(&answer), "kept|other|new|gone");
    pilot.await_state("new", "running");
    pilot.await_state("other", "running");
    assert_eq!(pilot.job("kept")["pid"], pid);
    assert_ne!(pilot.job("other")["pid"], before);
    let status = pilot.get("/v3/status").json();
    assert_eq!(status["jobs"].as_array().unwrap().len(), 3, "{status}");
    // Lines of its log are under its name, at its new place.
    pilot.supervisor.line("reload: restarted other; started new; stopped gone; kept 1 job");
    pilot.supervisor.signal("-TERM");
    let (code, log) = pilot.supervisor.end();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("kept was ended by signal 15"), "{log}");
}

#[test]
fn r3_a_reload_to_the_same_file_does_nothing() {
    let pilot =
        Pilot::start(&format!("{{ jobs: [{{ name: 'a', {SLEEP} }}, {{ name: 'b', exec: 'true' }}] }}"));
    pilot.await_state("b", "complete");
    let pid = pilot.job("a")["pid"].clone();
    for _ in 0..3 {
        assert_eq!(done(&reload(&pilot)), "a,b|||");
    }
    assert_eq!(pilot.job("a")["pid"], pid);
    assert_eq!(pilot.job("b")["state"], "complete", "it is not started again");
}

#[test]
fn r3_a_changed_job_is_stopped_with_its_hooks() {
    let config = |seconds: u32| {
        format!(
            "{{ jobs: [{{ name: 'web', exec: 'sleep {seconds}' }},
               {{ name: 'bye', exec: ['sh', '-c', 'echo stopping >> @/hooks'], when: {{ source: 'web', each: 'stopping' }} }}] }}"
        )
    };
    let pilot = Pilot::start(&config(1000));
    pilot.await_state("web", "running");
    let answer = reload_to(&pilot, &config(1001));
    assert_eq!(done(&answer), "bye|web||");
    assert_eq!(fs::read_to_string(pilot.supervisor.file("hooks")).unwrap(), "stopping\n");
    pilot.await_state("web", "running");
}

#[test]
fn r3_restarts_and_health_are_kept() {
    let web = "{ name: 'web', exec: ['sh', '-c', 'test -e @/once || { touch @/once; exit 1; }; exec sleep 1000'], restarts: 5,
                 health: { exec: 'true', interval: 1, ttl: 10 } }";
    let pilot = Pilot::start(&format!("{{ jobs: [{web}] }}"));
    // It may have been healthy in its first run, too.
    until("it is not healthy in its second run", || {
        let web = pilot.job("web");
        web["health"] == "healthy" && web["restarts"] == 1
    });
    let before = pilot.job("web");
    reload_to(&pilot, &format!("{{ jobs: [{{ name: 'other', {SLEEP} }}, {web}] }}"));
    let after = pilot.job("web");
    for key in ["pid", "restarts", "health", "restartsLeft", "startedAt"] {
        assert_eq!(before[key], after[key], "{key}");
    }
}

#[test]
fn r3_only_new_and_changed_jobs_see_startup() {
    let old = "{ name: 'old', exec: ['sh', '-c', 'echo x >> @/old'], when: { each: 'startup' } }";
    let pilot = Pilot::start(&format!("{{ jobs: [{old}, {{ name: 'a', {SLEEP} }}] }}"));
    until("it has not run", || pilot.supervisor.size("old") > 0);
    reload_to(
        &pilot,
        &format!("{{ jobs: [{old}, {{ name: 'a', {SLEEP} }}, {{ name: 'b', exec: 'touch @/new' }}] }}"),
    );
    until("the new one has not seen startup", || pilot.supervisor.file("new").exists());
    pilot.await_state("b", "complete");
    assert_eq!(pilot.supervisor.size("old"), 2, "it has run once");
}

#[test]
fn c6_coprocesses_are_all_stopped_and_started_with_new_limits() {
    let config = |restarts: u32| {
        format!(
            "{{ jobs: [{{ name: 'main', {SLEEP} }}], coprocesses: [
               {{ name: 'co', command: 'sleep 1000' }},
               {{ name: 'short', command: ['sh', '-c', 'echo x >> @/short'], restarts: {restarts} }}] }}"
        )
    };
    let pilot = Pilot::start(&config(1));
    until("it was not restarted", || pilot.supervisor.size("short") == 4);
    pilot.await_state("co", "running");
    let (main, co) = (pilot.job("main")["pid"].clone(), pilot.job("co")["pid"].clone());
    let answer = reload_to(&pilot, &config(2));
    assert_eq!(answer["kept"], serde_json::json!(["main"]), "{answer}");
    pilot.await_state("co", "running");
    assert_ne!(pilot.job("co")["pid"], co);
    assert_eq!(pilot.job("main")["pid"], main);
    until("the new limit does not count", || pilot.supervisor.size("short") == 4 + 6);
}

#[test]
fn w10_the_last_job_may_be_replaced_without_the_end_of_the_container() {
    let pilot = Pilot::start(&format!("{{ jobs: [{{ name: 'a', {SLEEP} }}] }}"));
    pilot.await_state("a", "running");
    let answer = reload_to(&pilot, &format!("{{ jobs: [{{ name: 'b', {SLEEP} }}] }}"));
    assert_eq!(done(&answer), "||b|a");
    pilot.await_state("b", "running");
}

#[test]
fn s7_the_program_of_the_command_line_goes_on() {
    let folder = std::env::temp_dir().join(format!("containerpilot-reload-main-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.json5");
    fs::write(&file, format!("{{ jobs: [{{ name: 'side', {SLEEP} }}] }}")).unwrap();
    let file = file.to_str().unwrap();
    let main = Supervisor::with(As::Plain, &["-config", file, "--", "sleep", "1003"]);
    let socket = main.file("socket");
    let pilot = Pilot { supervisor: main, socket };
    until("there is no socket", || pilot.socket.exists());
    pilot.await_state("sleep", "running");
    let pid = pilot.job("sleep")["pid"].clone();
    fs::write(file, "{ jobs: [{ name: 'side', exec: 'sleep 1001' }] }").unwrap();
    assert_eq!(done(&reload(&pilot)), "sleep|side||");
    assert_eq!((&pilot.job("sleep")["pid"], &pilot.job("sleep")["role"]), (&pid, &"main".into()));
    pilot.supervisor.signal("-TERM");
    assert_eq!(pilot.supervisor.end().0, 0);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn r1_r3_as_pid_1_too_and_from_a_directory() {
    for how in ways() {
        let folder =
            std::env::temp_dir().join(format!("containerpilot-reload-{}-{how:?}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1.json5"), format!("{{ jobs: [{{ name: 'a', {SLEEP} }}] }}")).unwrap();
        let mut supervisor = Supervisor::with(how, &["-config", folder.to_str().unwrap()]);
        supervisor.line("a started");
        fs::write(folder.join("2.json5"), "{ jobs: [{ name: 'b', exec: 'sleep 1001' }] }").unwrap();
        supervisor.signal("-HUP");
        supervisor.line("reload: started b; kept 1 job");
        supervisor.line("b started");
        supervisor.signal("-TERM");
        let (code, log) = supervisor.end();
        assert_eq!(code, 0, "{log}");
        let _ = fs::remove_dir_all(folder);
    }
}

#[test]
fn r3_a_watch_of_the_new_file_sees_what_is_there_already() {
    let web = "{ name: 'web', exec: 'sleep 1000', port: 8080, interfaces: 'static:127.0.0.1', health: { exec: 'true', interval: 1, ttl: 10 } }";
    let pilot = Pilot::start(&format!("{{ jobs: [{web}] }}"));
    until("it is not healthy", || pilot.job("web")["health"] == "healthy");
    reload_to(
        &pilot,
        &format!(
            "{{ jobs: [{{ name: 'first', exec: 'touch @/seen', when: {{ source: 'watch.web', once: 'healthy' }} }}, {web}],
                watches: [{{ name: 'web', interval: 1 }}] }}"
        ),
    );
    until("the watch sees nothing", || pilot.supervisor.file("seen").exists());
    let answer = reload_to(&pilot, &format!("{{ jobs: [{web}] }}"));
    assert_eq!(done(&answer), "web|||first");
    assert_eq!(answer["settings"], serde_json::json!(["watches"]));
}

#[test]
fn r3_what_does_not_stop_in_time_is_killed() {
    let stubborn = "{ name: 'stubborn', exec: ['sh', '-c', 'trap \"\" TERM; touch @/ready; while :; do sleep 1; done'] }";
    let mut pilot =
        Pilot::start(&format!("{{ stopTimeout: 1, jobs: [{stubborn}, {{ name: 'a', {SLEEP} }}] }}"));
    until("it is not ready", || pilot.supervisor.file("ready").exists());
    rewrite(&pilot, &format!("{{ stopTimeout: 1, jobs: [{{ name: 'a', {SLEEP} }}] }}"));
    assert_eq!(done(&reload(&pilot)), "a|||stubborn");
    pilot.supervisor.line("stubborn was ended by signal 9");
}

#[test]
fn c8_the_main_program_of_a_version_2_file_goes_on() {
    let folder = std::env::temp_dir().join(format!("containerpilot-reload-v2-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("containerpilot.json");
    let task = |seconds: u32| {
        format!(
            r#"{{ "services": [], "tasks": [{{ "name": "task", "command": "sleep {seconds}", "frequency": "1h", "timeout": "1h" }}] }}"#
        )
    };
    fs::write(&file, task(1000)).unwrap();
    let supervisor = Supervisor::with(As::Plain, &["-config", file.to_str().unwrap(), "sleep", "1003"]);
    let socket = supervisor.file("socket");
    let mut pilot = Pilot { supervisor, socket };
    until("there is no socket", || pilot.socket.exists());
    let main = |pilot: &Pilot| {
        let status = pilot.get("/v3/status").json();
        status["jobs"].as_array().unwrap().iter().find(|job| job["role"] == "main").unwrap()["pid"].clone()
    };
    until("it does not run", || main(&pilot).is_number());
    let pid = main(&pilot);
    fs::write(&file, task(1001)).unwrap();
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.line("reload: restarted task; kept 1 job");
    assert_eq!(main(&pilot), pid);
    // Beside a version 3 file such a program means nothing, so that is an error.
    fs::write(&file, "{ jobs: [] }").unwrap();
    let answer = pilot.post("/v3/reload", "");
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.body.contains("needs `--` before it"), "{answer:?}");
    assert_eq!(main(&pilot), pid);
    let _ = fs::remove_dir_all(folder);
}
