//! Loading a configuration that names paths on a file system that does not answer (P15).
//!
//! The file system and its server are in the namespaces of the supervisor. They end with it, and so does every wait.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::fixture::{Hostile, Rank, as_init_and_child, permitted, request};
use crate::support::config::Config;
use crate::support::deadline::holds_within;
use crate::support::program::with_paths;
use crate::support::supervisor::{child_pids, wait_until};

/// A script that mounts a file system without answers at `@/stuck`, at once or when `@/mount` is created.
fn stuck_file_system(at_once: bool) -> Option<String> {
    if !std::path::Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse");
        return None;
    }
    let mount = "mkdir @/stuck; @/hostile fuse @/stuck @/mount @/mounted &";
    let now = if at_once { "touch @/mount; while [ ! -e @/mounted ]; do :; done" } else { "" };
    Some(format!("{mount}\n{now}"))
}

/// Mounts the file system of a script that has not mounted it at once.
fn mount(hostile: &Hostile) {
    fs::write(hostile.run.file("mount"), "").unwrap();
    hostile.await_file("mounted");
}

/// Runs a command in the mount namespace of the supervisor. Returns its exit code and its output. If its output
/// contains `until` before it has exited, it is ended, and has no code.
fn command(hostile: &Hostile, args: &[&str], until: Option<&str>) -> (Option<i32>, String) {
    let (out, pid) = (hostile.run.file("output"), hostile.pid.to_string());
    let file = fs::File::create(&out).unwrap();
    let args = args.iter().map(|arg| with_paths(arg, Path::new(hostile.run.folder())));
    let mut child = Command::new("nsenter")
        .args(["-t", &pid, "-m", "--", env!("CARGO_BIN_EXE_containerpilot")])
        .args(args)
        .env_remove("CONTAINERPILOT")
        .env("CONTAINERPILOT_SOCKET", hostile.socket())
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let text = || fs::read_to_string(&out).unwrap();
    let mut status = None;
    let in_time = holds_within(Duration::from_secs(20), || {
        status = child.try_wait().unwrap();
        status.is_some() || until.is_some_and(|until| text().contains(until))
    });
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    assert!(in_time, "it does not end: {}", text());
    (status.and_then(|status| status.code()), text())
}

const STUCK_JOBS: &str = "{ name: 'directory', exec: 'sleep 1000', cwd: '@/stuck/cwd' },
    { name: 'program', exec: '@/stuck/program' },
    { name: 'script', exec: '@/script' },
    { name: 'missing', exec: '/no/such/program' }";

/// A script with an interpreter that does not answer.
const SCRIPT: &str = "printf '#!%s\\n' @/stuck/sh > @/script; chmod 755 @/script";

fn assert_warnings(text: &str) {
    for warning in [
        "/stuck/cwd` could not be examined within 1s",
        "/stuck/program` could not be examined within 1s",
        "/script` could not be examined within 1s",
        "program `/no/such/program` not found",
    ] {
        assert!(text.contains(warning), "{warning}: {text}");
    }
}

#[test]
fn p15_directory_and_programs_that_do_not_answer_hold_up_no_other_job_at_the_start() {
    let Some(script) = stuck_file_system(true) else { return };
    as_init_and_child(|rank| {
        let config = format!("jobs: [{STUCK_JOBS}, {{ name: 'main', exec: 'sleep 1000' }}]");
        let mut hostile = Hostile::with_setup(rank, &format!("{SCRIPT}\n{script}"), 2, &config);
        hostile.await_state("main", "running");
        assert_warnings(&hostile.run.stderr());
        hostile.stops();
    });
}

/// Their starts fail by themselves, and nothing of them is left: a thread of the supervisor that waits for the same
/// name would keep their processes from being killed.
#[test]
fn p15_p3_job_whose_program_does_not_answer_fails_after_10s_and_is_reaped() {
    let Some(script) = stuck_file_system(true) else { return };
    if !permitted() {
        return;
    }
    let config = "jobs: [{ name: 'victim', exec: '@/stuck/program' }, { name: 'other', exec: 'sleep 1000',
        cwd: '@/stuck/cwd' }, { name: 'main', exec: 'sleep 1000' }]";
    let mut hostile = Hostile::with_setup(Rank::Child, &script, 2, config);
    hostile.await_state("victim", "failed");
    hostile.await_state("other", "failed");
    let processes = || child_pids(hostile.pid).len();
    wait_until("only main has a process", || processes() == 1);
    hostile.stops();
}

