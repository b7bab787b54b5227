//! Rendered files: when they are rendered, tested and installed, and what that means for jobs (D15).

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::answer::{Answer, Instance};
use containerpilot_core::event::{Code, Source};
use containerpilot_core::files::FileStatus;
use containerpilot_core::ids::{FileIx, JobIx, LockIx, WatchIx};
use containerpilot_core::input::RenderedText::{New, Same};
use containerpilot_core::lock_report::LockReport;
use containerpilot_core::plan::{
    Command, EventPattern, FileTest, Plan, RenderedFile, Repeat, RequiredSource, Requirement, Trigger, Word,
};
use containerpilot_core::{Input, Request, RequestId};

use crate::harness::{Harness, plan};

/// A file with the watches of [`plan_with`].
pub(crate) fn file() -> RenderedFile {
    RenderedFile {
        name: "f".into(),
        template: Some(b"x".as_slice().into()),
        template_name: "f.tmpl".into(),
        to: "/etc/f".into(),
        mode: 0o644,
        user: None,
        group: None,
        test: None,
        debounce: Duration::ZERO,
        watches: vec!["app".into()],
        secrets: [].into(),
    }
}

pub(crate) fn tested() -> RenderedFile {
    let command = Command { program: Word::from("check"), arguments: Vec::new() };
    RenderedFile { test: Some(FileTest { command, timeout: Duration::from_secs(10) }), ..file() }
}

fn debounced() -> RenderedFile {
    RenderedFile { debounce: Duration::from_secs(1), ..file() }
}

/// Jobs `server`, which requires the file, and `hup`, which runs at each of its changes.
pub(crate) fn plan_with(file: RenderedFile) -> Plan {
    let mut plan = plan(
        "{ consul: 'localhost', watches: [{ name: 'app', interval: 1 }], jobs: [
             { name: 'server', exec: 'server', restarts: 'unlimited' },
             { name: 'hup', exec: 'hup', when: { source: 'watch.app', each: 'changed' } }] }",
    );
    plan.jobs[0].requires = vec![Requirement { source: RequiredSource::File("f".into()), bind: true }];
    let event = EventPattern { source: Source::File("f".into()), code: Code::Changed };
    plan.jobs[1].when.trigger = Trigger::Event { event, repeat: Repeat::Each };
    plan.files = vec![file];
    plan
}

fn running(file: RenderedFile) -> Harness {
    let mut harness = Harness::new(plan_with(file));
    harness.input(Input::Ready);
    harness
}

/// A file that was rendered and installed.
fn installed(file: RenderedFile) -> Harness {
    let mut harness = running(file);
    harness.instances(1);
    harness.rendered(Ok(New));
    if harness.running_checks() > 0 {
        harness.finish_check(true);
    }
    harness.installed(Ok(()));
    harness.exit("hup", 0);
    harness.take_output();
    harness
}

fn status(harness: &Harness) -> FileStatus {
    harness.core.overview().files[0].status
}

fn explained(harness: &Harness) -> String {
    harness.core.explain_file(FileIx(0)).unwrap().sentences.join("\n")
}

#[test]
fn d15_a_file_is_rendered_when_its_watches_have_answered() {
    let mut harness = running(file());
    assert_eq!(harness.take_effects(), [""; 0]);
    assert_eq!(status(&harness), FileStatus::Waiting);
    assert!(explained(&harness).starts_with("file.f: waiting for the first answer of watch.app"));
    // An answer without instances is one, too.
    harness.instances(0);
    assert_eq!(harness.take_effects(), ["render f"]);
    let data = harness.rendered(Ok(New));
    assert_eq!(data["app"], Answer::Instances(Vec::new()));
    assert_eq!(harness.take_output(), ["install"]);
    harness.installed(Ok(()));
    assert_eq!(harness.take_output(), ["event file.f changed", "spawn hup", "spawn server"]);
    assert_eq!(status(&harness), FileStatus::Rendered);
    assert!(harness.log.contains(&"file.f: wrote /etc/f".to_owned()));
}

