//! `start`, `stop`, `restart`, `signal`, `maintenance`, `putenv`, `putmetric`, `reload`, `ping`, and 3.8's flags.

use std::process::Command;

use super::{decode, json, run_command, run_err, run_ok, supervisor, wait};
use crate::support::deadline::InTime;
use crate::support::supervisor::{Supervisor, wait_until};

/// Runs a command with the flags of 3.8, which find the socket by `-config` alone.
fn flags(it: &Supervisor, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.arg("-config").arg(it.file("config.json5")).args(args);
    decode(&command.output_in_time().unwrap())
}

const TWO: &str = "{ jobs: [{ name: 'a b/ä', exec: ['@programs/on-signal.sh', 'USR1', 'echo heard'] },
                            { name: 'other', exec: 'sleep 1000', health: { exec: 'true', interval: 1, ttl: 5 } },
                            { name: 'manual', exec: 'sleep 1000', when: { source: 'SIGUSR2' } }] }";

#[test]
fn x4_start_and_stop_accept_several_jobs_with_any_name() {
    let it = supervisor(TWO);
    wait(&it, "a b/ä", "running");
    assert_eq!(run_ok(&it, &["start", "manual"]), "manual: starting\n");
    wait(&it, "manual", "running");
    assert!(run_ok(&it, &["start", "manual"]).starts_with("manual: already running"));
    let (code, out, err) = run_command(&it, &["stop", "manual", "nobody", "a b/ä"]);
    assert_eq!((code, out.as_str()), (1, "manual: stopping\na b/ä: stopping\n"));
    assert!(err.starts_with("containerpilot: there is no job `nobody`; the jobs are: "), "{err}");
    wait(&it, "a b/ä", "stopped");
    wait(&it, "manual", "stopped");
    assert!(run_ok(&it, &["status", "manual"]).starts_with("manual: stopped\n"));
    let shown = run_ok(&it, &["status", "other"]);
    assert!(shown.starts_with("other: running"), "{shown}");
}

#[test]
fn x4_signal_is_sent_to_the_processes_of_a_job() {
    let mut it = supervisor(TWO);
    it.wait_for_line("ready");
    assert!(run_ok(&it, &["signal", "a b/ä", "USR1"]).starts_with("a b/ä: "));
    it.wait_for_line("heard");
    run_ok(&it, &["signal", "a b/ä", "SIGUSR1"]);
    it.wait_for_line("heard");
    run_ok(&it, &["signal", "a b/ä", "10"]);
    it.wait_for_line("heard");
    let (code, _, err) = run_command(&it, &["signal", "a b/ä", "USR9"]);
    assert!(code == 2 && err.contains("unknown signal `USR9`; did you mean SIGUSR1?"), "{err}");
    assert!(run_err(&it, &["signal", "manual", "HUP"]).starts_with("manual: "));
}

