//! What users of 3.8 meet besides its integration tests: log texts, the environment, and files without work.

use super::container::{init, page, stop, wait_for_instances};
use crate::support::config::Config;
use crate::support::consul::{Agent, own_address};
use crate::support::supervisor::Supervisor;

/// The row `texts`, and the table below it.
#[test]
fn l1_texts_that_scripts_look_for_are_in_the_log() {
    let agent = Agent::dev();
    let ip = own_address();
    let mut run = Supervisor::start(
        init(),
        &format!(
            "{{ consul: '{}', stopTimeout: 1, telemetry: {{ port: 9090, interfaces: 'static:{ip}' }}, jobs: [
              {{ name: 'good', exec: 'true' }}, {{ name: 'bad', exec: 'false' }}, {{ name: 'gone', exec: '/no/such/file' }},
              {{ name: 'shot', exec: ['sh', '-c', 'kill -KILL $$'] }},
              {{ name: 'slow', exec: ['sh', '-c', 'sleep 60'], timeout: '100ms' }},
              {{ name: 'web', exec: ['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.1; done'], port: 80, interfaces: 'static:10.1.1.1',
                 health: {{ exec: 'test ! -e @/ill', interval: '200ms', ttl: 30 }} }} ] }}",
            agent.address()
        ),
    );
    wait_for_instances(&agent, "web", 1);
    std::fs::write(run.file("ill"), "").unwrap();
    run.wait_for_line("web unhealthy: ");
    let log = stop(run);
    for text in [
        "Z control: serving at ",
        &format!("Z telemetry: serving at {ip}:9090"),
        "Z Service registered: web",
        "Z slow timeout after 100ms: '[-c sleep 60]'",
        "Z bad exited with code 1 after ",
        "Z shot exited on SIGKILL after ",
        "Z good exited with code 0 after ",
        "Z gone failed to start: ",
        "Z stop timeout of 1s passed, killing 1 job",
        "Z web healthy",
    ] {
        assert!(log.contains(text), "no `{text}`");
    }
}

/// The rows `no-proxy` and `utc`: variables that 3.8 reads for itself are for the jobs.
#[test]
fn d1_l1_proxies_and_time_zones_are_for_the_jobs() {
    let agent = Agent::dev();
    let run = Supervisor::with_setup(
        init(),
        "export HTTP_PROXY=http://127.0.0.1:1 http_proxy=http://127.0.0.1:1 TZ=America/New_York",
        &Config::new().consul(agent.address()).job(
            "web",
            "exec: ['sh', '-c', 'echo $HTTP_PROXY $TZ; exec sleep 60'], port: 80,
                     interfaces: 'static:10.1.1.1', health: { exec: 'true', interval: 1, ttl: 30 }",
        ),
    );
    wait_for_instances(&agent, "web", 1);
    let log = stop(run);
    assert!(log.contains(" http://127.0.0.1:1 America/New_York"));
    assert!(log.lines().all(|line| line.split(' ').next().is_some_and(|time| time.ends_with('Z'))));
}

/// The row `http-metrics`.
#[test]
fn t3_no_metrics_about_scrapes() {
    let ip = own_address();
    let mut run = Supervisor::start(
        init(),
        &Config::new()
            .keys(format!("telemetry: {{ port: 9090, interfaces: 'static:{ip}' }}"))
            .job("a", "exec: 'sleep 60'"),
    );
    run.wait_for_line("telemetry: serving at ");
    let metrics = page(&format!("{ip}:9090"), "/metrics").unwrap();
    assert!(metrics.contains("containerpilot_job_up{name=\"a\"}"), "{metrics}");
    assert!(!metrics.lines().any(|line| line.starts_with("http_")), "{metrics}");
    stop(run);
}

/// The row `reacting-jobs`: 3.8 keeps running with each of these files.
#[test]
fn w10_files_without_work_say_why_they_exit_or_stay() {
    let (maintained, watched) = (
        "{ name: 'm', exec: 'true', when: { each: 'enterMaintenance' } }",
        "consul: '127.0.0.1:1', watches: [{ name: 'db', interval: 5 }]",
    );
    for (keys, said) in [
        (String::new(), "there are no jobs, shutting down"),
        (
            watched.to_owned(),
            "there are no jobs, shutting down (this does not keep the container running: watch.db)",
        ),
        (
            format!(
                "jobs: [{{ name: 'a', exec: 'true' }}, {maintained}], {watched}, telemetry: {{ port: 0, interfaces: 'lo' }}"
            ),
            "all jobs that do work have ended, shutting down (this does not keep the container running: telemetry, m, watch.db)",
        ),
    ] {
        let (code, log) = Supervisor::start(init(), &format!("{{ {keys} }}")).wait();
        assert!(code == 0 && log.contains(said), "{keys}: {code}");
    }
    for (keys, said) in [
        (
            "telemetry: { port: 0, interfaces: 'lo' }".to_owned(),
            "this keeps the container running: telemetry",
        ),
        (format!("jobs: [{maintained}]"), "this keeps the container running: m"),
    ] {
        let mut run = Supervisor::start(init(), &format!("{{ {keys} }}"));
        run.wait_for_line(&format!("no job does work; {said}"));
        stop(run);
    }
    // The keys that give the other behaviour.
    let mut run = Supervisor::start(
        init(),
        "{ jobs: [{ name: 'a', exec: 'true' }, { name: 'stay', exec: 'sleep infinity' }] }",
    );
    run.wait_for_line("a complete");
    stop(run);
    let ends = "{ jobs: [{ name: 'a', exec: 'true', onSuccess: 'shutdown' }, { name: 'b', exec: 'sleep infinity' }] }";
    assert_eq!(Supervisor::start(init(), ends).wait().0, 0);
}
