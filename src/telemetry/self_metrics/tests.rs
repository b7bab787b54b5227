//! The supervisor's own metrics, from a core driven by the test.

use containerpilot_core::Input;
use containerpilot_core::plan::Signal;

use super::super::testing::TestCore;
use super::*;

fn page(core: &TestCore, shared: &Shared) -> String {
    let mut page = Page::default();
    add_to(&mut page, &core.snapshot(), shared, "4.0", &Process::default());
    page.text()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn t3_jobs_checks_watches_and_events_have_metrics() {
    let mut core = TestCore::new(
        "{ consul: 'localhost:8500', jobs: [
            { name: 'web \"1\"', exec: 'web', restarts: 5, restartBackoff: false,
              health: [{ name: 'alive', exec: 'true', interval: 1, ttl: 10 }] },
            { name: 'other', exec: 'other', when: { source: 'watch.db', once: 'changed' } },
        ], watches: [{ name: 'db', interval: 1 }] }",
    );
    let mut shared = Shared::default();
    shared.requests.insert((200, "/v3/ping"), 3);
    core.start();
    core.check("web \"1\"", Ok(()));
    core.advance(2);
    core.exit("web \"1\"", 7);
    let text = page(&core, &shared);
    let expected = [
        "containerpilot_build_info{version=\"4.0\"} 1",
        "containerpilot_check_duration_seconds{name=\"web \\\"1\\\"\",check=\"alive\"} 0",
        "containerpilot_check_up{name=\"web \\\"1\\\"\",check=\"alive\"} 1",
        "containerpilot_control_http_requests{code=\"200\",path=\"/v3/ping\"} 3",
        "containerpilot_events{code=\"ExitFailed\",source=\"web \\\"1\\\"\"} 1",
        "containerpilot_events{code=\"Startup\",source=\"global\"} 1",
        "containerpilot_events{code=\"StatusHealthy\",source=\"web \\\"1\\\"\"} 1",
        "containerpilot_events{code=\"StatusUnhealthy\",source=\"web \\\"1\\\"\"} 1",
        "containerpilot_job_last_exit_code{name=\"web \\\"1\\\"\"} 7",
        "containerpilot_job_restarts_total{name=\"other\"} 0",
        "containerpilot_job_restarts_total{name=\"web \\\"1\\\"\"} 1",
        "containerpilot_job_start_time_seconds{name=\"web \\\"1\\\"\"} 1.000000002e+09",
        "containerpilot_job_up{name=\"other\"} 0",
        "containerpilot_job_up{name=\"web \\\"1\\\"\"} 1",
        "containerpilot_watch_instances{service=\"db\"} 0",
        "process_start_time_seconds 1e+09",
    ];
    assert_eq!(lines(&text), expected, "{text}");
}

#[test]
fn t3_counter_of_restarts_includes_those_before_the_last_event() {
    let mut core = TestCore::new(
        "{ jobs: [{ name: 'a', exec: 'a', restarts: 1, restartBackoff: false, when: { source: 'SIGHUP' } }] }",
    );
    core.start();
    for total in [1, 2] {
        core.step(Input::Signal(Signal(1)));
        core.exit("a", 0);
        core.exit("a", 0);
        let line = format!("containerpilot_job_restarts_total{{name=\"a\"}} {total}");
        assert!(lines(&page(&core, &Shared::default())).contains(&line.as_str()), "{line}");
    }
}

#[test]
fn t3_jobs_of_one_name_share_a_sample() {
    let mut core = TestCore::new(
        "{ jobs: [
            { name: 'twin', exec: 'a', health: [{ exec: 'true', interval: 1, ttl: 5 }] },
            { name: 'twin', exec: 'b', health: [{ exec: 'true', interval: 1, ttl: 5 }] },
            { name: 'twin', exec: 'c', when: { source: 'SIGHUP' } },
        ], watches: [{ name: 'db', interval: 1 }, { name: 'db', interval: 2 }] }",
    );
    core.start();
    core.check("twin", Ok(()));
    core.exit("twin", 2);
    let text = page(&core, &Shared::default());
    let lines = lines(&text);
    let mut names: Vec<&str> =
        lines.iter().filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name).collect();
    names.dedup();
    assert_eq!(names.len(), lines.len(), "{text}");
    assert!(lines.contains(&"containerpilot_job_up{name=\"twin\"} 1"), "{text}");
    assert!(lines.contains(&"containerpilot_job_last_exit_code{name=\"twin\"} 2"), "{text}");
}

#[test]
fn t3_the_label_is_name_because_prometheus_renames_job() {
    let mut core = TestCore::new("{ jobs: [{ name: 'a', exec: 'a' }] }");
    core.start();
    let text = page(&core, &Shared::default());
    assert!(!text.contains("job=\"") && text.contains("{name=\"a\"}"), "{text}");
}

#[test]
fn t3_the_names_reserved_in_the_configuration_are_the_own_metrics() {
    let mut core = TestCore::new(
        "{ jobs: [{ name: 'a', exec: 'a', restarts: 1, health: { exec: 'b', interval: 1, ttl: 5 } }],
           watches: [{ name: 'db', interval: 1 }] }",
    );
    core.start();
    core.check("a", Ok(()));
    core.exit("a", 0);
    let mut shared = Shared::default();
    shared.requests.insert((200, "/v3/ping"), 1);
    let mut page = Page::default();
    add_to(&mut page, &core.snapshot(), &shared, "4.0", &Process::read());
    assert_eq!(page.names().collect::<Vec<_>>(), containerpilot_config::metrics::SELF_METRICS);
}
