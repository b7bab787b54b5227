//! Services in Consul (D3, D4, D8, H6, P7, S2, S6, T1, W9, W11).

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::pilot::{Pilot, WEB, config, count, health, settings};
use crate::support::config::Config;
use crate::support::consul::{Agent, service_id};
use crate::support::supervisor::wait_until;

#[test]
fn d3_service_is_registered_with_all_its_configured_properties() {
    let agent = Agent::dev();
    let meta = "tags: ['a', 'b'], meta: { version: '7' },
        consul: { enableTagOverride: true, deregisterCriticalServiceAfter: '10m' }";
    let ill = "exec: 'sleep 1000', interfaces: 'static:10.1.2.3', health: { exec: 'false', interval: 1000, ttl: 2000 }";
    let config = Config::new()
        .consul(agent.address())
        .keys("control: { socket: '@/control' }")
        .keys(format!("telemetry: {{ port: 9091, interfaces: 'static:{}', tags: ['metrics'] }}", agent.ip))
        .job("web", [WEB, meta, &health("15s")].join(", "))
        .job(
            "elsewhere",
            "port: 99, interfaces: 'static:10.9.9.9', health: { exec: 'true', interval: 1, ttl: 30 }",
        )
        .job("early", format!("port: 98, initial_status: 'warning', {ill}"))
        .job("waiting", format!("port: 97, initial_status: 'passing', {ill}, when: {{ source: 'SIGUSR2' }}"))
        .job("shows", "exec: ['sh', '-c', 'echo ip $CONTAINERPILOT_WEB_IP $CONTAINERPILOT_ELSEWHERE_IP']");
    let mut pilot = Pilot::start(&config);
    pilot.wait_for_job();
    // P7: the address is in the environment.
    pilot.run.wait_for_line("ip 10.1.2.3 10.9.9.9");
    agent.wait_for_status("web", Some("passing"));
    // W11: the job has no process.
    agent.wait_for_status("elsewhere", Some("passing"));
    // D4: registered at startup, before the first check.
    agent.wait_for_status("early", Some("warning"));
    // Also while the job waits.
    agent.wait_for_status("waiting", Some("passing"));
    // T1: the telemetry server is advertised.
    agent.wait_for_status("containerpilot", Some("passing"));

    let id = service_id("web");
    let service = &agent.get("/v1/agent/services")[&id];
    let expected = [
        ("ID", json!(id)),
        ("Service", json!("web")),
        ("Tags", json!(["a", "b"])),
        ("Port", json!(8080)),
        ("Address", json!("10.1.2.3")),
        ("EnableTagOverride", json!(true)),
    ];
    for (key, value) in expected {
        assert_eq!(service[key], value, "{key}: {service}");
    }
    assert_eq!(service["Meta"]["version"], "7", "{service}");
    let check = &agent.get("/v1/agent/checks")[&format!("service:{id}")];
    assert_eq!(check["Notes"], "TTL for web set by containerpilot", "{check}");
    assert_eq!((&check["Type"], &check["ServiceID"]), (&json!("ttl"), &json!(id)), "{check}");
    let telemetry = &agent.get("/v1/agent/services")[&service_id("containerpilot")];
    assert_eq!((&telemetry["Tags"][0], &telemetry["Port"]), (&json!("metrics"), &json!(9091)), "{telemetry}");
    assert_eq!(telemetry["Tags"][1], env!("CARGO_PKG_VERSION"), "{telemetry}");

    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, "Consul"), 0, "an error of Consul was logged");
    // S6: all services are deregistered before the supervisor exits.
    assert_eq!(agent.get("/v1/agent/services"), json!({}));
}

