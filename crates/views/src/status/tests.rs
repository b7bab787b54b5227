use serde_json::{Value, json};

use super::*;

fn read(value: Value) -> Status {
    serde_json::from_value(value).unwrap()
}

fn example() -> Value {
    json!({
        "version": "5.0.0", "pid": 1, "startedAt": "2026-11-15T06:00:00Z", "now": "2026-11-15T07:00:00.500Z",
        "uptimeSeconds": 3600.5, "phase": "running", "maintenance": false, "shutdownDeadline": null,
        "jobs": [
            { "name": "db", "role": "job", "state": "running", "health": "healthy", "pid": 42, "uptimeSeconds": 61.2,
              "startedAt": "2026-11-15T06:58:59Z", "restarts": 2, "restartsLeft": null, "service": "passing",
              "catalog": { "wanted": "passing", "confirmed": "passing", "since": "2026-11-15T06:59:00Z", "error": null },
              "lastExit": { "code": 1, "signal": null }, "endedAt": "2026-11-15T06:58:58Z",
              "deadlines": [], "waitsFor": [], "hooks": [],
              "checks": [{ "name": "db", "running": false, "passed": true, "message": null, "failures": 0,
                           "at": "2026-11-15T06:59:59Z", "tookSeconds": 0.012, "nextAt": "2026-11-15T07:00:09.500Z" }],
              "cause": { "id": 3, "source": "setup", "code": "exitSuccess" } },
            { "name": "app", "role": "job", "state": "waiting", "health": "unknown", "pid": null, "uptimeSeconds": null,
              "restarts": 0, "restartsLeft": 0, "service": "none", "lastExit": null, "deadlines": [
                  { "what": "startTimeout", "at": "2026-11-15T07:00:30Z", "inSeconds": 29.5 }],
              "waitsFor": [{ "source": "db", "code": "healthy", "holds": true, "possible": true, "state": "running" },
                           { "source": "watch.cache", "code": "healthy", "holds": false, "possible": true,
                             "state": "no healthy instances" }], "checks": [], "hooks": [] },
            { "name": "once", "role": "job", "state": "failed", "health": "none", "pid": null, "restarts": 0,
              "restartsLeft": 0, "lastExit": { "code": 137, "signal": "SIGKILL" }, "endedAt": "2026-11-15T06:00:30Z" },
            { "name": "bad", "role": "job", "state": "running", "health": "unhealthy", "pid": 43, "uptimeSeconds": 5.0,
              "restarts": 0, "restartsLeft": 3,
              "checks": [{ "name": "ready", "passed": false, "failures": 4, "message": "exited with code 1" }] },
            { "name": "tick", "role": "job", "state": "waiting", "health": "none", "restarts": 7, "restartsLeft": null,
              "deadlines": [{ "what": "tick", "inSeconds": 4.25 }], "failedRuns": 2,
              "lastExit": { "code": 3, "signal": null }, "endedAt": "2026-11-15T06:59:59.500Z" },
        ],
        "watches": [
            { "name": "cache", "kind": "service", "instances": [] },
            { "name": "peers", "kind": "service", "instances": [{ "id": "a", "address": "10.0.0.1", "port": 80 },
                                             { "id": "b", "address": "::1", "port": 81 }] },
            { "name": "new", "kind": "service", "instances": null },
            { "name": "conf", "kind": "file", "healthy": true, "state": "4 bytes", "instances": null, "error": "/x: EACCES" },
            { "name": "peer", "kind": "tcp", "healthy": false, "state": "10.0.0.9:1: connection refused" },
            { "name": "name", "kind": "dns", "healthy": true, "instances": [{ "id": "10.0.0.7", "address": "10.0.0.7" }] },
        ],
    })
}

#[test]
fn x4_status_shows_one_line_per_job() {
    let expected = "\
containerpilot 5.0.0, pid 1, up 1h0m

JOB   STATE    HEALTH     PID  UPTIME  RESTARTS  NOTE
db    running  healthy    42   1m1s    2
app   waiting  -                       0         waiting until watch.cache is healthy (no healthy instances)
once  failed   -                       0         exited on SIGKILL 59m30s ago
bad   running  unhealthy  43   5s      0         check ready failed 4 times in a row: exited with code 1
tick  waiting  -                       7         last run exited with code 3 1s ago, 2 failures in a row; next run in 4.2s

WATCH  KIND     FOUND
cache  service  none
peers  service  10.0.0.1:80, [::1]:81
new    service  no response yet
conf   file     4 bytes (/x: EACCES)
peer   tcp      10.0.0.9:1: connection refused
name   dns      10.0.0.7
";
    assert_eq!(overview(Screen::default(), &read(example())), expected);
}

