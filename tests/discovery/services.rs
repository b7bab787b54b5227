//! Services in Consul (D3, D4, D5, H6, S2, S6, T1, W11).

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::agent::{Agent, service_id};
use crate::pilot::{Pilot, WEB, config, count, health};
use crate::support::{As, until};

#[test]
fn d3_a_service_is_registered_with_everything_that_was_written() {
    let agent = Agent::dev();
    let config = format!(
        "{{ consul: '{}', control: {{ socket: '@/control' }}, telemetry: {{ port: 0, interfaces: 'static:{ip}', tags: ['metrics'] }}, jobs: [
        {{ {WEB}, tags: ['a', 'b'], meta: {{ version: '7' }},
           consul: {{ enableTagOverride: true, deregisterCriticalServiceAfter: '10m' }}, {} }},
        {{ name: 'elsewhere', port: 99, interfaces: 'static:10.9.9.9', health: {{ exec: 'true', interval: 1, ttl: 30 }} }},
        {{ name: 'early', port: 98, interfaces: 'static:10.1.2.3', initial_status: 'warning', exec: 'sleep 1000',
           health: {{ exec: 'false', interval: 1000, ttl: 2000 }} }},
        {{ name: 'shows', exec: ['sh', '-c', 'echo ip $CONTAINERPILOT_WEB_IP $CONTAINERPILOT_ELSEWHERE_IP'] }} ] }}",
        agent.address(),
        health("15s"),
        ip = agent.ip
    );
    let mut pilot = Pilot::start(&config.replace("port: 0", "port: 9091"));
    pilot.started();
    // P7
    pilot.run.line("ip 10.1.2.3 10.9.9.9");
    agent.until_status("web", Some("passing"));
    // W11: nothing runs here for it.
    agent.until_status("elsewhere", Some("passing"));
    // D4: at once, before its health is known.
    agent.until_status("early", Some("warning"));
    // T1
    agent.until_status("containerpilot", Some("passing"));

    let id = service_id("web");
    let service = &agent.get("/v1/agent/services")[&id];
    let expected = [
        ("ID", json!(id)),
        ("Service", json!("web")),
        ("Tags", json!(["a", "b"])),
        ("Meta", json!({ "version": "7" })),
        ("Port", json!(8080)),
        ("Address", json!("10.1.2.3")),
        ("EnableTagOverride", json!(true)),
    ];
    for (key, value) in expected {
        assert_eq!(service[key], value, "{key}: {service}");
    }
    let check = &agent.get("/v1/agent/checks")[&format!("service:{id}")];
    assert_eq!(check["Notes"], "TTL for web set by containerpilot", "{check}");
    assert_eq!((&check["Type"], &check["ServiceID"]), (&json!("ttl"), &json!(id)), "{check}");
    let telemetry = &agent.get("/v1/agent/services")[&service_id("containerpilot")];
    assert_eq!((&telemetry["Tags"][0], &telemetry["Port"]), (&json!("metrics"), &json!(9091)), "{telemetry}");
    assert_eq!(telemetry["Tags"][1], env!("CARGO_PKG_VERSION"), "{telemetry}");

    let log = pilot.unharmed();
    assert_eq!(count(&log, "Consul"), 0, "nothing went wrong: {log}");
    // S6: the last of them is out before the process has left.
    assert_eq!(agent.get("/v1/agent/services"), json!({}));
}

#[test]
fn d4_a_service_is_not_registered_before_it_is_healthy_and_h6_a_failed_check_is_critical_at_once() {
    let agent = Agent::dev();
    let pilot = Pilot::start(&config(&format!("'{}'", agent.address()), "1h", "watches: []"));
    fs::write(pilot.run.file("ill"), "").unwrap();
    pilot.started();
    // Perhaps it was healthy before it was made ill.
    fs::remove_file(pilot.run.file("ill")).unwrap();
    agent.until_status("web", Some("passing"));
    fs::write(pilot.run.file("ill"), "").unwrap();
    let began = Instant::now();
    agent.until_status("web", Some("critical"));
    assert!(began.elapsed() < Duration::from_secs(60), "it does not wait for the TTL");
    fs::remove_file(pilot.run.file("ill")).unwrap();
    agent.until_status("web", Some("passing"));
    pilot.unharmed();
    assert_eq!(agent.status("web"), None);
}

