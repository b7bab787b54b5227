//! Log entries, with the ids of their spans.

use std::time::Duration;

use super::collector::{Behaviour, Collector, attribute, text};
use crate::support::supervisor::{Mode, Supervisor, modes, wait_until};

#[test]
fn t6_every_entry_is_exported_with_its_attributes_and_the_ids_of_its_run() {
    for mode in modes() {
        let collector = Collector::accepting();
        let supervisor = Supervisor::with_setup(
            mode,
            "printf hunter2 > @/secret",
            &collector
                .config("metrics: false")
                .job(
                    "web",
                    "exec: ['sh', '-c', 'echo to stdout; echo to stderr >&2; echo $KEY; printf last; exit 3'],
                     secrets: { KEY: { file: '@/secret' } }",
                )
                .job(
                    "checked",
                    "exec: ['sh', '-c', 'while ! [ -e @/done ]; do sleep 0.1; done'],
                     health: { name: 'probe', exec: ['sh', '-c', 'echo from check; touch @/done'], interval: 1, ttl: 5 }",
                )
                .job("quiet", "exec: ['sh', '-c', 'echo passed by'], logging: { raw: true }"),
        );
        let (_, log) = supervisor.wait();
        let (records, spans) = (collector.records(), collector.spans());
        let found = |wanted: &str| {
            let mut all = records.iter().filter(|record| text(record) == wanted);
            let record = all.next().unwrap_or_else(|| panic!("no record `{wanted}`"));
            assert!(all.next().is_none(), "`{wanted}` twice");
            record
        };
        let span = |name: &str| spans.iter().find(|span| span.name == name).unwrap().span_id.clone();
        for (wanted, stream) in
            [("to stdout", "stdout"), ("to stderr", "stderr"), ("***", "stdout"), ("last", "stdout")]
        {
            let record = found(wanted);
            let given = |key: &str| attribute(&record.attributes, key);
            assert_eq!(given("log.iostream").as_deref(), Some(stream), "{wanted}");
            assert_eq!(given("containerpilot.job").as_deref(), Some("web"));
            assert!(given("process.pid").is_some());
            assert_eq!((record.severity_number, &*record.severity_text), (9, "info"));
            assert_eq!(record.span_id, span("run web"));
            assert!(record.time_unix_nano > 0);
        }
        let check = found("from check");
        assert_eq!(attribute(&check.attributes, "containerpilot.check").as_deref(), Some("probe"));
        assert_eq!(check.span_id, span("run checked"));
        let exit = records.iter().find(|record| text(record).starts_with("exited with code 3")).unwrap();
        let given = |key: &str| attribute(&exit.attributes, key);
        assert_eq!(given("containerpilot.event").as_deref(), Some("exitFailed"));
        assert_eq!(given("process.exit.code").as_deref(), Some("3"));
        assert_eq!((exit.severity_number, &exit.span_id), (17, &span("run web")));
        let own = records.iter().find(|record| text(record).starts_with("control: serving at")).unwrap();
        assert_eq!(own.span_id, span("container"));
        let last = records.iter().find(|record| text(record).starts_with("exiting with code")).unwrap();
        assert_eq!(last.trace_id, spans[0].trace_id, "the last entry is sent, too");
        assert!(
            records.iter().all(|record| !text(record).contains("hunter2") && text(record) != "passed by")
        );
        assert!(log.contains("passed by"));
    }
}

#[test]
fn t6_l8_lines_in_files_joined_lines_and_levels_are_exported_as_they_are_logged() {
    let collector = Collector::accepting();
    let supervisor = Supervisor::start(
        Mode::Plain,
        &collector.config("metrics: false").job(
            "a",
            "exec: ['sh', '-c', 'echo one; echo bad >&2; echo first; echo \" second\"; echo last'],
             logging: { file: '@/a.log', stderr: 'error', join: '^ ' }",
        ),
    );
    let (_, log) = supervisor.wait();
    assert!(!log.contains("first"), "the lines are in the file");
    let records = collector.records();
    let lines: Vec<String> = records
        .iter()
        .filter(|record| attribute(&record.attributes, "log.iostream").as_deref() == Some("stdout"))
        .map(text)
        .collect();
    assert_eq!(lines, ["one", "first\n second", "last"]);
    let bad = records.iter().find(|record| text(record) == "bad").unwrap();
    assert_eq!((bad.severity_number, &*bad.severity_text), (17, "error"));
    let run = collector.spans().into_iter().find(|span| span.name == "run a").unwrap();
    assert_eq!(bad.span_id, run.span_id);
}

#[test]
fn t6_without_traces_records_have_no_ids_and_entries_below_the_level_are_not_sent() {
    let collector = Collector::accepting();
    let supervisor = Supervisor::start(
        Mode::Plain,
        &collector
            .config("metrics: false, traces: false")
            .keys("logging: { level: 'WARN' }")
            .job("a", "exec: ['sh', '-c', 'echo line; exit 1']"),
    );
    supervisor.wait();
    let records = collector.records();
    assert!(!records.is_empty());
    assert!(
        records.iter().all(|record| record.trace_id.is_empty() && record.severity_number > 9),
        "{records:?}"
    );
}

/// How many lines of the job reached the supervisor's own output, and the collector.
fn flood(behaviour: Behaviour, lines: usize) -> (usize, usize, String, Duration) {
    let collector = Collector::start(behaviour);
    let started = std::time::Instant::now();
    let script = format!("seq -f \"line %.0f of many, with some text in it\" {lines}; echo end");
    let config = collector
        .config("metrics: false, traces: false, timeout: '1s'")
        .job("flood", format!("exec: ['sh', '-c', '{script}']"))
        .job("stays", "exec: 'sleep 1000'");
    let mut supervisor = Supervisor::start(Mode::Plain, &config);
    supervisor.wait_for_line("flood exited");
    let took = started.elapsed();
    if matches!(collector.behaviour(), Behaviour::Hang) {
        supervisor.wait_for_lines("otlp: cannot send log entries", 1);
        collector.behave(Behaviour::Accept(Vec::new()));
        supervisor.wait_for_line("dropped meanwhile");
    } else {
        wait_until("the last line arrives", || {
            collector.records().iter().any(|record| text(record) == "end")
        });
    }
    supervisor.signal("-TERM");
    let (code, log) = supervisor.wait();
    assert_eq!(code, 0);
    let is_line = |text: &str| text.contains("of many, with some text in it");
    let exported = collector.records().iter().filter(|record| is_line(&text(record))).count();
    (log.lines().filter(|line| is_line(line)).count(), exported, log, took)
}

#[test]
fn t6_all_lines_are_exported_while_the_collector_keeps_up() {
    let (logged, exported, log, _) = flood(Behaviour::Accept(Vec::new()), 20_000);
    assert_eq!((logged, exported), (20_000, 20_000));
    assert!(!log.contains("otlp:"));
}

#[test]
fn t6_full_buffer_drops_from_the_export_only_and_says_how_many() {
    let (logged, exported, log, took) = flood(Behaviour::Hang, 300_000);
    assert_eq!(logged, 300_000, "the log has every line");
    assert!(exported > 10_000 && exported < 290_000, "{exported}");
    assert!(took < Duration::from_secs(120), "{took:?}: the job was not slowed down");
    let line = log.lines().find(|line| line.contains("dropped meanwhile")).unwrap();
    let count = line.split("; ").last().unwrap().split(' ').next().unwrap();
    let dropped: usize = count.parse().unwrap();
    assert!(
        dropped >= 300_000 - exported && dropped <= 300_000 - exported + 20,
        "{dropped} {exported}: {line}"
    );
}