#[test]
fn d8_maintenance_can_be_enabled_disabled_and_queried() {
    let it = supervisor(TWO);
    wait(&it, "other", "healthy");
    assert_eq!(run_ok(&it, &["maintenance", "status"]), "not in maintenance mode\n");
    assert!(run_ok(&it, &["maintenance", "enable"]).starts_with("entered maintenance mode: "));
    assert_eq!(run_ok(&it, &["maintenance", "enable"]), "already in maintenance mode\n");
    assert_eq!(run_ok(&it, &["maintenance", "status"]), "in maintenance mode: checks are suspended\n");
    assert!(run_ok(&it, &["status"]).lines().next().unwrap().ends_with(", in maintenance mode"));
    assert_eq!(
        run_ok(&it, &["health", "other"]),
        "other is running; the container is in maintenance mode: checks are suspended\n"
    );
    assert_eq!(run_ok(&it, &["maintenance", "disable"]), "left maintenance mode\n");
    assert_eq!(run_ok(&it, &["maintenance", "disable"]), "not in maintenance mode\n");
    wait(&it, "other", "healthy");
    assert_eq!(flags(&it, &["-maintenance", "enable"]), (0, String::new(), String::new()));
    assert_eq!(run_ok(&it, &["maintenance", "status"]), "in maintenance mode: checks are suspended\n");
    let (code, _, err) = flags(&it, &["-maintenance", "off"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(run_ok(&it, &["maintenance", "status"]), "in maintenance mode: checks are suspended\n");
}

#[test]
fn l5_putenv_values_reach_new_processes_and_are_never_shown() {
    let mut it = supervisor("{ jobs: [{ name: 'show', exec: ['sh', '-c', 'echo \"<$WORD|$OTHER>\" > @/seen'], when: { source: 'SIGHUP' } },
                                      { name: 'rest', exec: 'sleep 1000' }] }");
    wait(&it, "rest", "running");
    let seen = |it: &Supervisor, expected: &str| {
        it.signal("-HUP");
        wait_until("the job has seen the variable", || it.read("seen") == expected);
        std::fs::remove_file(it.file("seen")).unwrap();
    };
    assert_eq!(run_ok(&it, &["putenv", "WORD=hush hush=1", "OTHER=hush"]), "");
    seen(&it, "<hush hush=1|hush>\n");
    assert_eq!(run_ok(&it, &["putenv", "OTHER="]), "");
    seen(&it, "<hush hush=1|>\n");
    assert_eq!(
        flags(&it, &["-putenv", "WORD=hush2", "-putenv", "OTHER=hush3"]),
        (0, String::new(), String::new())
    );
    seen(&it, "<hush2|hush3>\n");
    let (code, out, err) = run_command(&it, &["putenv", "A=hush", "hush"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("argument 2 is not KEY=VALUE") && !err.contains("hush"), "{err}");
    for args in [&["status", "--format", "json"][..], &["events", "--format", "json"], &["logs"]] {
        assert!(!run_ok(&it, args).contains("hush"), "{args:?}");
    }
    it.signal("-TERM");
    it.wait_for_line("rest exited on");
    assert!(!it.log_so_far().contains("hush"), "{}", it.log_so_far());
}

#[test]
fn x3_flags_of_3_8_work_as_before() {
    let it = supervisor("{ telemetry: { port: 0, interfaces: 'lo', metrics: [{ namespace: 'my', name: 'count', help: 'h', type: 'counter' }] },
                           jobs: [{ name: 'rest', exec: 'sleep 1000' }] }");
    wait(&it, "rest", "running");
    assert_eq!(flags(&it, &["-ping"]), (0, "ok\n".to_owned(), String::new()));
    assert_eq!(flags(&it, &["-putmetric", "my_count=2"]), (0, String::new(), String::new()));
    // Several flags are executed in order until one fails.
    assert_eq!(flags(&it, &["-ping", "-putenv", "A=1", "-putmetric", "my_count=2"]).0, 0);
    let (code, out, err) = flags(&it, &["-ping", "-putmetric", "nothing=2"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("containerpilot: -putmetric: failed to run subcommand: there is no metric `nothing`"),
        "{err}"
    );
    assert_eq!(run_ok(&it, &["putmetric", "my_count=1.5"]), "");
    assert!(run_err(&it, &["putmetric", "my_count=many"]).contains("my_count"));
    assert_eq!(run_ok(&it, &["ping"]), "ok\n");
}

#[test]
fn x4_x6_status_escapes_unusual_job_names() {
    let it = supervisor(r#"{ jobs: [{ name: 'a"\\\u0001', exec: 'sleep 1000' }] }"#);
    wait(&it, "a\"\\\u{1}", "running");
    let whole = json(&run_ok(&it, &["status", "--format", "json"]));
    assert_eq!(whole["jobs"][0]["name"], "a\"\\\u{1}");
    assert!(run_ok(&it, &["status"]).contains("a\"\\\u{fffd}"));
}
