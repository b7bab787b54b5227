//! Reloads that change the log, telemetry or the control socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::reload_to;
use crate::support::config::Config;
use crate::support::http_client::{Pilot, request};
use crate::support::supervisor::wait_until;

/// A configuration with the job `a`.
fn a() -> Config {
    Config::new().job("a", "exec: 'sleep 1000'")
}

/// A port that is free at the time of the call.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Fetches a page; `None` if no server responds.
fn page(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn l1_reload_changes_level_format_and_output_of_the_log() {
    let mut pilot = Pilot::start(&a());
    pilot.wait_for_state("a", "running");
    let answer = reload_to(&pilot, &a().keys("logging: { level: 'DEBUG', format: 'json' }"));
    assert_eq!(answer["settings"], json!(["logging"]));
    let line = pilot.supervisor.wait_for_line("reload: changed logging; kept 1 job");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["level"], "info");
    reload_to(&pilot, &a().keys("logging: { output: '@/log' }"));
    wait_until("the log is written to the file", || {
        pilot.supervisor.read("log").contains("reload: changed logging")
    });
    // A file that cannot be opened changes nothing.
    reload_to(&pilot, &a().keys("logging: { output: '@/no/such/folder/log' }"));
    wait_until("the error is logged", || pilot.supervisor.read("log").contains("no/such/folder"));
    assert_eq!(pilot.job("a")["state"], "running");
}

#[test]
fn t2_reload_moves_telemetry_and_keeps_metric_values() {
    let (first, second) = (free_port(), free_port());
    let metrics = "metrics: [{ name: 'hits', help: 'h', type: 'counter' }]";
    let at = |port: u16| {
        a().keys(format!("telemetry: {{ port: {port}, interfaces: 'static:127.0.0.1', {metrics} }}"))
    };
    let pilot = Pilot::start(&at(first));
    pilot.wait_for_state("a", "running");
    assert_eq!(pilot.post("/v3/metric", "{\"hits\": 7}").status, 200);
    let answer = reload_to(&pilot, &at(second));
    assert!(answer["kept"].as_array().unwrap().contains(&json!("a")), "{answer}");
    wait_until("the new port is served", || {
        page(second, "/metrics").is_some_and(|page| page.contains("\nhits 7\n"))
    });
    wait_until("the old port is closed", || TcpStream::connect(("127.0.0.1", first)).is_err());
    reload_to(&pilot, &a());
    wait_until("the port is closed", || TcpStream::connect(("127.0.0.1", second)).is_err());
    assert_eq!(pilot.post("/v3/metric", "{\"hits\": 1}").status, 400, "the metric still exists");
    reload_to(&pilot, &at(first));
    wait_until("the port is served again", || {
        page(first, "/status").is_some_and(|page| page.contains("200 OK"))
    });
}

#[test]
fn t1_telemetry_that_cannot_listen_after_a_reload_is_not_healthy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut pilot = Pilot::start(&a());
    pilot.wait_for_state("a", "running");
    reload_to(&pilot, &a().keys(format!("telemetry: {{ port: {port}, interfaces: 'static:127.0.0.1' }}")));
    pilot.supervisor.wait_for_line("retrying every second");
    let job = pilot.job("containerpilot");
    assert_ne!(job["health"], "healthy", "{job}");
    assert_eq!((&job["service"], &job["catalog"]["confirmed"]), (&json!("absent"), &json!("absent")));
    let message = job["checks"][0]["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("telemetry cannot listen on 127.0.0.1:{port}: address already in use"))
    );
    drop(taken);
    wait_until("telemetry is healthy", || pilot.job("containerpilot")["health"] == "healthy");
    assert!(page(port, "/livez").is_some_and(|page| page.contains("alive")));
    assert_eq!(pilot.job("containerpilot")["service"], "passing");
}

#[test]
fn x1_reload_moves_the_control_socket_and_the_client_gets_its_response() {
    let mut pilot = Pilot::start(&a());
    let (old, new) = (pilot.socket.clone(), pilot.supervisor.file("other.socket"));
    let config = a().keys("control: { socket: '@/other.socket' }");
    assert_eq!(reload_to(&pilot, &config)["settings"], json!(["control"]));
    assert!(!old.exists(), "the old socket still exists");
    assert_eq!(request(&new, "GET", "/v3/ping", "").status, 200);
    // A socket that cannot be created leaves the current one in place.
    pilot.socket = new.clone();
    reload_to(&pilot, &a().keys("control: { socket: '/proc/no/socket' }"));
    pilot.supervisor.wait_for_line("keeping the old control socket");
    assert_eq!(request(&new, "GET", "/v3/ping", "").status, 200);
    reload_to(&pilot, &a().keys("control: { socket: '@/other.socket', mode: '0660' }"));
    let mode = std::fs::metadata(&new).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o660);
    pilot.supervisor.signal("-TERM");
    assert_eq!(pilot.supervisor.wait().0, 0);
}