#[test]
fn d15_a_file_without_watches_is_rendered_at_startup() {
    let mut harness = running(RenderedFile { watches: Vec::new(), ..file() });
    assert_eq!(harness.take_effects(), ["render f"]);
    harness.rendered(Ok(Same));
    // It cannot change any more, so the job that waits for a change is complete (W10).
    assert_eq!(harness.take_effects(), ["spawn server"]);
    assert!(harness.status("hup").state.has_ended());
}

#[test]
fn d15_an_equal_text_counts_as_rendered_and_sends_nothing() {
    let mut harness = running(tested());
    harness.instances(1);
    harness.take_output();
    harness.rendered(Ok(Same));
    assert_eq!(harness.take_output(), ["spawn server"]);
    assert!(explained(&harness).contains("written 0 times"), "{}", explained(&harness));
}

#[test]
fn d15_changes_during_a_rendering_lead_to_exactly_one_more() {
    let mut harness = running(tested());
    harness.instances(1);
    harness.instances(2);
    harness.rendered(Ok(New));
    harness.instances(3);
    harness.finish_check(true);
    harness.instances(4);
    assert_eq!(harness.take_effects(), ["render f", "test f", "install"]);
    harness.installed(Ok(()));
    assert_eq!(harness.take_effects(), ["render f", "spawn hup", "spawn server"]);
    let data = harness.rendered(Ok(Same));
    assert!(matches!(&data["app"], Answer::Instances(list) if list.len() == 4));
    assert_eq!(harness.take_effects(), [""; 0]);
}

#[test]
fn d15_tags_that_are_not_an_event_of_the_watch_are_rendered() {
    let mut harness = installed(file());
    let mut tagged = Instance { id: "i0".into(), address: "10.0.0.9".into(), ..Instance::default() };
    tagged.tags.push("primary".into());
    harness.answer(Answer::Instances(vec![tagged.clone()]));
    assert_eq!(harness.take_output(), ["render f"]);
    harness.rendered(Ok(Same));
    harness.answer(Answer::Instances(vec![tagged]));
    assert_eq!(harness.take_output(), [""; 0]);
}

#[test]
fn d15_a_failed_rendering_keeps_the_file_and_is_tried_at_the_next_change() {
    let mut harness = installed(file());
    harness.instances(2);
    harness.take_output();
    harness.rendered(Err("f.tmpl:3:7: unknown"));
    assert_eq!(harness.take_output(), ["event file.f failed"]);
    assert!(harness.log.contains(&"file.f: /etc/f is not changed: f.tmpl:3:7: unknown".to_owned()));
    assert_eq!(status(&harness), FileStatus::Failed);
    assert!(explained(&harness).contains("failed 0s ago: f.tmpl:3:7: unknown"), "{}", explained(&harness));
    // A bound job keeps running: the old file is still there.
    assert!(harness.has_process("server"));
    harness.seconds(3600);
    assert_eq!(harness.take_output(), [""; 0]);
    harness.instances(3);
    harness.rendered(Ok(New));
    harness.installed(Err("No space left on device"));
    harness.instances(4);
    harness.rendered(Ok(New));
    harness.installed(Ok(()));
    let mut output = harness.take_output();
    output.retain(|line| !line.starts_with("event watch.app"));
    let failed = ["render f", "install", "event file.f failed"];
    assert_eq!(output[..3], failed);
    assert_eq!(output[3..], ["render f", "install", "event file.f changed", "spawn hup"]);
    assert_eq!(status(&harness), FileStatus::Rendered);
}

