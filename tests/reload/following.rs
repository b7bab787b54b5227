//! What else follows a new configuration: the log, telemetry, the control socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::client::{Pilot, ask};
use crate::reload_to;
use crate::support::until;

const A: &str = "{ name: 'a', exec: 'sleep 1000' }";

/// A port that nobody uses now.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A page, if somebody answers.
fn page(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn l1_the_log_follows_in_level_form_and_output() {
    let mut pilot = Pilot::start(&format!("{{ jobs: [{A}] }}"));
    pilot.await_state("a", "running");
    let answer =
        reload_to(&pilot, &format!("{{ jobs: [{A}], logging: {{ level: 'DEBUG', format: 'json' }} }}"));
    assert_eq!(answer["settings"], json!(["logging"]));
    let line = pilot.supervisor.line("reload: changed logging; kept 1 job");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["level"], "info");
    reload_to(&pilot, &format!("{{ jobs: [{A}], logging: {{ output: '@/log' }} }}"));
    until("the log is not in its file", || pilot.supervisor.read("log").contains("reload: changed logging"));
    // One that cannot be opened leaves everything as it is.
    reload_to(&pilot, &format!("{{ jobs: [{A}], logging: {{ output: '@/no/such/folder/log' }} }}"));
    until("nothing is said", || pilot.supervisor.read("log").contains("no/such/folder"));
    assert_eq!(pilot.job("a")["state"], "running");
}

#[test]
fn t2_telemetry_moves_and_values_stay() {
    let (first, second) = (port(), port());
    let metrics = "metrics: [{ name: 'hits', help: 'h', type: 'counter' }]";
    let config = |telemetry: &str| format!("{{ jobs: [{A}], {telemetry} }}");
    let at = |port: u16| format!("telemetry: {{ port: {port}, interfaces: 'static:127.0.0.1', {metrics} }}");
    let pilot = Pilot::start(&config(&at(first)));
    pilot.await_state("a", "running");
    assert_eq!(pilot.post("/v3/metric", "{\"hits\": 7}").status, 200);
    let answer = reload_to(&pilot, &config(&at(second)));
    assert!(answer["kept"].as_array().unwrap().contains(&json!("a")), "{answer}");
    until("it is not served", || page(second, "/metrics").is_some_and(|page| page.contains("\nhits 7\n")));
    until("the old port is not given up", || TcpStream::connect(("127.0.0.1", first)).is_err());
    reload_to(&pilot, &config(""));
    until("it is still served", || TcpStream::connect(("127.0.0.1", second)).is_err());
    assert_eq!(pilot.post("/v3/metric", "{\"hits\": 1}").status, 400, "there are no metrics any more");
    reload_to(&pilot, &config(&at(first)));
    until("it is not served again", || page(first, "/status").is_some_and(|page| page.contains("200 OK")));
}

#[test]
fn x1_the_control_socket_moves_and_the_caller_gets_its_answer() {
    let mut pilot = Pilot::start(&format!("{{ jobs: [{A}] }}"));
    let (old, new) = (pilot.socket.clone(), pilot.supervisor.file("other.socket"));
    let config = format!("{{ jobs: [{A}], control: {{ socket: '@/other.socket' }} }}");
    assert_eq!(reload_to(&pilot, &config)["settings"], json!(["control"]));
    assert!(!old.exists(), "the old one is gone");
    assert_eq!(ask(&new, "GET", "/v3/ping", "").status, 200);
    // One that cannot be had leaves the present one as it is.
    pilot.socket = new.clone();
    reload_to(&pilot, &format!("{{ jobs: [{A}], control: {{ socket: '/proc/no/socket' }} }}"));
    pilot.supervisor.line("keeping the old control socket");
    assert_eq!(ask(&new, "GET", "/v3/ping", "").status, 200);
    reload_to(&pilot, &format!("{{ jobs: [{A}], control: {{ socket: '@/other.socket', mode: '0660' }} }}"));
    let mode = std::fs::metadata(&new).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o660);
    pilot.supervisor.signal("-TERM");
    let (code, log) = pilot.supervisor.end();
    assert_eq!(code, 0, "{log}");
}
