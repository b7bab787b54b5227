//! The routes that ContainerPilot 3.8 has too (X1, D8, L5, E4, S6).

use crate::support::http_client::{Pilot, request, send_raw};
use crate::support::supervisor::wait_until;

const SLEEPER: &str = "{ jobs: [{ name: 'main', exec: 'sleep 1000' }] }";

#[test]
fn x1_ping_responds_with_an_empty_line_and_closes_the_connection() {
    let pilot = Pilot::start(SLEEPER);
    let answer = pilot.get("/v3/ping");
    assert_eq!((answer.status, answer.body.as_str()), (200, "\n"));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn x1_wrong_methods_paths_and_bodies_get_their_status_codes() {
    let pilot = Pilot::start(SLEEPER);
    for (method, path, allowed) in [
        ("POST", "/v3/ping", "GET"),
        ("GET", "/v3/environ", "POST"),
        ("PUT", "/v3/env", "POST"),
        ("GET", "/v3/metric", "POST"),
        ("DELETE", "/v3/reload", "POST"),
        ("GET", "/v3/maintenance/enable", "POST"),
        ("GET", "/v3/maintenance/disable", "POST"),
        ("POST", "/v3/status", "GET"),
        ("GET", "/v3/jobs/main/stop", "POST"),
    ] {
        let answer = request(&pilot.socket, method, path, "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allowed)), "{method} {path}");
        assert!(answer.body.starts_with("Method Not Allowed\n"), "{answer:?}");
    }
    for path in ["/", "/v3", "/v3/", "/v3/pong", "/v3/ping/", "/v2/ping", "/v3/jobs/main", "/v3/jobs"] {
        assert_eq!(pilot.get(path).status, 404, "{path}");
    }
    for path in ["/v3/environ", "/v3/env", "/v3/metric"] {
        for body in ["", "{", "{{\n", "[1]", "7", "\"A=1\"", "{\"a\": \"b\"} x", "A=1"] {
            let answer = pilot.post(path, body);
            assert_eq!(answer.status, 422, "{path} {body}");
            assert!(answer.body.starts_with("Unprocessable Entity\n"), "{answer:?}");
        }
        assert_eq!(pilot.post(path, "null").status, 200, "Go accepts null as an empty object");
        assert_eq!(pilot.post(path, "{}").status, 200);
        let large = format!("{{\"A\": \"{}\"}}", "x".repeat(2 << 20));
        assert_eq!(pilot.post(path, &large).status, 413, "{path}");
    }
}

#[test]
fn x1_environ_sets_and_unsets_variables_of_processes_that_start_later() {
    let mut pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'show', exec: ['sh', '-c', 'echo \"A=$A B=${B-unset} C=${C-unset} HOME=${HOME-unset}.\"'],
              when: { source: 'SIGHUP' } },
        ] }",
    );
    let answer = pilot.post("/v3/environ", r#"{"A": "one two", "B": "x", "C": "y"}"#);
    assert_eq!((answer.status, answer.body.as_str()), (200, "\n"));
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("A=one two B=x C=y HOME=");
    assert_eq!(pilot.post("/v3/env", r#"{"A": "", "B": null, "HOME": null}"#).status, 200);
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("A= B=unset C=y HOME=unset.");
}

#[test]
fn x1_invalid_variable_name_is_400_and_sets_nothing() {
    let mut pilot = Pilot::start(
        "{ jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'show', exec: ['sh', '-c', 'echo \"GOOD=${GOOD-unset}.\"'], when: { source: 'SIGHUP' } },
        ] }",
    );
    for bad in ["", "A=B", "A B", "A\\u0000"] {
        let answer = pilot.post("/v3/environ", &format!("{{\"GOOD\": \"1\", \"{bad}\": \"x\"}}"));
        assert_eq!(answer.status, 400, "{bad} {answer:?}");
        assert!(answer.body.contains("is not a variable name"), "{answer:?}");
    }
    assert_eq!(pilot.post("/v3/environ", r#"{"GOOD": "1", "A": "b\u0000c"}"#).status, 400);
    assert_eq!(pilot.post("/v3/environ", r#"{"GOOD": "1", "A": 7}"#).status, 422);
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("GOOD=unset.");
}

#[test]
fn l5_values_set_by_environ_appear_in_no_log_status_event_or_error() {
    let mut pilot = Pilot::start(
        "{ logging: { level: 'DEBUG' }, jobs: [
            { name: 'main', exec: 'sleep 1000' },
            { name: 'other', exec: 'true', when: { source: 'SIGHUP' } },
        ] }",
    );
    let secret = "hunter2-hunter2";
    assert_eq!(pilot.post("/v3/environ", &format!("{{\"TOKEN\": \"{secret}\"}}")).status, 200);
    let mut answers = String::new();
    for body in ["{\"TOKEN\": \"#\"", "{\"TOKEN\": #}", "{\"TOK=EN\": \"#\"}", "{\"TOKEN\": [\"#\"]}", "#"] {
        let answer = pilot.post("/v3/environ", &body.replace('#', secret));
        assert!(answer.status >= 400, "{answer:?}");
        answers += &answer.body;
    }
    let metric = pilot.post("/v3/metric", &format!("{{\"x\": \"{secret}\"}}"));
    assert_eq!(metric.status, 400);
    answers += &metric.body;
    pilot.supervisor.signal("-HUP");
    pilot.supervisor.wait_for_line("other exited");
    answers += &pilot.get("/v3/status").body;
    answers += &pilot.get("/v3/jobs/other/explain").body;
    answers += &pilot.get("/v3/events?follow=false").body;
    assert!(!answers.contains(secret), "{answers}");
    pilot.supervisor.signal("-TERM");
    pilot.supervisor.wait_for_line("SIGTERM");
    let (code, log) = pilot.supervisor.wait();
    assert_eq!(code, 0);
    assert!(log.contains("set environment variable TOKEN") && !log.contains(secret));
}

#[test]
fn d8_maintenance_is_idempotent_and_reports_whether_it_changed() {
    let pilot = Pilot::start(SLEEPER);
    let updated = |path: &str, body: &str| {
        let answer = pilot.post(path, body);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        answer.body
    };
    assert_eq!(updated("/v3/maintenance/disable", ""), "{\"updated\":false}\n");
    assert_eq!(updated("/v3/maintenance/enable", "{{ no JSON"), "{\"updated\":true}\n");
    assert_eq!(updated("/v3/maintenance/enable", ""), "{\"updated\":false}\n");
    assert_eq!(pilot.get("/v3/status").json()["maintenance"], true);
    assert_eq!(updated("/v3/maintenance/disable", ""), "{\"updated\":true}\n");
    let events = pilot.get("/v3/events?follow=false").body;
    assert_eq!(events.matches("enterMaintenance").count(), 1);
    assert_eq!(events.matches("exitMaintenance").count(), 1);
}

#[test]
fn x1_unknown_metric_is_400() {
    let pilot = Pilot::start(SLEEPER);
    let answer = pilot.post("/v3/metric", r#"{"no_such": 1}"#);
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("no_such"), "{answer:?}");
}

#[test]
fn x1_keep_alive_is_honoured() {
    let pilot = Pilot::start(SLEEPER);
    let one = "GET /v3/ping HTTP/1.1\r\nHost: x\r\nconnection: keep-alive\r\n\r\n";
    let last = "GET /v3/ping HTTP/1.1\r\nHost: x\r\n\r\n";
    let answers = send_raw(&pilot.socket, format!("{one}{one}{last}").as_bytes());
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    let old = send_raw(&pilot.socket, b"GET /v3/ping HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 OK") || old.starts_with("HTTP/1.1 200 OK"), "{old}");
}

#[test]
fn e4_socket_listens_before_the_first_job_starts() {
    let mut pilot = Pilot::start_without_waiting(
        "{ jobs: [{ name: 'main', exec: ['sh', '-c', 'test -S @/socket && echo it is there; sleep 1000'] }] }",
    );
    pilot.supervisor.wait_for_line("it is there");
}

#[test]
fn s6_socket_is_unlinked_at_exit() {
    let pilot = Pilot::start(SLEEPER);
    let socket = pilot.socket.clone();
    assert_eq!(pilot.get("/v3/ping").status, 200);
    pilot.supervisor.signal("-TERM");
    wait_until("the socket is removed", || !socket.exists());
    assert_eq!(pilot.supervisor.wait().0, 0);
}
