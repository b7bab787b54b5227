//! The supervisor's own metrics, from a core driven by the test.

use containerpilot_core::Input;
use containerpilot_core::ids::{RenderId, WatchIx};
use containerpilot_core::input::{Answer, RenderedText};
use containerpilot_core::plan::{Signal, Status};
use containerpilot_views::catalog::ConsulReport;

use super::super::testing::TestCore;
use super::*;

fn page(core: &TestCore, shared: &Shared) -> String {
    let mut page = MetricsPage::default();
    add_to(&mut page, &core.snapshot(), shared, "4.0", &Measured::default());
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
        "containerpilot_events{code=\"BecameHealthy\",source=\"web \\\"1\\\"\"} 1",
        "containerpilot_events{code=\"BecameUnhealthy\",source=\"web \\\"1\\\"\"} 1",
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
        "containerpilot_log_lost_lines_total 0",
        "containerpilot_ready 0",
        "containerpilot_watch_instances{service=\"db\"} 0",
        "process_start_time_seconds 1e+09",
    ];
    // T4: their own tests are below.
    let by_state = ["containerpilot_job_state{", "containerpilot_job_runs_total{"];
    let shown = lines(&text).into_iter().filter(|line| !by_state.iter().any(|name| line.starts_with(name)));
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn t4_each_state_of_a_job_is_0_or_1() {
    let mut core = TestCore::new(
        "{ jobs: [{ name: 'a', exec: 'a' }, { name: 'b', exec: 'b', when: { source: 'SIGHUP' } },
                  { name: 'b', exec: 'b' }] }",
    );
    core.start();
    let states = |core: &TestCore, name: &str| {
        let text = page(core, &Shared::default());
        let prefix = format!("containerpilot_job_state{{name=\"{name}\",state=\"");
        let all: Vec<String> =
            lines(&text).iter().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect();
        assert_eq!(all.len(), JobStatus::WORDS.len(), "{text}");
        let ones = all.iter().filter_map(|line| line.strip_suffix("\"} 1")).map(str::to_owned);
        ones.collect::<Vec<_>>()
    };
    assert_eq!(states(&core, "a"), ["running"]);
    assert_eq!(states(&core, "b"), ["waiting", "running"], "two jobs of one name");
    core.exit("a", 3);
    assert_eq!(states(&core, "a"), ["failed"]);
}

#[test]
fn t4_runs_are_counted_by_result_and_ticks_are_not_restarts() {
    let mut core = TestCore::new("{ jobs: [{ name: 'tick', exec: 'a', when: { interval: '10s' } }] }");
    core.start();
    for code in [0, 0, 1] {
        core.exit("tick", code);
        core.advance(10);
    }
    let text = page(&core, &Shared::default());
    for line in [
        "containerpilot_job_runs_total{name=\"tick\",result=\"success\"} 2",
        "containerpilot_job_runs_total{name=\"tick\",result=\"failure\"} 1",
        "containerpilot_job_runs_total{name=\"tick\",result=\"timeout\"} 0",
        "containerpilot_job_runs_total{name=\"tick\",result=\"stopped\"} 0",
        "containerpilot_job_restarts_total{name=\"tick\"} 0",
    ] {
        assert!(lines(&text).contains(&line), "{line}: {text}");
    }
}

#[test]
fn t4_usage_and_lines_belong_to_the_jobs_of_the_plan() {
    let mut core = TestCore::new("{ jobs: [{ name: 'a', exec: 'a' }] }");
    core.start();
    let snapshot = core.snapshot();
    let count = LineCounts { stdout: 5, stderr: 2 };
    let measured = Measured {
        usage: BTreeMap::from([(RunId(99), JobUsage::default())]),
        lines: BTreeMap::from([("a".into(), count), ("removed".into(), count)]),
        ..Measured::default()
    };
    let mut page = MetricsPage::default();
    add_to(&mut page, &snapshot, &Shared::default(), "4.0", &measured);
    let text = page.text();
    let of_lines = text.lines().filter(|line| line.starts_with("containerpilot_log_lines_total"));
    assert_eq!(
        of_lines.collect::<Vec<_>>(),
        [
            "containerpilot_log_lines_total{name=\"a\",stream=\"stderr\"} 2",
            "containerpilot_log_lines_total{name=\"a\",stream=\"stdout\"} 5",
        ]
    );
    assert!(!text.contains("containerpilot_job_cpu"), "the usage of another run is not shown: {text}");
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
fn d11_t4_a_service_counts_as_registered_when_the_catalog_has_confirmed_it() {
    let mut core = TestCore::new(
        "{ consul: 'localhost:8500', jobs: [
            { name: 'web', exec: 'web', port: 80, interfaces: 'static:10.0.0.1', health: { exec: 'x', interval: 1, ttl: 10 } },
            { name: 'other', exec: 'other' },
        ] }",
    );
    core.start();
    core.check("web", Ok(()));
    let mut snapshot = core.snapshot();
    let mut page = |up: Option<bool>, confirmed: Option<DesiredService>| {
        snapshot.catalog.consul = Some(ConsulReport { up, trouble: None });
        snapshot.catalog.services = vec![Some(Known { confirmed, ..Known::default() }), None];
        let mut page = MetricsPage::default();
        catalog(&mut page, &snapshot);
        let own =
            |line: &&str| !line.starts_with('#') && !line.starts_with("containerpilot_service_conflict");
        page.text().lines().filter(own).map(str::to_owned).collect::<Vec<_>>()
    };
    let registered = |value: u8| format!("containerpilot_service_registered{{name=\"web\"}} {value}");
    assert_eq!(page(None, None), [registered(0)], "wanted, but nothing was answered yet");
    assert_eq!(page(Some(false), None), ["containerpilot_catalog_up 0".to_owned(), registered(0)]);
    let critical = DesiredService::Present(Status::Critical);
    assert_eq!(page(Some(true), Some(critical)), ["containerpilot_catalog_up 1".to_owned(), registered(1)]);
    assert_eq!(page(Some(true), Some(DesiredService::Absent)).last(), Some(&registered(0)));
}

