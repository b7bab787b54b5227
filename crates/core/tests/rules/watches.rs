//! Watches of every kind: which answers are events (E6, D7, D13).

use std::time::Duration;

use containerpilot_core::Input;
use containerpilot_core::answer::{Answer, Entries, Instance};
use containerpilot_core::ids::WatchIx;
use containerpilot_core::plan::Level;

use crate::harness::{Harness, plan};

fn harness() -> Harness {
    let mut harness = Harness::new(plan(
        "{ consul: 'localhost', jobs: [{ name: 'a', exec: 'a' }], watches: [{ name: 'db', interval: 1 }] }",
    ));
    harness.input(Input::Ready);
    harness
}

fn value(text: &str) -> Answer {
    Answer::Value(text.as_bytes().into())
}

/// The events that each answer causes.
fn events(answers: &[Answer]) -> Vec<Vec<String>> {
    let mut harness = harness();
    harness.take_events();
    let mut of = |answer: &Answer| {
        harness.answer(answer.clone());
        harness.take_events()
    };
    answers.iter().map(&mut of).collect()
}

const CHANGED: &str = "watch.db changed";
const HEALTHY: &str = "watch.db healthy";
const UNHEALTHY: &str = "watch.db unhealthy";

#[test]
fn e6_every_change_of_instances_also_tells_the_health() {
    let one = |port| Instance { id: "i".into(), address: "10.0.0.1".into(), port, ..Instance::default() };
    let set = |ports: &[u16]| Answer::Instances(ports.iter().map(|port| one(*port)).collect());
    let sent = events(&[set(&[]), set(&[1]), set(&[2, 1]), set(&[1, 2, 2]), set(&[])]);
    let empty: [&str; 0] = [];
    assert_eq!(sent[0], empty, "the first answer is a change only if it is not empty");
    assert_eq!(sent[1], [CHANGED, HEALTHY]);
    assert_eq!(sent[2], [CHANGED, HEALTHY]);
    assert_eq!(sent[3], empty, "the order does not matter");
    assert_eq!(sent[4], [CHANGED, UNHEALTHY]);
    let other = Answer::Instances(vec![Instance { id: "j".into(), ..one(1) }]);
    assert_eq!(events(&[set(&[1]), other])[1], [CHANGED, HEALTHY], "another instance at the same address");
}

#[test]
fn e6_tags_and_metadata_are_kept_up_to_date_without_an_event() {
    let mut harness = harness();
    harness.instances(1);
    harness.take_events();
    let mut tagged = Instance { id: "i0".into(), address: "10.0.0.9".into(), ..Instance::default() };
    tagged.tags.push("primary".into());
    tagged.meta.insert("zone".into(), "a".into());
    harness.answer(Answer::Instances(vec![tagged.clone()]));
    assert_eq!(harness.take_events(), [""; 0]);
    assert_eq!(harness.core.overview().watches[0].instances(), Some(&[tagged][..]));
}

#[test]
fn d13_a_value_is_healthy_while_it_is_there_and_changes_with_its_contents() {
    let sent = events(&[Answer::Absent, value("1"), value("1"), value("2"), Answer::Absent, value("")]);
    let empty: [&str; 0] = [];
    assert_eq!(sent[0], empty);
    assert_eq!(sent[1], [CHANGED, HEALTHY]);
    assert_eq!(sent[2], empty);
    assert_eq!(sent[3], [CHANGED], "its health has not changed");
    assert_eq!(sent[4], [CHANGED, UNHEALTHY]);
    assert_eq!(sent[5], [CHANGED, HEALTHY], "an empty file is there");
}

#[test]
fn d13_entries_change_with_their_names_and_contents() {
    let entries = |all: &[(&str, &str)]| {
        let all = all.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().into()));
        Answer::Entries(all.collect::<Entries>())
    };
    let sent = events(&[
        entries(&[]),
        entries(&[("a", "1")]),
        entries(&[("a", "2")]),
        entries(&[("b", "2")]),
        value("a file took the place of the directory"),
    ]);
    assert_eq!(sent[0], [CHANGED, HEALTHY], "an empty directory is there");
    assert!(sent[1..].iter().all(|sent| *sent == [CHANGED]), "{sent:?}");
}

#[test]
fn d13_a_peer_is_healthy_while_it_accepts() {
    let down = || Answer::Down("connection refused".into());
    let sent = events(&[down(), Answer::Up, Answer::Up, down(), Answer::Down("timed out".into())]);
    let empty: [&str; 0] = [];
    assert_eq!(sent, [&empty[..], &[CHANGED, HEALTHY], &empty, &[CHANGED, UNHEALTHY], &empty]);
}

#[test]
fn d13_the_body_of_a_peer_that_is_down_stays() {
    let down = || Answer::Down("503 Service Unavailable".into());
    let sent = events(&[value("1"), down(), down(), value("1"), down(), value("2")]);
    let empty: [&str; 0] = [];
    assert_eq!(sent[1], [UNHEALTHY]);
    assert_eq!(sent[2], empty);
    assert_eq!(sent[3], [HEALTHY], "its body is still the same");
    assert_eq!(sent[5], [CHANGED, HEALTHY]);
}