#[test]
fn d4_what_was_never_healthy_never_comes_into_the_catalog() {
    let agent = Agent::dev();
    let config = config(&format!("'{}'", agent.address()), "10s", "watches: []");
    let config = config.replace("test ! -e @/ill", "sh @/check");
    let pilot = Pilot::start(&config);
    // There is no such script, so every check fails.
    until("it is never checked", || pilot.run.stderr().is_empty() && !pilot.pids().is_empty());
    let mut pilot = pilot;
    pilot.run.line("web unhealthy");
    assert_eq!(agent.status("web"), None);
    let log = pilot.unharmed();
    assert!(!log.contains("web healthy"), "{log}");
}

#[test]
fn s2_a_service_is_out_of_the_catalog_before_its_process_is_asked_to_end() {
    let agent = Agent::dev();
    // At SIGTERM the job asks Consul itself.
    let script = format!(
        "cat > @/job <<'END'
        ask() {{
            exec 3<>/dev/tcp/{}/8500
            printf 'GET /v1/health/service/web HTTP/1.0\\r\\n\\r\\n' >&3
            cat <&3 > @/answer
            exit 0
        }}
        trap ask TERM
        echo $$ >> @/web.pids
        while :; do sleep 0.05; done\nEND\n",
        agent.ip
    );
    let config = format!(
        "{{ consul: '{}', stopTimeout: 20, control: {{ socket: '@/control' }},
            jobs: [{{ name: 'web', port: 8080, interfaces: 'static:10.1.2.3', exec: 'bash @/job', {} }}] }}",
        agent.address(),
        health("1h")
    );
    let pilot = Pilot::behind(As::Plain, &script, &config);
    pilot.started();
    agent.until_status("web", Some("passing"));
    pilot.run.signal("-TERM");
    until("the job does not ask Consul", || pilot.run.size("answer") > 0);
    let file = pilot.run.file("answer");
    until("the answer does not end", || {
        fs::read_to_string(&file).is_ok_and(|text| text.trim_end().ends_with(']'))
    });
    let answer = fs::read_to_string(&file).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.trim_end().ends_with("[]"), "{answer}");
    let (code, log) = pilot.run.end();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("deregistration not confirmed"), "{log}");
}

#[test]
fn w9_a_job_that_is_complete_leaves_the_catalog_while_the_others_go_on() {
    let agent = Agent::dev();
    let config = format!(
        "{{ consul: '{}', stopTimeout: 20, control: {{ socket: '@/control' }}, jobs: [{{ {WEB}, {} }},
            {{ name: 'short', port: 9, interfaces: 'static:10.1.2.3', health: {{ interval: '250ms', ttl: '1h' }},
               exec: ['sh', '-c', 'while [ ! -e @/enough ]; do sleep 0.05; done'] }} ] }}",
        agent.address(),
        health("1h")
    );
    let pilot = Pilot::start(&config);
    agent.until_status("short", Some("passing"));
    agent.until_status("web", Some("passing"));
    fs::write(pilot.run.file("enough"), "").unwrap();
    agent.until_status("short", None);
    assert_eq!(agent.status("web").as_deref(), Some("passing"));
    pilot.unharmed();
}

#[test]
fn d8_in_maintenance_all_services_are_out_of_the_catalog_and_come_back_after_it() {
    let agent = Agent::dev();
    let mut pilot = Pilot::start(&config(&format!("'{}'", agent.address()), "1h", "watches: []"));
    agent.until_status("web", Some("passing"));
    for times in 1..=2 {
        let updated = |change: &str| {
            let answer = pilot.post(&format!("/v3/maintenance/{change}"));
            assert!(answer.contains("200 OK"), "{answer}");
            answer.replace(' ', "").contains("\"updated\":true")
        };
        assert!(updated("enable") && !updated("enable"), "idempotent");
        agent.until_status("web", None);
        assert!(updated("disable") && !updated("disable"), "idempotent");
        agent.until_status("web", Some("passing"));
        pilot.run.lines("leaving maintenance mode", times);
    }
    let log = pilot.unharmed();
    assert_eq!(count(&log, "Consul"), 0, "{log}");
}
