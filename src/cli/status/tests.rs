use serde_json::{Value, json};

use super::*;

fn known() -> Value {
    json!({
        "version": "4.0.0", "pid": 1, "startedAt": "2026-11-15T06:00:00Z", "now": "2026-11-15T07:00:00.500Z",
        "uptimeSeconds": 3600.5, "phase": "running", "maintenance": false, "stopTime": null,
        "jobs": [
            { "name": "db", "role": "job", "state": "running", "health": "healthy", "pid": 42, "uptimeSeconds": 61.2,
              "startedAt": "2026-11-15T06:58:59Z", "restarts": 2, "restartsLeft": null, "service": "passing",
              "lastExit": { "code": 1, "signal": null }, "endedAt": "2026-11-15T06:58:58Z",
              "deadlines": [], "waitsFor": [], "hooks": [],
              "checks": [{ "name": "db", "running": false, "passed": true, "message": null, "failures": 0,
                           "at": "2026-11-15T06:59:59Z", "tookSeconds": 0.012, "nextAt": "2026-11-15T07:00:09.500Z" }],
              "cause": { "id": 3, "source": "setup", "code": "exitSuccess" } },
            { "name": "app", "role": "job", "state": "waiting", "health": "unknown", "pid": null, "uptimeSeconds": null,
              "restarts": 0, "restartsLeft": 0, "service": "none", "lastExit": null, "deadlines": [
                  { "what": "giveUp", "at": "2026-11-15T07:00:30Z", "inSeconds": 29.5 }],
              "waitsFor": [{ "source": "db", "code": "healthy", "holds": true, "possible": true, "state": "running" },
                           { "source": "watch.cache", "code": "healthy", "holds": false, "possible": true,
                             "state": "no healthy instance" }], "checks": [], "hooks": [] },
            { "name": "once", "role": "job", "state": "failed", "health": "none", "pid": null, "restarts": 0,
              "restartsLeft": 0, "lastExit": { "code": 137, "signal": "SIGKILL" }, "endedAt": "2026-11-15T06:00:30Z" },
            { "name": "bad", "role": "job", "state": "running", "health": "unhealthy", "pid": 43, "uptimeSeconds": 5.0,
              "restarts": 0, "restartsLeft": 3,
              "checks": [{ "name": "ready", "passed": false, "failures": 4, "message": "exited with code 1" }] },
            { "name": "tick", "role": "job", "state": "waiting", "health": "none", "restarts": 7, "restartsLeft": null,
              "deadlines": [{ "what": "turn", "inSeconds": 4.25 }] },
        ],
        "watches": [
            { "name": "cache", "instances": [] },
            { "name": "peers", "instances": [{ "id": "a", "address": "10.0.0.1", "port": 80 },
                                             { "id": "b", "address": "::1", "port": 81 }] },
            { "name": "new", "instances": null },
        ],
    })
}

#[test]
fn x4_status_shows_every_job_at_a_glance() {
    let expected = "\
containerpilot 4.0.0, pid 1, up 1h0m

JOB   STATE    HEALTH     PID  UPTIME  RESTARTS  NOTE
db    running  healthy    42   1m1s    2
app   waiting  -                       0         waits for watch.cache healthy (no healthy instance)
once  failed   -                       0         exited with SIGKILL 59m30s ago
bad   running  unhealthy  43   5s      0         check ready: exited with code 1
tick  waiting  -                       7         next turn in 4.2s

WATCH  HEALTHY INSTANCES
cache  none
peers  10.0.0.1:80, [::1]:81
new    no answer yet
";
    assert_eq!(overview(Screen::default(), &known()), expected);
}

#[test]
fn x4_status_of_one_job_shows_everything_about_it() {
    let known = known();
    let shown = |name: &str| match found(&known, name) {
        Ok(Found::Job(job)) => detail::job(Screen::default(), &known, job),
        Ok(Found::Watch(watch)) => detail::watch(watch),
        Err(failure) => failure.to_string(),
    };
    let db = "\
db: running, healthy
  process    pid 42, up 1m1s, since 2026-11-15T06:58:59Z
  started by setup exitSuccess
  restarts   2, without limit
  last run   exited with code 1 1m2s ago
  service    passing in the catalog
  check      db: passed 1.5s ago, took 12ms, next in 9s
";
    assert_eq!(shown("db"), db);
    let app = "app: waiting\n  waits for  watch.cache healthy (no healthy instance)\n  soon       gives up in 29s\n";
    assert_eq!(shown("app"), app);
    let bad = "\
bad: running, unhealthy
  process    pid 43, up 5s
  restarts   0, 3 left
  check      ready: failed, 4 times in a row; exited with code 1
";
    assert_eq!(shown("bad"), bad);
    assert_eq!(shown("watch.peers"), "watch.peers: 2 healthy\n  a at 10.0.0.1 port 80\n  b at ::1 port 81\n");
    assert_eq!(shown("new"), "watch.new: the catalog has not answered yet\n");
    assert_eq!(shown("bd"), "there is no job `bd`; did you mean `db`?");
}

#[test]
fn x4_jobs_of_one_name_are_told_apart_by_number() {
    let known = json!({ "jobs": [{ "name": "a", "pid": 1 }, { "name": "a", "pid": 2 }, { "name": "a:2", "pid": 3 }] });
    let pid = |name: &str| job(&known, name).unwrap().whole("pid");
    assert_eq!((pid("a"), pid("a:1"), pid("a:2")), (Some(1), Some(1), Some(3)));
    assert!(job(&known, "a:3").is_err() && job(&known, "a:0").is_err());
}

#[test]
fn x4_what_is_missing_or_odd_in_an_answer_breaks_nothing() {
    assert_eq!(overview(Screen::default(), &json!({})), "containerpilot , pid 0, up 0ms\n\nJOB\n");
    let odd = json!({ "jobs": [7, { "name": "a\u{1b}[2J\nb" }, { "deadlines": "x", "checks": [null] }] });
    let text = overview(Screen { colour: true, width: Some(40) }, &odd);
    assert!(!text.contains("\u{1b}[2J"), "{text}");
    for one in odd.list("jobs") {
        detail::job(Screen::default(), &odd, one);
    }
}

#[test]
fn x4_colours_tell_good_from_bad_on_a_terminal() {
    let text = overview(Screen { colour: true, width: None }, &known());
    assert!(text.contains("\u{1b}[32mrunning\u{1b}[0m  \u{1b}[32mhealthy\u{1b}[0m"), "{text}");
    assert!(text.contains("\u{1b}[31munhealthy\u{1b}[0m"), "{text}");
}