#[test]
fn p15_fifty_jobs_that_do_not_answer_take_as_long_as_one() {
    let Some(script) = stuck_file_system(true) else { return };
    as_init_and_child(|rank| {
        let main = Config::new().job("main", "exec: 'sleep 1000'");
        let stuck = |nth| format!("exec: '@/stuck/{nth}', cwd: '@/stuck/d{nth}'");
        let config = (0..50).fold(main, |config, nth| config.job(format!("stuck{nth}"), stuck(nth)));
        // The control socket must answer within 20 s.
        let mut hostile = Hostile::with_setup(rank, &script, 2, &config);
        hostile.await_state("main", "running");
        assert_eq!(hostile.run.stderr().matches("could not be examined within 1s").count(), 100);
        hostile.stops();
    });
}

#[test]
fn p15_secret_log_file_and_rendered_files_that_do_not_answer_hold_up_no_other_job() {
    let Some(script) = stuck_file_system(true) else { return };
    as_init_and_child(|rank| {
        let config = "jobs: [
            { name: 'secret', exec: 'sleep 1000', secrets: { NAME: { file: '@/stuck/secret' } } },
            { name: 'log', exec: 'sleep 1000', logging: { file: '@/stuck/folder/log' } },
            { name: 'template', exec: 'sleep 1000', requires: ['file.from'] },
            { name: 'target', exec: 'sleep 1000', requires: ['file.to'] },
            { name: 'good', exec: 'sleep 1000', requires: ['file.good'] },
            { name: 'main', exec: 'sleep 1000' }],
          files: [{ name: 'from', from: '@/stuck/template', to: '@/from' },
                  { name: 'to', template: 'x', to: '@/stuck/to' },
                  { name: 'good', template: 'x', to: '@/good' }]";
        let config = format!("logging: {{ output: '@/log' }}, {config}");
        let mut hostile = Hostile::with_setup(rank, &script, 2, &config);
        for job in ["main", "log", "good"] {
            hostile.await_state(job, "running");
        }
        let stderr = hostile.run.stderr();
        assert!(stderr.contains("/stuck/template` could not be read within 1s"), "{stderr}");
        hostile.await_job("template", "waits", |job| job["state"] != "running");
        hostile.await_log("did not answer when the configuration was loaded");
        hostile.stops_with_hooks();
    });
}

#[test]
fn p15_paths_that_do_not_answer_hold_up_no_reload() {
    let Some(script) = stuck_file_system(false) else { return };
    as_init_and_child(|rank| {
        let main = "{ name: 'main', exec: 'sleep 1000' }";
        let script = format!("{SCRIPT}\n{script}");
        let mut hostile = Hostile::with_setup(rank, &script, 2, &format!("jobs: [{main}]"));
        mount(&hostile);
        hostile.rewrite(&format!("jobs: [{STUCK_JOBS}, {main}, {{ name: 'new', exec: 'sleep 1000' }}]"));
        hostile.send(1);
        wait_until("the new job runs", || {
            request(&hostile.socket(), "GET", "/v3/status").unwrap().contains("\"new\"")
        });
        hostile.await_state("new", "running");
        hostile.await_log("new started");
        assert_warnings(&hostile.log());
        hostile.stops();
    });
}

#[test]
fn p15_check_and_diff_warn_about_paths_that_do_not_answer() {
    let Some(script) = stuck_file_system(false) else { return };
    as_init_and_child(|rank| {
        let main = "{ name: 'main', exec: 'sleep 1000' }";
        let script = format!("{SCRIPT}\n{script}");
        let mut hostile = Hostile::with_setup(rank, &script, 2, &format!("jobs: [{main}]"));
        mount(&hostile);
        hostile.rewrite(&format!("jobs: [{STUCK_JOBS}, {main}]"));
        let (code, text) = command(&hostile, &["check", "@/config.json5"], None);
        assert_eq!(code, Some(0), "{text}");
        assert_warnings(&text);
        let (code, text) = command(&hostile, &["check", "--diff"], None);
        assert_eq!(code, Some(0), "{text}");
        assert_warnings(&text);
        assert!(text.contains("program") && hostile.job("main")["state"] == "running", "{text}");
        hostile.stops();
    });
}

