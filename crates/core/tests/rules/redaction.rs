//! T5: reports for viewers that must not see everything.

use containerpilot_core::answer::Answer;
use containerpilot_core::ids::{FileIx, JobIx, WatchIx};
use containerpilot_core::input::StartErrorKind;
use containerpilot_core::report::graph::{Graph, Scope};
use containerpilot_core::report::redact::Disclosure;
use containerpilot_core::{Core, Input};

use crate::harness::{Harness, plan};

const NOTHING: Disclosure = Disclosure { commands: false, output: false };
const ALL: Disclosure = Disclosure { commands: true, output: true };

/// Everything that a report of the core contains, as text.
fn everything(core: &Core) -> String {
    let jobs = (0..core.plan().jobs.len()).map(|nth| core.explain(JobIx::at(nth), None));
    let watches = (0..core.plan().watches.len()).filter_map(|nth| core.explain_watch(WatchIx::at(nth), None));
    let files = (0..core.plan().files.len()).filter_map(|nth| core.explain_file(FileIx::at(nth)));
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        core.overview(),
        Graph::of(core.plan(), Scope::Running),
        jobs.collect::<Vec<_>>(),
        watches.collect::<Vec<_>>(),
        files.collect::<Vec<_>>()
    )
}

#[test]
fn t5_why_a_start_failed_is_shown_only_with_arguments() {
    let mut harness =
        Harness::jobs("{ name: 'a', exec: 'x', restarts: 2 }, { name: 'b', exec: 'y', requires: ['a'] }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.fail_start("a", StartErrorKind::NotFound);
    assert!(everything(&harness.core).contains("No such file"));
    assert!(everything(&harness.core.redacted(ALL)).contains("No such file"));
    let hidden = everything(&harness.core.redacted(NOTHING));
    assert!(!hidden.contains("No such file") && hidden.contains("failed to start"), "{hidden}");
}

#[test]
fn t5_messages_of_checks_and_words_of_processes_are_hidden_separately() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', ready: 'notify', health: { exec: 'c', interval: 10, ttl: 30 } }, \
         { name: 'b', exec: 'y', when: { source: 'a', once: 'healthy' } }",
    );
    harness.notify("a", "READY=1\nSTATUS=serving hunter2");
    harness.finish_check(false);
    let shown = |disclosure| everything(&harness.core.redacted(disclosure));
    assert!(shown(ALL).contains("it failed") && shown(ALL).contains("hunter2"));
    let commands = shown(Disclosure { commands: true, output: false });
    assert!(commands.contains("it failed") && !commands.contains("hunter2"));
    let output = shown(Disclosure { commands: false, output: true });
    assert!(!output.contains("it failed") && output.contains("hunter2"));
    assert!(output.contains("check.a failed"), "that it failed is shown: {output}");
}

#[test]
fn t5_urls_and_answers_of_watches_are_hidden() {
    let mut harness = Harness::new(plan(
        "{ jobs: [{ name: 'a', exec: 'x', requires: ['watch.site'] }],
           watches: [{ name: 'site', http: 'http://127.0.0.1/x?token=hunter2', interval: 1 }] }",
    ));
    harness.input(Input::Ready);
    harness.answer(Answer::Down("GET http://127.0.0.1/x?token=hunter2: status 500".into()));
    assert!(everything(&harness.core.redacted(ALL)).contains("hunter2"));
    let hidden = everything(&harness.core.redacted(NOTHING));
    assert!(!hidden.contains("hunter2") && hidden.contains("http://127.0.0.1:80/…"), "{hidden}");
    assert!(everything(&harness.core).contains("hunter2"), "only the copy is changed");
}

#[test]
fn t5_errors_of_templates_are_never_shown() {
    let mut harness = Harness::new(crate::files::plan_with(crate::files::file()));
    harness.input(Input::Ready);
    harness.instances(1);
    harness.rendered(Err("f.tmpl:1:2: cannot parse hunter2"));
    assert!(everything(&harness.core).contains("hunter2"));
    let hidden = everything(&harness.core.redacted(ALL));
    assert!(!hidden.contains("hunter2") && hidden.contains("could not be rendered"), "{hidden}");
}

#[test]
fn t5_c6_coprocess_that_is_named_by_its_command_line_has_the_name_of_its_program() {
    let mut harness = Harness::new(plan(
        "{ jobs: [{ name: 'a', exec: 'x' }], coprocesses: [{ command: ['proxy', '--token', 'hunter2'] }] }",
    ));
    harness.input(Input::Ready);
    let hidden = everything(&harness.core.redacted(NOTHING));
    assert!(!hidden.contains("hunter2") && hidden.contains("\"proxy\""), "{hidden}");
    assert!(everything(&harness.core.redacted(ALL)).contains("hunter2"));
    let names = harness.core.command_names();
    assert_eq!(names, [("proxy --token hunter2".to_owned(), "proxy".to_owned())]);
}

#[test]
fn t5_dependencies_point_from_what_something_waits_for() {
    let harness = Harness::new(plan(
        "{ jobs: [
             { name: 'db', exec: 'x', port: 1, health: { exec: 'c', interval: 1, ttl: 5 } },
             { name: 'web', exec: 'x', replicas: 2, when: { source: 'db', once: 'healthy' }, requires: [{ source: 'watch.db', bind: true }] },
             { name: 'each', exec: 'x', when: { source: 'SIGHUP' } },
           ], watches: [{ name: 'db', interval: 1 }] }",
    ));
    let graph = Graph::of(harness.core.plan(), Scope::Running);
    let name = |at: usize| graph.nodes[at].name.as_str();
    let found: Vec<_> = graph
        .edges
        .iter()
        .map(|edge| format!("{} -> {}: {:?} {}", name(edge.from), name(edge.to), edge.line, edge.label))
        .collect();
    assert_eq!(
        found,
        [
            "db -> watch.db: Effect advertised",
            "db -> web: Once healthy",
            "watch.db -> web: Each requires, bound",
            "SIGHUP -> each: Each ",
        ]
    );
}