#[test]
fn d15_what_the_system_refuses_is_tried_again_at_growing_delays_and_logged_once() {
    let mut harness = running(file());
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.take_output();
    harness.installed(Err("No space left on device"));
    assert_eq!(harness.take_output(), ["event file.f failed"]);
    assert_eq!(status(&harness), FileStatus::Failed);
    assert!(explained(&harness).contains("  tried again in 1s\n"), "{}", explained(&harness));
    for delay in [1, 2, 4, 8, 16, 32, 60, 60] {
        harness.seconds(delay - 1);
        assert_eq!(harness.take_output(), [""; 0], "{delay}");
        harness.seconds(1);
        assert_eq!(harness.take_output(), ["render f"], "{delay}");
        harness.refused("No space left on device");
        assert_eq!(harness.take_output(), [""; 0], "{delay}");
    }
    let told = harness.log.iter().filter(|entry| entry.contains("is not changed")).count();
    assert_eq!(told, 1, "{:?}", harness.log);
    assert!(!harness.has_process("server"), "it requires the file");
    // Another reason is logged.
    harness.seconds(60);
    harness.refused("Read-only file system");
    assert_eq!(harness.take_output(), ["render f", "event file.f failed"]);
    // A change does not wait for the next attempt.
    harness.instances(2);
    harness.rendered(Ok(New));
    harness.installed(Ok(()));
    let output = harness.take_output();
    assert!(output.contains(&"event file.f changed".to_owned()), "{output:?}");
    assert!(harness.has_process("server"));
    harness.seconds(3600);
    assert_eq!(harness.take_output(), [""; 0]);
    // The next time it begins again with one second.
    harness.instances(3);
    harness.refused("No space left on device");
    harness.take_output();
    harness.seconds(1);
    assert_eq!(harness.take_output(), ["render f"]);
}

#[test]
fn d15_r3_a_reload_tries_failed_files_again() {
    let mut harness = running(file());
    harness.instances(1);
    harness.rendered(Err("f.tmpl:3:7: unknown"));
    harness.take_output();
    reload(&mut harness, plan_with(file()));
    assert_eq!(harness.take_effects(), ["plan replaced", "render f"]);
    harness.refused("No space left on device");
    harness.take_output();
    reload(&mut harness, plan_with(file()));
    assert_eq!(harness.take_effects(), ["plan replaced", "render f"]);
    harness.rendered(Ok(Same));
    reload(&mut harness, plan_with(file()));
    harness.take_effects();
    harness.seconds(3600);
    assert_eq!(harness.take_effects(), [""; 0]);
}

#[test]
fn d15_nothing_is_tried_again_after_a_shutdown_has_started() {
    let mut harness = running(file());
    harness.instances(1);
    harness.refused("No space left on device");
    harness.input(Input::Signal(containerpilot_core::plan::Signal::TERM));
    harness.take_output();
    harness.seconds(3600);
    assert!(!harness.take_output().contains(&"render f".to_owned()));
}

#[test]
fn d15_a_text_that_its_test_refuses_is_discarded() {
    let mut harness = running(tested());
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.take_output();
    assert_eq!(status(&harness), FileStatus::Testing);
    harness.finish_check(false);
    assert_eq!(harness.take_output(), ["event file.f failed", "discard"]);
    assert!(harness.log.contains(&"file.f: /etc/f is not changed: test: it failed".to_owned()));
    assert!(!harness.has_process("server"));
    let why = harness.core.explain(JobIx(0), None).sentences().join("\n");
    assert!(why.contains("file.f, which could not be rendered: test: it failed"), "{why}");
}

#[test]
fn d15_h3_a_test_that_the_supervisor_cannot_run_is_tried_again() {
    let mut harness = running(tested());
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.take_output();
    harness.cannot_check();
    assert_eq!(harness.take_output(), ["event file.f failed", "discard"]);
    harness.seconds(1);
    assert_eq!(harness.take_output(), ["render f"]);
    harness.rendered(Ok(New));
    harness.take_output();
    harness.cannot_check();
    assert_eq!(harness.take_output(), ["discard"], "the same failure is one event");
    harness.seconds(2);
    harness.rendered(Ok(New));
    harness.finish_check(true);
    harness.installed(Ok(()));
    assert!(harness.has_process("server"));
}