#[test]
fn d7_a_watch_that_cannot_be_answered_keeps_its_last_answer_and_is_logged_once() {
    let mut harness = harness();
    harness.answer(value("1"));
    harness.take_events();
    harness.take_output();
    for error in ["no resolver", "no resolver", "refused"] {
        harness.seconds(1);
        harness.input(Input::Watched { watch: WatchIx(0), answer: Err(error.into()) });
    }
    assert_eq!(harness.take_events(), [""; 0]);
    assert_eq!(harness.level_of("watch.db is not answered: no resolver"), Some(Level::Warn));
    let watch = harness.core.overview().watches.remove(0);
    assert_eq!(watch.answer, Some(value("1")));
    let trouble = watch.trouble.unwrap();
    assert_eq!((trouble.error.as_str(), harness.now.since(trouble.since).as_secs()), ("refused", 2));
    let explained = harness.core.explain_watch(WatchIx(0), None).unwrap().sentences;
    assert_eq!(explained[0], "watch.db: 1 byte (as of 2s ago: refused)");
    harness.answer(value("1"));
    assert_eq!(harness.take_events(), [""; 0]);
    assert!(harness.core.overview().watches[0].trouble.is_none());
    assert_eq!(harness.level_of("watch.db is answered again"), Some(Level::Info));
}

/// The variables of the last process that begin with a prefix, without it.
fn variables(harness: &Harness, prefix: &str) -> Vec<String> {
    let all =
        harness.environment.iter().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)));
    all.map(|(name, value)| format!("{name}={value}")).collect()
}

#[test]
fn d12_every_process_gets_what_watches_have_found_and_what_its_event_has_changed() {
    let mut harness = Harness::new(plan(
        "{ consul: 'localhost', watches: [{ name: 'my-db', interval: 1 }], jobs: [
            { name: 'main', exec: 'main', restarts: 'unlimited' },
            { name: 'seen', exec: 'seen', when: { source: 'watch.my-db', each: 'changed' } },
        ] }",
    ));
    harness.input(Input::Ready);
    let prefix = "CONTAINERPILOT_WATCH_";
    assert_eq!(variables(&harness, prefix), [""; 0], "before the first answer");
    let instance = |address: &str, port| Instance {
        id: format!("{address}-{port}"),
        address: address.into(),
        port,
        ..Instance::default()
    };
    let set = |all: &[(&str, u16)]| {
        Answer::Instances(all.iter().map(|(address, port)| instance(address, *port)).collect())
    };
    harness.answer(set(&[]));
    harness.exit("main", 0);
    assert_eq!(variables(&harness, prefix), ["MY_DB="]);
    harness.answer(set(&[("10.0.0.2", 80), ("10.0.0.1", 80), ("::1", 81)]));
    assert!(harness.has_process("seen"));
    let all = "10.0.0.1:80,10.0.0.2:80,[::1]:81";
    assert_eq!(
        variables(&harness, prefix),
        [format!("MY_DB={all}"), format!("MY_DB_ADDED={all}"), "MY_DB_REMOVED=".into()]
    );
    harness.exit("main", 0);
    harness.pass(Duration::from_secs(1));
    assert_eq!(variables(&harness, prefix), [format!("MY_DB={all}")], "the watch has not started this one");
    // While the job runs, it is triggered again.
    harness.answer(set(&[("10.0.0.1", 80), ("10.0.0.3", 80)]));
    harness.exit("seen", 0);
    assert_eq!(
        variables(&harness, prefix),
        ["MY_DB=10.0.0.1:80,10.0.0.3:80", "MY_DB_ADDED=10.0.0.3:80", "MY_DB_REMOVED=10.0.0.2:80,[::1]:81"]
    );
}

#[test]
fn d12_a_value_is_a_variable_if_it_is_a_text_that_the_kernel_accepts() {
    let mut harness = Harness::new(plan(
        "{ consul: 'localhost', watches: [{ name: 'file', interval: 1 }], jobs: [
            { name: 'seen', exec: 'seen', when: { source: 'watch.file', each: 'changed' } }] }",
    ));
    harness.input(Input::Ready);
    let mut found = |answer: Answer| {
        harness.answer(answer);
        let found = variables(&harness, "CONTAINERPILOT_WATCH_FILE");
        harness.exit("seen", 0);
        (found, harness.level_of("too many for a variable"))
    };
    assert_eq!(found(value("a b\n")), (vec!["=a b".to_owned()], None));
    assert_eq!(found(value("a\0b")), (vec![], None));
    assert_eq!(found(Answer::Value([0xff].as_slice().into())), (vec![], None));
    let longest = "x".repeat(64 * 1024);
    assert_eq!(found(value(&longest)), (vec![format!("={longest}")], None));
    assert_eq!(found(value(&format!("{longest}x"))), (vec![], Some(Level::Warn)));
    let entries = ["b", "a"].map(|name| (name.to_owned(), b"1".as_slice().into()));
    assert_eq!(
        found(Answer::Entries(entries.into())).0,
        ["=a,b".to_owned(), "_ADDED=a,b".into(), "_REMOVED=".into()]
    );
    assert_eq!(found(Answer::Absent).0, ["_ADDED=".to_owned(), "_REMOVED=a,b".into()]);
}

#[test]
fn d12_all_watches_together_leave_room_in_the_environment() {
    let watches: Vec<String> = (0..20).map(|nth| format!("{{ name: 'w{nth}', interval: 1 }}")).collect();
    let mut harness = Harness::new(plan(&format!(
        "{{ consul: 'localhost', watches: [{}], jobs: [{{ name: 'a', exec: 'a', restarts: 'unlimited' }}] }}",
        watches.join(", ")
    )));
    harness.input(Input::Ready);
    for nth in 0..20 {
        let answer = Ok(value(&"x".repeat(64 * 1024)));
        harness.input(Input::Watched { watch: WatchIx(nth), answer });
    }
    harness.exit("a", 0);
    assert_eq!(variables(&harness, "CONTAINERPILOT_WATCH_").len(), 8);
}
