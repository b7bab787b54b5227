//! W18, S10: what jobs require, and the order of stops.

use containerpilot_core::plan::{DependencyCondition, Job, RequiredSource, Requirement};

use super::support::{errors, faults, host, load_files, plan, shown};

/// A file with two jobs, a watch, and a job `app` with these fields.
fn with_app(fields: &str) -> String {
    format!(
        "{{ watches: [{{ name: 'cache', interval: 1 }}], jobs: [
            {{ name: 'db', exec: 'x', restarts: 'unlimited' }}, {{ name: 'migrate', exec: 'x' }},
            {{ name: 'app', exec: 'x', {fields} }}] }}"
    )
}

fn app(fields: &str) -> Job {
    plan(&with_app(fields)).jobs.remove(2)
}

fn job(name: &str, bind: bool) -> Requirement {
    Requirement { source: RequiredSource::Job(name.to_owned()), bind }
}

#[test]
fn w18_requirements_are_names_or_objects() {
    let cache = |bind| Requirement { source: RequiredSource::Watch("cache".to_owned()), bind };
    assert_eq!(app("requires: ['db', 'watch.cache']").requires, [job("db", false), cache(false)]);
    assert_eq!(app("requires: [{ source: 'db', bind: true }]").requires, [job("db", true)]);
    assert_eq!(
        app("requires: [{ source: 'db' }, 'migrate']").requires,
        [job("db", false), job("migrate", false)]
    );
    // The name of a watch that no job has is the watch.
    assert_eq!(app("requires: ['cache']").requires, [cache(false)]);
    assert!(app("requires: []").requires.is_empty() && app("").requires.is_empty());
}

#[test]
fn w18_a_source_is_there_by_its_kind() {
    let condition = |fields: &str| {
        plan(&format!("{{ jobs: [{{ name: 'a', {fields} }}] }}")).jobs[0].dependency_condition()
    };
    assert_eq!(condition("exec: 'x'"), DependencyCondition::Succeeded);
    assert_eq!(condition("exec: 'x', restarts: 3"), DependencyCondition::Succeeded);
    assert_eq!(condition("exec: 'x', restarts: 'unlimited'"), DependencyCondition::Running);
    assert_eq!(condition("exec: 'x', when: { interval: 1 }, restarts: 1"), DependencyCondition::Running);
    assert_eq!(condition("exec: 'x', when: { source: 'SIGHUP' }"), DependencyCondition::Running);
    assert_eq!(
        condition("exec: 'x', health: { exec: 'y', interval: 1, ttl: 5 }"),
        DependencyCondition::Healthy
    );
}

#[test]
fn w18_nonsense_is_refused() {
    for (fields, message) in [
        ("requires: 'db'", "`requires` must be a list, not the string \"db\""),
        ("requires: [1]", "each element of `requires` must be a string or an object, not the number 1"),
        ("requires: ['']", "a requirement has no name"),
        ("requires: [{ bind: true }]", "a requirement needs `source`"),
        ("requires: [{ source: 'db', bound: true }]", "unknown key `bound` in a requirement"),
        ("requires: ['db', { source: 'db', bind: true }]", "`db` is required twice"),
        ("requires: ['bd']", "unknown job or watch `bd`"),
        ("requires: ['watch.db']", "unknown watch `db`"),
        ("requires: ['file.upstreams']", "unknown file `upstreams`"),
        ("requires: ['lock.primary']", "unknown lock `primary`"),
        ("stopAfter: ['watch.cache']", "unknown job `watch.cache`"),
    ] {
        assert_eq!(errors(&with_app(fields)), [message], "{fields}");
    }
    let report = shown(&load_files(&[&with_app("requires: ['bd']")], &host()));
    assert!(report.contains("did you mean \"db\"?"), "{report}");
}

#[test]
fn w18_a_ring_of_requirements_is_a_fault() {
    let ring =
        "{ jobs: [{ name: 'a', exec: 'x', requires: ['b'] }, { name: 'b', exec: 'x', requires: ['a'] }] }";
    assert_eq!(faults(ring), ["these jobs wait for each other and can never run: a → b → a"]);
    let mixed = "{ jobs: [{ name: 'a', exec: 'x', requires: ['b'] },
        { name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }] }";
    assert_eq!(faults(mixed), ["these jobs wait for each other and can never run: a → b → a"]);
    let own = "{ jobs: [{ name: 'a', exec: 'x', requires: ['a'] }] }";
    assert_eq!(faults(own), ["the job `a` requires itself, so it can never run"]);
    let chain = "{ jobs: [{ name: 'a', exec: 'x', requires: ['b'] }, { name: 'b', exec: 'x' }] }";
    assert!(faults(chain).is_empty());
}

#[test]
fn s10_stop_after_names_jobs() {
    assert_eq!(app("stopAfter: ['db', 'migrate']").stop_after, ["db", "migrate"]);
}

#[test]
fn s10_a_ring_of_stops_is_a_fault() {
    let own = "{ jobs: [{ name: 'a', exec: 'x', stopAfter: ['a'] }] }";
    assert_eq!(faults(own), ["the job `a` cannot stop after itself"]);
    let ring =
        "{ jobs: [{ name: 'a', exec: 'x', stopAfter: ['b'] }, { name: 'b', exec: 'x', stopAfter: ['a'] }] }";
    assert_eq!(faults(ring), ["these jobs cannot stop one after the other: a after b after a"]);
    // `a` stops before what it requires.
    let mixed =
        "{ jobs: [{ name: 'a', exec: 'x', requires: ['b'], stopAfter: ['b'] }, { name: 'b', exec: 'x' }] }";
    assert_eq!(faults(mixed), ["these jobs cannot stop one after the other: a after b after a"]);
    let chain =
        "{ jobs: [{ name: 'a', exec: 'x', stopAfter: ['b'] }, { name: 'b', exec: 'x', stopAfter: ['c'] },
        { name: 'c', exec: 'x' }] }";
    assert!(faults(chain).is_empty());
}
