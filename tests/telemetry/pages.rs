//! The pages `/status`, `/metrics`, `/livez` and `/readyz`.

use std::time::Duration;

use crate::support::supervisor::wait_until;
use crate::support::telemetry_client::{Telemetry, request};

#[test]
fn t1_status_has_the_form_of_3_8() {
    let served = Telemetry::start(
        "jobs: [
            { name: 'myjob1', exec: 'sleep 1000' },
            { name: 'myjob2', exec: 'sleep 1000', port: 80, interfaces: ['static:10.1.2.3'],
              health: { exec: 'true', interval: 1, ttl: 10 } },
        ],
        watches: [{ name: 'watch1', interval: 1 }],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    let expected = concat!(
        "{\"Version\":\"",
        env!("CARGO_PKG_VERSION"),
        "\",\"Jobs\":[{\"Name\":\"myjob1\",\"Status\":\"unknown\"},{\"Name\":\"containerpilot\",\"Status\":\"healthy\"}],",
        "\"Services\":[{\"Name\":\"myjob2\",\"Address\":\"10.1.2.3\",\"Port\":80,\"Status\":\"healthy\"}],",
        "\"Watches\":[\"watch1\"]}\n"
    );
    wait_until("the job is healthy", || served.get("/status").2 == expected);
    let (code, head, _) = served.get("/status");
    assert!(code == 200 && head.contains("content-type: application/json"), "{head}");
}

#[test]
fn t3_own_metrics_count_events_exits_and_restarts() {
    let served = Telemetry::start(
        "jobs: [
            { name: 'flaky', exec: ['sh', '-c', 'exit 3'], restarts: 2, restartBackoff: false },
            { name: 'stays', exec: 'sleep 1000' },
        ],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    served.wait_for_line("containerpilot_events{code=\"Stopped\",source=\"flaky\"} 1");
    let page = served.metrics();
    for line in [
        "containerpilot_job_up{name=\"flaky\"} 0",
        "containerpilot_job_up{name=\"stays\"} 1",
        "containerpilot_job_restarts_total{name=\"flaky\"} 2",
        "containerpilot_job_last_exit_code{name=\"flaky\"} 3",
        "containerpilot_events{code=\"ExitFailed\",source=\"flaky\"} 3",
        "containerpilot_events{code=\"Startup\",source=\"global\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "no line `{line}` in\n{page}");
    }
    let started =
        page.lines().find(|line| line.starts_with("containerpilot_job_start_time_seconds{name=\"stays\""));
    let started: f64 = started.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!(started <= now + 1.0 && started > now - 600.0, "{started} is not just before {now}");
}

#[test]
fn h8_t4_job_that_never_becomes_healthy_fails_although_it_exits_with_0() {
    let served = Telemetry::start(
        "jobs: [{ name: 'web', restarts: 'unlimited', restartBackoff: false,
            exec: ['sh', '-c', 'trap \"exit 0\" TERM; sleep 1000 & wait'],
            health: { exec: 'false', interval: '200ms', ttl: 10, onUnhealthy: 'restart' } }],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    let count = |result: &str| -> u64 {
        let name = format!("containerpilot_job_runs_total{{name=\"web\",result=\"{result}\"}} ");
        let page = served.metrics();
        page.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    };
    wait_until("it was restarted", || count("failure") >= 2);
    assert_eq!(count("success"), 0);
    let (_, _, status) = served.control("GET", "/v3/status", "");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert!(status["jobs"][0]["failedRuns"].as_u64().unwrap() >= 2, "{status}");
}

#[test]
fn t4_states_runs_usage_and_lines_of_jobs() {
    let served = Telemetry::start(
        "jobs: [
            { name: 'talks', exec: ['sh', '-c', 'echo a; echo b; echo c >&2; sleep 1000 & wait'] },
            { name: 'tick', exec: 'true', when: { interval: '200ms' } },
            { name: 'once', exec: ['sh', '-c', 'exit 3'] },
        ],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    for line in [
        "containerpilot_job_state{name=\"talks\",state=\"running\"} 1",
        "containerpilot_job_state{name=\"talks\",state=\"failed\"} 0",
        "containerpilot_job_state{name=\"once\",state=\"failed\"} 1",
        "containerpilot_job_runs_total{name=\"once\",result=\"failure\"} 1",
        "containerpilot_log_lines_total{name=\"talks\",stream=\"stdout\"} 2",
        "containerpilot_log_lines_total{name=\"talks\",stream=\"stderr\"} 1",
    ] {
        served.wait_for_line(line);
    }
    let value = |name: &str| -> f64 {
        let page = served.metrics();
        let line =
            page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    };
    wait_until("two ticks", || {
        value("containerpilot_job_runs_total{name=\"tick\",result=\"success\"}") >= 2.0
    });
    assert_eq!(value("containerpilot_job_restarts_total{name=\"tick\"}"), 0.0, "a tick is not a restart");
    assert!(value("containerpilot_job_memory_bytes{name=\"talks\"}") > 100_000.0);
    assert!(value("containerpilot_job_cpu_seconds_total{name=\"talks\"}") < 60.0);
    let page = served.metrics();
    assert!(!page.contains("containerpilot_job_memory_bytes{name=\"once\"}"), "it has no process: {page}");
    assert!(!page.contains("containerpilot_catalog_up"), "there is no Consul: {page}");
}