#[test]
fn d15_a_test_that_hangs_is_cancelled_after_its_timeout() {
    let mut harness = running(tested());
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.seconds(9);
    harness.take_output();
    harness.seconds(1);
    assert_eq!(harness.take_output(), ["event file.f failed", "cancel check", "discard"]);
    assert!(harness.log.iter().any(|line| line.ends_with("test: timeout after 10s")));
    // Its late result means nothing.
    harness.finish_check(true);
    assert_eq!(harness.take_output(), [""; 0]);
}

#[test]
fn d15_debounce_waits_until_the_inputs_are_calm_but_not_forever() {
    let mut harness = running(debounced());
    harness.instances(1);
    assert_eq!(harness.take_effects(), ["render f"], "the first rendering is not delayed");
    harness.rendered(Ok(New));
    harness.installed(Ok(()));
    harness.take_output();
    harness.instances(2);
    assert_eq!(status(&harness), FileStatus::Debouncing);
    harness.millis(900);
    harness.instances(3);
    harness.millis(900);
    assert_eq!(harness.take_effects(), [""; 0]);
    harness.millis(100);
    assert_eq!(harness.take_effects(), ["render f"]);
    harness.rendered(Ok(Same));
    // Inputs that change all the time: four times the debounce.
    let start = harness.now;
    for count in 4.. {
        harness.instances(count);
        harness.millis(500);
        if !harness.take_effects().is_empty() {
            break;
        }
    }
    assert_eq!(harness.now.since(start), Duration::from_secs(4));
}

#[test]
fn d15_nothing_is_rendered_after_a_shutdown_has_started() {
    let mut harness = running(tested());
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_output().last().map(String::as_str), Some("exit 0"));
    let mut harness = running(file());
    harness.instances(1);
    harness.signal(15);
    assert_eq!(harness.exit, Some(0), "a rendering does not delay the exit");
}

fn reload(harness: &mut Harness, plan: Plan) {
    harness.input(Input::Request { id: RequestId(1), request: Request::Reload(Box::new(plan)) });
}

#[test]
fn d15_r3_a_reload_renders_changed_files_only_and_restarts_no_job() {
    let mut harness = installed(file());
    let mut moved = plan_with(file());
    moved.logging.level = containerpilot_core::plan::Level::Debug;
    moved.files.insert(0, RenderedFile { name: "g".into(), to: "/etc/g".into(), ..file() });
    reload(&mut harness, moved.clone());
    assert_eq!(harness.take_effects(), ["plan replaced", "render g"]);
    harness.rendered(Ok(Same));
    moved.files[1].mode = 0o600;
    reload(&mut harness, moved.clone());
    assert_eq!(harness.take_effects(), ["plan replaced", "render f"]);
    // Another one, while it is rendered: its result is that of nothing.
    moved.files[1].mode = 0o640;
    reload(&mut harness, moved.clone());
    harness.take_output();
    harness.rendered(Ok(New));
    assert_eq!(harness.take_output(), ["discard"]);
    harness.rendered(Ok(New));
    assert_eq!(harness.take_output(), ["install"]);
    harness.installed(Ok(()));
    assert_eq!(harness.take_output(), ["event file.f changed", "spawn hup"]);
    assert!(harness.has_process("server"));
}

#[test]
fn d15_r3_a_removed_file_is_not_tested_any_more() {
    let mut harness = running(RenderedFile { debounce: Duration::from_secs(1), ..tested() });
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.take_output();
    let mut removed = plan_with(file());
    removed.files.clear();
    removed.jobs[0].requires.clear();
    reload(&mut harness, removed);
    let effects = harness.take_effects();
    assert!(effects.contains(&"cancel check".to_owned()) && effects.contains(&"discard".to_owned()));
    harness.seconds(60);
    harness.finish_check(true);
}