#[test]
fn p15_commands_say_which_configuration_they_wait_for() {
    let Some(script) = stuck_file_system(false) else { return };
    if !permitted() {
        return;
    }
    let mut hostile =
        Hostile::with_setup(Rank::Init, &script, 2, "jobs: [{ name: 'main', exec: 'sleep 1000' }]");
    mount(&hostile);
    let waiting = format!("waiting for {}/stuck/config.json5", hostile.run.folder());
    for args in [
        ["check", "@/stuck/config.json5", "-strict"],
        ["render", "-config", "@/stuck/config.json5"],
        ["ping", "-config", "@/stuck/config.json5"],
    ] {
        let (code, text) = command(&hostile, &args, Some(&waiting));
        assert_eq!((code, text.matches("waiting for").count()), (None, 1), "{args:?}: {text}");
    }
    hostile.stops();
}

/// The supervisor waits for what it needs, says for what, and obeys SIGTERM.
fn waits_for(script: &str, config: &str, path: &str) {
    let Some(stuck) = stuck_file_system(true) else { return };
    as_init_and_child(|rank| {
        let mut hostile = Hostile::unanswered(rank, &format!("{stuck}\n{script}"), 1, config);
        let waiting = format!("containerpilot: waiting for {}/{path}: ", hostile.run.folder());
        wait_until("it says what it waits for", || {
            assert!(!hostile.has_exited(), "{}", hostile.run.stderr());
            hostile.run.stderr().contains(&waiting)
        });
        hostile.stops();
        let stderr = hostile.run.stderr();
        assert_eq!(stderr.matches("waiting for").count(), 1, "{stderr}");
        assert!(stderr.contains("stopped by a signal while loading the configuration"), "{stderr}");
    });
}

#[test]
fn p15_s1_configuration_that_does_not_answer_is_waited_for_by_name_and_sigterm_is_obeyed() {
    let script = "set -- \"$1\" -config @/stuck/config.json5";
    waits_for(script, "jobs: [{ name: 'main', exec: 'sleep 1000' }]", "stuck/config.json5");
}

#[test]
fn p15_s1_env_file_that_does_not_answer_is_waited_for_by_name_and_sigterm_is_obeyed() {
    let config =
        "jobs: [{ name: 'main', exec: 'sleep 1000' }, { name: 'b', exec: 'x', envFile: '@/stuck/env' }]";
    waits_for("", config, "stuck/env");
}

#[test]
fn p15_r2_reload_says_which_env_file_it_waits_for() {
    let Some(script) = stuck_file_system(false) else { return };
    as_init_and_child(|rank| {
        let main = "{ name: 'main', exec: 'sleep 1000' }";
        let mut hostile = Hostile::with_setup(rank, &script, 2, &format!("jobs: [{main}]"));
        mount(&hostile);
        hostile.rewrite(&format!("envFile: '@/stuck/env', jobs: [{main}]"));
        hostile.send(1);
        let waiting = format!("reload: waiting for {}/stuck/env: ", hostile.run.folder());
        wait_until("the log says what is waited for", || hostile.log().contains(&waiting));
        wait_until("the reload is given up", || hostile.log().contains("within 10s; nothing was changed"));
        assert_eq!(hostile.log().matches("waiting for").count(), 1, "{}", hostile.log());
        assert_eq!(hostile.job("main")["state"], "running");
        hostile.stops();
    });
}

#[test]
fn p15_certificate_that_does_not_answer_fails_its_check_and_holds_up_nothing_else() {
    let Some(script) = stuck_file_system(true) else { return };
    as_init_and_child(|rank| {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let config = format!(
            "jobs: [{{ name: 'main', exec: 'sleep 1000', health: {{ interval: 1, ttl: 5, timeout: '500ms',
                http: {{ url: 'https://127.0.0.1:{port}/', cafile: '@/stuck/ca' }} }} }}]"
        );
        // The control socket must answer all the time.
        let mut hostile = Hostile::with_setup(rank, &script, 2, &config);
        hostile.await_state("main", "running");
        hostile.await_job("main", "is unhealthy", |job| job["health"] == "unhealthy");
        let stderr = hostile.run.stderr();
        assert!(stderr.contains("/stuck/ca` could not be examined within 1s"), "{stderr}");
        hostile.stops();
    });
}
