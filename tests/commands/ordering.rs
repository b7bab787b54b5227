//! `start`, `stop`, `restart`, `signal`, `maintenance`, `putenv`, `putmetric`, `reload`, `ping`, and 3.8's flags.

use std::process::Command;

use super::support::{Supervisor, until};
use super::{ask, bad, good, json, supervisor, told, wait};

/// 3.8's flags, which find the socket by the configuration alone.
fn flags(it: &Supervisor, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_containerpilot"));
    command.arg("-config").arg(it.file("config.json5")).args(args);
    told(&command.output().unwrap())
}

const TWO: &str = "{ jobs: [{ name: 'a b/ä', exec: ['sh', '-c', 'trap \"echo heard\" USR1; echo ready; while :; do sleep 0.05; done'] },
                            { name: 'other', exec: 'sleep 1000', health: { exec: 'true', interval: 1, ttl: 5 } },
                            { name: 'manual', exec: 'sleep 1000', when: { source: 'SIGUSR2' } }] }";

#[test]
fn x4_start_and_stop_take_several_jobs_and_any_name() {
    let it = supervisor(TWO);
    wait(&it, "a b/ä", "running");
    assert_eq!(good(&it, &["start", "manual"]), "manual: started\n");
    wait(&it, "manual", "running");
    assert!(good(&it, &["start", "manual"]).starts_with("manual: already running"));
    let (code, out, err) = ask(&it, &["stop", "manual", "nobody", "a b/ä"]);
    assert_eq!((code, out.as_str()), (1, "manual: stopping\na b/ä: stopping\n"));
    assert!(err.starts_with("containerpilot: nobody: there is no job `nobody`"), "{err}");
    wait(&it, "a b/ä", "stopped");
    wait(&it, "manual", "stopped");
    assert!(good(&it, &["status", "manual"]).starts_with("manual: stopped\n"));
    let shown = good(&it, &["status", "other"]);
    assert!(shown.starts_with("other: running"), "{shown}");
}

#[test]
fn x4_signal_goes_to_the_processes_of_a_job() {
    let mut it = supervisor(TWO);
    it.line("ready");
    assert!(good(&it, &["signal", "a b/ä", "USR1"]).starts_with("a b/ä: "));
    it.line("heard");
    good(&it, &["signal", "a b/ä", "SIGUSR1"]);
    it.line("heard");
    good(&it, &["signal", "a b/ä", "10"]);
    it.line("heard");
    assert_eq!(bad(&it, &["signal", "a b/ä", "USR9"]), "a b/ä: there is no signal `USR9`");
    assert!(bad(&it, &["signal", "manual", "HUP"]).starts_with("manual: "));
}

#[test]
fn d8_maintenance_is_begun_ended_and_asked_for() {
    let it = supervisor(TWO);
    wait(&it, "other", "healthy");
    assert_eq!(good(&it, &["maintenance", "status"]), "maintenance is off\n");
    assert!(good(&it, &["maintenance", "enable"]).starts_with("maintenance is on: "));
    assert_eq!(good(&it, &["maintenance", "enable"]), "maintenance was on already\n");
    assert_eq!(good(&it, &["maintenance", "status"]), "maintenance is on\n");
    assert!(good(&it, &["status"]).lines().next().unwrap().ends_with(", in maintenance"));
    assert_eq!(good(&it, &["health", "other"]), "other is not checked during maintenance\n");
    assert_eq!(good(&it, &["maintenance", "disable"]), "maintenance is over\n");
    assert_eq!(good(&it, &["maintenance", "disable"]), "there was no maintenance\n");
    wait(&it, "other", "healthy");
    assert_eq!(flags(&it, &["-maintenance", "enable"]), (0, String::new(), String::new()));
    assert_eq!(good(&it, &["maintenance", "status"]), "maintenance is on\n");
    let (code, _, err) = flags(&it, &["-maintenance", "off"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(good(&it, &["maintenance", "status"]), "maintenance is on\n");
}

#[test]
fn l5_putenv_reaches_new_processes_and_its_values_reach_nothing_else() {
    let mut it = supervisor("{ jobs: [{ name: 'show', exec: ['sh', '-c', 'echo \"<$WORD|$OTHER>\" > @/seen'], when: { source: 'SIGHUP' } },
                                      { name: 'rest', exec: 'sleep 1000' }] }");
    wait(&it, "rest", "running");
    let seen = |it: &Supervisor, expected: &str| {
        it.signal("-HUP");
        until("the variable is another", || it.read("seen") == expected);
        std::fs::remove_file(it.file("seen")).unwrap();
    };
    assert_eq!(good(&it, &["putenv", "WORD=hush hush=1", "OTHER=hush"]), "");
    seen(&it, "<hush hush=1|hush>\n");
    assert_eq!(good(&it, &["putenv", "OTHER="]), "");
    seen(&it, "<hush hush=1|>\n");
    assert_eq!(
        flags(&it, &["-putenv", "WORD=hush2", "-putenv", "OTHER=hush3"]),
        (0, String::new(), String::new())
    );
    seen(&it, "<hush2|hush3>\n");
    let (code, out, err) = ask(&it, &["putenv", "A=hush", "hush"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("argument 2 is no KEY=VALUE") && !err.contains("hush"), "{err}");
    for args in [&["status", "--format", "json"][..], &["events", "--format", "json"], &["logs"]] {
        assert!(!good(&it, args).contains("hush"), "{args:?}");
    }
    it.signal("-TERM");
    it.line("rest exited on");
    assert!(!it.seen().contains("hush"), "{}", it.seen());
}

#[test]
fn x3_the_flags_of_3_8_do_what_they_did() {
    let it = supervisor("{ telemetry: { port: 0, interfaces: 'lo', metrics: [{ namespace: 'my', name: 'count', help: 'h', type: 'counter' }] },
                           jobs: [{ name: 'rest', exec: 'sleep 1000' }] }");
    wait(&it, "rest", "running");
    assert_eq!(flags(&it, &["-ping"]), (0, "ok\n".to_owned(), String::new()));
    assert_eq!(flags(&it, &["-putmetric", "my_count=2"]), (0, String::new(), String::new()));
    // All that is asked for is done, in order, until something fails.
    assert_eq!(flags(&it, &["-ping", "-putenv", "A=1", "-putmetric", "my_count=2"]).0, 0);
    let (code, out, err) = flags(&it, &["-ping", "-putmetric", "nothing=2"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("containerpilot: -putmetric: failed to run subcommand: there is no metric `nothing`"),
        "{err}"
    );
    assert_eq!(good(&it, &["putmetric", "my_count=1.5"]), "");
    assert!(bad(&it, &["putmetric", "my_count=many"]).contains("my_count"));
    assert_eq!(good(&it, &["ping"]), "ok\n");
}

#[test]
fn x6_the_status_of_programs_is_json_even_if_names_are_odd() {
    let it = supervisor(r#"{ jobs: [{ name: 'a"\\\u0001', exec: 'sleep 1000' }] }"#);
    wait(&it, "a\"\\\u{1}", "running");
    let whole = json(&good(&it, &["status", "--format", "json"]));
    assert_eq!(whole["jobs"][0]["name"], "a\"\\\u{1}");
    assert!(good(&it, &["status"]).contains("a\"\\\u{fffd}"));
}