#[test]
fn t2_metric_values_are_accepted_under_both_name_forms_and_invalid_ones_refused() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }],
        telemetry: { port: 0, interfaces: 'lo', metrics: [
            { namespace: 'app', name: 'hits_total', help: 'Hits.', type: 'counter' },
            { name: 'free_bytes', help: 'Free memory.', type: 'gauge' },
        ] }",
    );
    assert_eq!(served.put("{\"app_hits_total\": 2, \"free_bytes\": \"1048576\"}").0, 200);
    assert_eq!(served.put("{\"app__hits_total\": 1}").0, 200);
    let page = served.metrics();
    assert!(page.contains("\napp_hits_total 3\n") && page.contains("\nfree_bytes 1.048576e+06\n"), "{page}");
    let (code, _, words) = served.put("{\"app_hit_total\": 1, \"free_bytes\": 5}");
    assert_eq!(code, 400);
    assert!(words.contains("did you mean `app_hits_total`?"), "{words}");
    assert_eq!(served.put("{\"app_hits_total\": -1}").0, 400);
    let page = served.metrics();
    assert!(page.contains("\napp_hits_total 3\n") && page.contains("\nfree_bytes 1.048576e+06\n"), "{page}");
    let requests = "containerpilot_control_http_requests{code=\"400\",path=\"/v3/metric\"} 2";
    assert!(page.lines().any(|line| line == requests), "{page}");
}

#[test]
fn t1_readyz_is_200_while_all_jobs_are_healthy_and_not_in_maintenance() {
    let served = Telemetry::start(
        "jobs: [{ name: 'web', exec: 'sleep 1000',
                  health: { exec: 'test -e @/healthy', interval: '50ms', ttl: 10 } }],
        telemetry: { port: 0, interfaces: 'lo' }",
    );
    assert_eq!(served.get("/livez").0, 200);
    let (code, _, words) = served.get("/readyz");
    assert!(code == 503 && words.contains("\nweb: "), "{words}");
    std::fs::write(served.supervisor.file("healthy"), "").unwrap();
    wait_until("it is ready", || served.get("/readyz").0 == 200);
    assert_eq!(served.control("POST", "/v3/maintenance/enable", "").0, 200);
    wait_until("it is not ready", || served.get("/readyz").0 == 503);
    assert!(served.get("/readyz").2.contains("\nin maintenance mode\n"));
    assert_eq!(served.control("POST", "/v3/maintenance/disable", "").0, 200);
    wait_until("it is ready", || served.get("/readyz").0 == 200);
    std::fs::remove_file(served.supervisor.file("healthy")).unwrap();
    wait_until("it is not ready", || served.get("/readyz").2.contains("\nweb: unhealthy\n"));
    assert_eq!(served.get("/livez").0, 200, "readiness must not affect liveness");
}

#[test]
fn t1_only_get_and_head_are_allowed() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' }",
    );
    let (code, head, _) = request(served.address, "POST", "/status");
    assert!(code == 405 && head.contains("allow: get, head"), "{head}");
    assert_eq!(request(served.address, "GET", "/nothing").0, 404);
    let (code, head, body) = request(served.address, "HEAD", "/metrics");
    assert!(code == 200 && body.is_empty() && head.contains("version=0.0.4"), "{head}");
}

#[test]
fn e7_silent_connections_do_not_block_other_clients() {
    let served = Telemetry::start(
        "jobs: [{ name: 'a', exec: 'sleep 1000' }], telemetry: { port: 0, interfaces: 'lo' }",
    );
    let silent: Vec<_> = (0..30).map(|_| std::net::TcpStream::connect(served.address).unwrap()).collect();
    let begun = std::time::Instant::now();
    assert_eq!(served.get("/livez").0, 200);
    assert!(begun.elapsed() < Duration::from_secs(30));
    drop(silent);
}

#[test]
fn l5_no_page_and_no_log_entry_shows_a_secret() {
    let mut served = Telemetry::start(
        "consul: { address: '127.0.0.1:1', token: 'hunter2' },
        jobs: [{ name: 'web', exec: 'sleep 1000', env: { DB_PASSWORD: 'hunter2' },
                 health: { exec: ['sh', '-c', 'exit 1', 'hunter2'], interval: '50ms', ttl: 10 } }],
        telemetry: { port: 0, interfaces: 'lo', metrics: [{ name: 'free', help: 'Free.', type: 'gauge' }] }",
    );
    let (code, _, words) = served.put("{\"free\": \"hunter2\"}");
    assert!(code == 400 && !words.contains("hunter2"), "{words}");
    wait_until("it is unhealthy", || served.get("/readyz").2.contains("web: unhealthy"));
    for page in ["/metrics", "/status", "/readyz", "/livez", "/hunter2"] {
        let (_, head, body) = served.get(page);
        assert!(!head.contains("hunter2") && !body.contains("hunter2"), "{page}: {body}");
    }
    served.supervisor.signal("-TERM");
    served.supervisor.wait_for_line("SIGTERM");
    let (_, log) = served.supervisor.wait();
    assert!(!log.contains("hunter2"));
}
