//! The life of a container is one trace.

use std::collections::BTreeSet;

use super::collector::{Collector, attribute, hex};
use crate::support::config::Config;
use crate::support::supervisor::{Mode, Supervisor, modes};

#[test]
fn t6_the_life_of_a_container_is_one_trace_with_the_right_parents() {
    for mode in modes() {
        let collector = Collector::accepting();
        let mut supervisor = Supervisor::start(
            mode,
            &Config::new()
                .keys(format!(
                    "otlp: {{ endpoint: 'http://{}/prefix/', logs: false, metrics: false }}",
                    collector.address
                ))
                .job("migrate", "exec: ['sh', '-c', 'exit 0']")
                .job(
                    "web",
                    "exec: ['sh', '-c', 'echo parent $TRACEPARENT; exec sleep 1000'],
                     when: { source: 'migrate', once: 'exitSuccess' }, health: { exec: 'true', interval: 1, ttl: 10 }",
                )
                .job("warm", "exec: 'true', when: { source: 'web', once: 'healthy' }")
                .job("pre-stop", "exec: 'true', when: { source: 'web', once: 'stopping' }"),
        );
        // The two lines come in any order: one is written by a job.
        supervisor.wait_for_lines("parent 00-", 1);
        supervisor.wait_for_lines("warm exited", 1);
        let log = supervisor.log_so_far();
        let parent = log.lines().find(|line| line.contains("parent 00-")).unwrap();
        supervisor.signal("-TERM");
        assert_eq!(supervisor.wait().0, 0);
        assert_eq!(collector.recorded("/v1/traces").len(), 0, "the path has a prefix");
        let spans = collector.spans_at("/prefix/v1/traces");
        let named = |name: &str| {
            let mut found = spans.iter().filter(|span| span.name == name);
            found.next().unwrap_or_else(|| panic!("no span `{name}`"))
        };
        let traces: BTreeSet<_> = spans.iter().map(|span| span.trace_id.clone()).collect();
        let ids: BTreeSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
        assert_eq!((traces.len(), ids.len()), (1, spans.len()), "one trace, and each span once");
        let expected = [
            ("run migrate", "container"),
            ("start migrate", "run migrate"),
            ("run web", "container"),
            ("start web", "run web"),
            ("check check.web", "run web"),
            ("run warm", "run web"),
            ("stop web", "run web"),
            ("run pre-stop", "stop web"),
            ("shutdown", "container"),
            ("startup", "container"),
        ];
        for (name, parent) in expected {
            assert_eq!(named(name).parent_span_id, named(parent).span_id, "{name} belongs to {parent}");
        }
        let root = named("container");
        assert!(root.parent_span_id.is_empty());
        for span in &spans {
            let inside = root.start_time_unix_nano <= span.start_time_unix_nano
                && span.start_time_unix_nano <= span.end_time_unix_nano
                && span.end_time_unix_nano <= root.end_time_unix_nano;
            assert!(inside, "{span:?}");
        }
        assert_eq!(named("run web").links[0].span_id, named("run migrate").span_id);
        let web = named("run web");
        let expected = format!("00-{}-{}-01", hex(&web.trace_id), hex(&web.span_id));
        assert!(parent.ends_with(&expected), "{parent} {expected}");
        assert_eq!(attribute(&web.attributes, "containerpilot.ended_by").as_deref(), Some("shutdown"));
        assert!(attribute(&web.attributes, "process.pid").is_some());
    }
}

#[test]
fn t6_without_traces_jobs_get_no_traceparent_and_nothing_is_sent() {
    let collector = Collector::accepting();
    for config in [collector.config("logs: false, traces: false"), Config::new()] {
        let config = config.job("a", "exec: ['sh', '-c', 'echo parent=$TRACEPARENT.']");
        let setup = format!("export OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", collector.address);
        let (code, log) = Supervisor::with_setup(Mode::Plain, &setup, &config).wait();
        assert!(code == 0 && log.contains("parent=."), "exit code {code}");
    }
    assert_eq!(collector.recorded("/v1/traces").len(), 0);
    assert_eq!(collector.recorded("/v1/metrics").len(), 1, "of the first, when it exited");
}

#[test]
fn t6_reload_adds_changes_and_removes_the_export_within_one_trace() {
    let (first, second) = (Collector::accepting(), Collector::accepting());
    let config = |otlp: Config, nth: u32| {
        let once = format!("exec: ['sh', '-c', 'echo ran {nth} with $TRACEPARENT.']");
        otlp.job("stays", "exec: 'sleep 1000'").job(format!("once-{nth}"), once)
    };
    let otlp = |to: &Collector| to.config("logs: false, metrics: false");
    let mut supervisor = Supervisor::start(Mode::Plain, &config(Config::new(), 1));
    supervisor.wait_for_line("ran 1 with .");
    let mut reload = |text: &str, line: &str| {
        std::fs::write(supervisor.file("config.json5"), text).unwrap();
        supervisor.signal("-HUP");
        supervisor.wait_for_line(line)
    };
    reload(&config(otlp(&first), 2), "ran 2 with 00-");
    let run = first.wait_for_span("run once-2");
    reload(&config(otlp(&second), 3), "ran 3 with 00-");
    assert_eq!(second.wait_for_span("run once-3").trace_id, run.trace_id, "it is the same trace");
    reload(&config(Config::new(), 4), "ran 4 with .");
    reload(&config(otlp(&first), 5), "ran 5 with 00-");
    assert_eq!(first.wait_for_span("run once-5").trace_id, run.trace_id);
    supervisor.signal("-TERM");
    assert_eq!(supervisor.wait().0, 0);
    let root = first.wait_for_span("container");
    let stays = first.wait_for_span("run stays");
    assert!(stays.start_time_unix_nano - root.start_time_unix_nano < 60_000_000_000);
    assert!(second.spans().iter().all(|span| !["container", "run once-5"].contains(&&*span.name)));
}