#[test]
fn x4_status_of_one_job_shows_everything_about_it() {
    let status = read(example());
    let shown = |name: &str| match subject(&status, name) {
        Ok(subject) => subject.text(Screen::default(), &status),
        Err(failure) => failure.to_string(),
    };
    let db = "\
db: running, healthy
  process    pid 42, up 1m1s, since 2026-11-15T06:58:59Z
  started by setup exitSuccess
  restarts   2, without limit
  previous   exited with code 1 1m2s ago
  service    passing in the catalog for 1m0s
  check      db: passed 1.5s ago, took 12ms, next in 9s
";
    assert_eq!(shown("db"), db);
    let app = "app: waiting\n  waiting    until watch.cache is healthy (no healthy instances)\n  \
               next       gives up in 29s unless started\n";
    assert_eq!(shown("app"), app);
    let bad = "\
bad: running, unhealthy
  process    pid 43, up 5s
  restarts   0, 3 left
  check      ready: failed, 4 times in a row; exited with code 1
";
    assert_eq!(shown("bad"), bad);
    assert_eq!(shown("watch.peers"), "watch.peers: 2 healthy\n  a at 10.0.0.1 port 80\n  b at ::1 port 81\n");
    assert_eq!(shown("new"), "watch.new: no response from the catalog yet\n");
    assert_eq!(shown("conf"), "watch.conf: file 4 bytes at the last response\n  /x: EACCES\n");
    assert_eq!(shown("peer"), "watch.peer: tcp 10.0.0.9:1: connection refused\n");
    assert_eq!(shown("name"), "watch.name: 1 healthy\n  10.0.0.7\n");
    assert_eq!(shown("bd"), "there is no job `bd`; did you mean `db`?");
}

#[test]
fn d11_status_never_shows_a_wish_as_a_fact() {
    let error = "Consul at c:8500 is unreachable: ECONNREFUSED";
    let mut example = example();
    example["catalog"] =
        json!({ "kind": "consul", "up": false, "since": "2026-11-15T06:59:00Z", "error": error });
    example["jobs"][0]["catalog"] = json!({
        "wanted": "passing", "confirmed": "unknown", "since": "2026-11-15T06:59:00Z", "error": error,
    });
    let status = read(example);
    let shown = |name: &str| subject(&status, name).ok().unwrap().text(Screen::default(), &status);
    let service = format!("  service    wanted: passing; not confirmed by the catalog for 1m0s: {error}\n");
    assert!(shown("db").contains(&service), "{}", shown("db"));
    let watch = format!("watch.cache: 0 healthy at the last response\n  {error} (for 1m0s)\n");
    assert_eq!(shown("watch.cache"), watch);
    let all = overview(Screen::default(), &status);
    assert!(
        all.starts_with(&format!("containerpilot 5.0.0, pid 1, up 1h0m\n{error} (for 1m0s)\n\nJOB ")),
        "{all}"
    );
    // A supervisor that does not tell what the catalog has.
    let old = read(json!({ "jobs": [{ "name": "db", "state": "running", "service": "passing" }] }));
    let text = subject(&old, "db").ok().unwrap().text(Screen::default(), &old);
    assert!(text.contains("  service    wanted: passing\n"), "{text}");
}

#[test]
fn x4_the_json_of_one_job_is_what_the_supervisor_sent() {
    let text = r#"{ "jobs": [{ "name": "a", "newKey": 1.5 }], "watches": [{ "name": "w", "x": [] }] }"#;
    let status: Status = serde_json::from_str(text).unwrap();
    let json = |name: &str| subject(&status, name).unwrap().json(serde_json::from_str(text).unwrap());
    assert_eq!(json("a"), "{\"name\":\"a\",\"newKey\":1.5}\n");
    assert_eq!(json("watch.w"), "{\"name\":\"w\",\"x\":[]}\n");
}

#[test]
fn x4_jobs_with_the_same_name_are_numbered() {
    let status = read(
        json!({ "jobs": [{ "name": "a", "pid": 1 }, { "name": "a", "pid": 2 }, { "name": "a:2", "pid": 3 }] }),
    );
    let pid = |name: &str| status.job(name).unwrap().pid;
    assert_eq!((pid("a:1"), pid("a:2")), (Some(1), Some(3)));
    assert!(status.job("a:3").is_err() && status.job("a:0").is_err());
    let unclear = status.job("a").unwrap_err().to_string();
    assert_eq!(unclear, "there are 2 jobs named `a`: use `a:1` or `a:2`");
}

#[test]
fn x4_a_missing_or_unknown_member_of_a_response_is_not_an_error() {
    assert_eq!(overview(Screen::default(), &read(json!({}))), "containerpilot , up 0ms\n\nJOB\n");
    let odd = json!({ "unknown": {}, "jobs": [{}, { "name": "a\u{1b}[2J\nb", "lastExit": null },
        { "deadlines": [{}, { "what": "unknown" }], "checks": [{}], "waitsFor": [{ "code": "unknown" }] }] });
    let status = read(odd);
    let text = overview(Screen { colour: true, width: Some(40) }, &status);
    assert!(!text.contains("\u{1b}[2J"), "{text}");
    for job in &status.jobs {
        assert!(!detail::job(Screen::default(), &status.now, job).contains("\u{1b}[2J"));
    }
}

#[test]
fn x4_a_terminal_shows_good_and_bad_states_in_colour() {
    let text = overview(Screen { colour: true, width: None }, &read(example()));
    assert!(text.contains("\u{1b}[32mrunning\u{1b}[0m  \u{1b}[32mhealthy\u{1b}[0m"), "{text}");
    assert!(text.contains("\u{1b}[31munhealthy\u{1b}[0m"), "{text}");
}

#[test]
fn p14_a_job_that_waits_for_its_turn_says_so() {
    let status = read(json!({ "jobs": [{ "name": "a", "state": "starting", "queued": true },
        { "name": "b", "state": "starting" }] }));
    let all = overview(Screen::default(), &status);
    assert_eq!(all.matches("waiting for its turn to start").count(), 1, "{all}");
    let text = subject(&status, "a").ok().unwrap().text(Screen::default(), &status);
    assert!(text.contains("for its turn to start"), "{text}");
}