#[test]
fn d10_t4_an_id_that_another_supervisor_holds_is_a_conflict() {
    let core = TestCore::new(
        "{ consul: 'localhost:8500', jobs: [{ name: 'web', exec: 'web', port: 80, interfaces: 'static:10.0.0.1', health: { exec: 'x', interval: 1, ttl: 10 } }] }",
    );
    let mut snapshot = core.snapshot();
    for is_held in [false, true] {
        snapshot.catalog.services = vec![Some(Known { is_held, ..Known::default() })];
        let mut page = MetricsPage::default();
        catalog(&mut page, &snapshot);
        let line = format!("containerpilot_service_conflict{{name=\"web\"}} {}", u8::from(is_held));
        let text = page.text();
        assert!(text.lines().any(|found| found == line), "{text}");
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
fn d8_a_suspended_check_has_no_metrics() {
    let mut core =
        TestCore::new("{ jobs: [{ name: 'a', exec: 'a', health: { exec: 'b', interval: 1, ttl: 5 } }] }");
    core.start();
    core.check("a", Ok(()));
    let has_check = |core: &TestCore| page(core, &Shared::default()).contains("containerpilot_check_up{");
    assert!(has_check(&core));
    core.maintenance(true);
    assert!(!has_check(&core));
    core.maintenance(false);
    core.check("a", Ok(()));
    assert!(has_check(&core));
}

#[test]
fn d11_instances_are_missing_until_consul_has_answered() {
    let mut core =
        TestCore::new("{ jobs: [{ name: 'a', exec: 'a' }], watches: [{ name: 'db', interval: 1 }] }");
    core.start();
    let instances = |core: &TestCore, consul: bool| {
        let mut snapshot = core.snapshot();
        snapshot.catalog.consul = consul.then_some(ConsulReport { up: None, trouble: None });
        let mut page = MetricsPage::default();
        add_to(&mut page, &snapshot, &Shared::default(), "4.0", &Measured::default());
        page.text().contains("containerpilot_watch_instances{service=\"db\"} 0")
    };
    assert!(instances(&core, false), "the embedded catalog is empty");
    assert!(!instances(&core, true));
    core.step(Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Instances(Vec::new())) });
    assert!(instances(&core, true));
}

#[test]
fn t3_the_names_reserved_in_the_configuration_are_the_own_metrics() {
    let mut core = TestCore::new(
        "{ jobs: [{ name: 'a', exec: 'a', restarts: 1, health: { exec: 'b', interval: 1, ttl: 5 } },
                  { name: 'q', exec: 'q', when: { source: 'a', each: 'exitFailed', queue: 'all' } }],
           watches: [{ name: 'db', interval: 1 }], locks: [{ name: 'primary' }],
           files: [{ name: 'conf', template: 'x', to: '/tmp/conf' }] }",
    );
    core.start();
    core.check("a", Ok(()));
    core.exit("a", 0);
    core.step(Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Instances(Vec::new())) });
    core.step(Input::FileRendered { render: RenderId(1), result: Ok(RenderedText::Same) });
    let mut shared = Shared::default();
    shared.requests.insert((200, "/v3/ping"), 1);
    shared.exported.insert(("logs", "sent"), 1);
    let mut page = MetricsPage::default();
    let mut snapshot = core.snapshot();
    snapshot.catalog.consul = Some(ConsulReport { up: Some(true), trouble: None });
    snapshot.catalog.services = vec![Some(Known::default())];
    let run = snapshot.overview.jobs[0].status.run.unwrap();
    let measured = Measured {
        process: ProcessUsage::read(),
        usage: BTreeMap::from([(run, JobUsage::default())]),
        lines: BTreeMap::from([("a".into(), LineCounts::default())]),
        lost_lines: 0,
    };
    shared.cpu.update(&snapshot, &measured.usage);
    add_to(&mut page, &snapshot, &shared, "4.0", &measured);
    assert_eq!(page.names().collect::<Vec<_>>(), containerpilot_config::metrics::SELF_METRICS);
}