#[test]
fn d15_r3_a_changed_watch_answers_again_before_a_file_is_rendered() {
    let mut harness = installed(file());
    let mut other = plan_with(file());
    other.watches[0].interval = Duration::from_secs(7);
    other.logging.level = containerpilot_core::plan::Level::Debug;
    reload(&mut harness, other);
    assert_eq!(harness.take_effects(), ["plan replaced"]);
    harness.input(Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Instances(Vec::new())) });
    assert_eq!(harness.take_effects(), ["render f"]);
}

#[test]
fn d15_r3_a_new_job_gets_the_event_of_a_file_that_holds() {
    let followers = || {
        let mut plan = plan_with(file());
        for (name, code) in [("late", Code::Changed), ("sad", Code::Failed)] {
            let mut job = plan.jobs[1].clone();
            let event = EventPattern { source: Source::File("f".into()), code };
            (job.name, job.when.trigger) = (name.into(), Trigger::Event { event, repeat: Repeat::Once });
            plan.jobs.push(job);
        }
        plan
    };
    let spawned = |harness: &mut Harness| {
        harness.take_output();
        reload(harness, followers());
        let effects = harness.take_effects();
        (effects.contains(&"spawn late".into()), effects.contains(&"spawn sad".into()))
    };
    let mut waiting = running(file());
    assert_eq!(spawned(&mut waiting), (false, false));
    assert_eq!(spawned(&mut installed(file())), (true, false));
    let mut failed = running(file());
    failed.instances(1);
    failed.rendered(Err("f.tmpl:3:7: unknown"));
    assert_eq!(spawned(&mut failed), (false, true));
    // A text that was there already is no change.
    let mut same = running(file());
    same.instances(1);
    same.rendered(Ok(Same));
    assert_eq!(spawned(&mut same), (false, false));
}

#[test]
fn d15_w20_a_reload_during_a_change_of_replicas_tries_failed_files_again() {
    let replicas = || {
        let jobs = "[{ name: 'web', exec: 'x', replicas: 2 }]";
        let text =
            format!("{{ consul: 'localhost', watches: [{{ name: 'app', interval: 1 }}], jobs: {jobs} }}");
        Plan { files: vec![file()], ..plan(&text) }
    };
    let mut harness = Harness::new(replicas());
    harness.input(Input::Ready);
    harness.instances(1);
    harness.rendered(Err("f.tmpl:3:7: unknown"));
    harness.take_output();
    harness.input(Input::Request { id: RequestId(1), request: Request::Scale("web".into(), 1) });
    assert_eq!(harness.take_effects(), ["kill web-2 15"]);
    reload(&mut harness, replicas());
    harness.exit_on("web-2", 15);
    assert!(harness.take_effects().contains(&"render f".to_owned()));
}

#[test]
fn r3_t3_events_of_sources_that_a_reload_keeps_are_counted_on() {
    let with_lock = |more: &str| {
        let text = format!(
            "{{ consul: 'localhost', watches: [{more} {{ name: 'app', interval: 1 }}], \
               locks: [{{ name: 'primary', ttl: '20s' }}], jobs: [{{ name: 'x', exec: 'x' }}, {{ name: 'once', exec: 'x' }}] }}"
        );
        Plan { files: vec![file()], ..plan(&text) }
    };
    let mut harness = Harness::new(with_lock(""));
    harness.input(Input::Ready);
    harness.instances(1);
    harness.rendered(Ok(New));
    harness.installed(Ok(()));
    let report = LockReport::Held { fencing: 1, until: harness.now + Duration::from_secs(20) };
    harness.input(Input::Lock { lock: LockIx(0), report });
    let counts = |harness: &Harness| {
        let events = harness.core.overview().events.into_iter();
        events.map(|one| (format!("{} {}", one.source, one.code), one.count)).collect::<BTreeMap<_, _>>()
    };
    harness.exit("once", 0);
    let before = counts(&harness);
    assert_eq!(before.len(), 8, "{before:?}");
    // The watch has another place now.
    reload(&mut harness, with_lock("{ name: 'new', interval: 1 },"));
    assert_eq!(counts(&harness), before);
}