#[test]
fn d4_h6_service_is_registered_when_healthy_and_critical_at_once_after_a_failed_check() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config("1h").consul(agent.address()));
    fs::write(pilot.run.file("ill"), "").unwrap();
    pilot.wait_for_job();
    // It may have been healthy before the file was written.
    fs::remove_file(pilot.run.file("ill")).unwrap();
    agent.wait_for_status("web", Some("passing"));
    fs::write(pilot.run.file("ill"), "").unwrap();
    let began = Instant::now();
    agent.wait_for_status("web", Some("critical"));
    assert!(began.elapsed() < Duration::from_secs(60), "the status changed only when the TTL expired");
    fs::remove_file(pilot.run.file("ill")).unwrap();
    agent.wait_for_status("web", Some("passing"));
    pilot.assert_unharmed();
    assert_eq!(agent.status("web"), None);
}

#[test]
fn d4_service_that_was_never_healthy_is_never_registered() {
    let agent = Agent::dev();
    let config = config("10s").consul(agent.address());
    let config = config.replace("test ! -e @/ill", "sh @/check");
    let pilot = Pilot::start(&config);
    // The script does not exist, so every check fails.
    wait_until("the job is started", || pilot.run.stderr().is_empty() && !pilot.pids().is_empty());
    let mut pilot = pilot;
    pilot.run.wait_for_line("web unhealthy");
    assert_eq!(agent.status("web"), None);
    let log = pilot.assert_unharmed();
    assert!(!log.contains("web healthy"));
}

#[test]
fn s2_service_is_deregistered_before_its_process_gets_the_stop_signal() {
    let agent = Agent::dev();
    // The job queries Consul when it gets SIGTERM.
    let exec = format!("exec: '@programs/asks-consul.sh {}'", agent.ip);
    let web = format!("port: 8080, interfaces: 'static:10.1.2.3', {exec}, {}", health("1h"));
    let config = settings().consul(agent.address()).job("web", web);
    let pilot = Pilot::start(&config);
    pilot.wait_for_job();
    agent.wait_for_status("web", Some("passing"));
    pilot.run.signal("-TERM");
    wait_until("the job has queried Consul", || pilot.run.size("answer") > 0);
    let file = pilot.run.file("answer");
    wait_until("the answer is complete", || {
        fs::read_to_string(&file).is_ok_and(|text| text.trim_end().ends_with(']'))
    });
    let answer = fs::read_to_string(&file).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.trim_end().ends_with("[]"), "{answer}");
    let (code, log) = pilot.run.wait();
    assert_eq!(code, 0);
    assert!(!log.contains("deregistration not confirmed"));
}

#[test]
fn w9_complete_job_is_deregistered_while_others_keep_running() {
    let agent = Agent::dev();
    let short = "port: 9, interfaces: 'static:10.1.2.3', health: { interval: '250ms', ttl: '1h' },
        exec: ['sh', '-c', 'while [ ! -e @/enough ]; do sleep 0.05; done']";
    let config = config("1h").consul(agent.address()).job("short", short);
    let pilot = Pilot::start(&config);
    agent.wait_for_status("short", Some("passing"));
    agent.wait_for_status("web", Some("passing"));
    fs::write(pilot.run.file("enough"), "").unwrap();
    agent.wait_for_status("short", None);
    assert_eq!(agent.status("web").as_deref(), Some("passing"));
    pilot.assert_unharmed();
}

#[test]
fn d8_maintenance_deregisters_all_services_and_registers_them_again_at_its_end() {
    let agent = Agent::dev();
    let mut pilot = Pilot::start(&config("1h").consul(agent.address()));
    agent.wait_for_status("web", Some("passing"));
    for times in 1..=2 {
        let updated = |change: &str| {
            let answer = pilot.post(&format!("/v3/maintenance/{change}"));
            assert!(answer.contains("200 OK"), "{answer}");
            answer.replace(' ', "").contains("\"updated\":true")
        };
        assert!(updated("enable") && !updated("enable"), "maintenance is not idempotent");
        agent.wait_for_status("web", None);
        assert!(updated("disable") && !updated("disable"), "maintenance is not idempotent");
        agent.wait_for_status("web", Some("passing"));
        pilot.run.wait_for_lines("leaving maintenance mode", times);
    }
    let log = pilot.assert_unharmed();
    assert_eq!(count(&log, "Consul"), 0);
}
