//! D14: locks.

use std::time::Duration;

use containerpilot_config::diagnostics::Severity;
use containerpilot_core::event::{Code, Source};
use containerpilot_core::plan::{EventPattern, Lock, RequiredSource, Requirement};

use super::support::{errors, faults, messages, plan};

fn locks(locks: &str) -> String {
    format!("{{ consul: 'consul:8500', locks: [{locks}], jobs: [{{ name: 'app', exec: 'x' }}] }}")
}

fn app(fields: &str) -> String {
    format!(
        "{{ consul: 'consul:8500', locks: [{{ name: 'primary' }}], jobs: [{{ name: 'app', exec: 'x', {fields} }}] }}"
    )
}

#[test]
fn d14_locks_have_defaults() {
    let plan = plan(&locks("{ name: 'primary' }, { name: 'pool', key: 'a/b', ttl: '1m', slots: 3 }"));
    let lock = |name: &str, key: &str, ttl, slots| Lock {
        name: name.into(),
        key: key.into(),
        ttl: Duration::from_secs(ttl),
        slots,
    };
    assert_eq!(
        plan.locks,
        [lock("primary", "containerpilot/locks/primary", 15, 1), lock("pool", "a/b", 60, 3)]
    );
}

#[test]
fn d14_a_required_lock_is_always_bound() {
    let bound = [Requirement { source: RequiredSource::Lock("primary".into()), bind: true }];
    for fields in [
        "requires: ['lock.primary']",
        "requires: [{ source: 'lock.primary' }]",
        "requires: [{ source: 'lock.primary', bind: true }]",
    ] {
        assert_eq!(plan(&app(fields)).jobs[0].requires, bound, "{fields}");
    }
    let refused = errors(&app("requires: [{ source: 'lock.primary', bind: false }]"));
    assert_eq!(refused, ["`lock.primary` is always bound: without the lock the job must not run"]);
    assert_eq!(errors(&app("requires: ['lock.primry']")), ["unknown lock `primry`"]);
}

#[test]
fn d14_a_lock_is_a_source_of_events() {
    let plan = plan(&app("when: { source: 'lock.primary', each: 'acquired' }"));
    let expected = EventPattern { source: Source::Lock("primary".into()), code: Code::Acquired };
    assert_eq!(plan.jobs[0].when.patterns(), [expected]);
    assert_eq!(faults(&app("when: { source: 'lock.other', once: 'lost' }")), ["unknown lock `other`"]);
    assert_eq!(
        faults(&app("when: { source: 'lock.primary', once: 'healthy' }")),
        ["a lock never sends `healthy`"]
    );
}

#[test]
fn d14_nonsense_is_refused() {
    let range = "the `ttl` of a lock must be from 10s to 24h0m0s, as Consul demands";
    for (lock, message) in [
        ("{}", "a lock needs `name`"),
        ("{ name: 'a b' }", "`a b` is not a valid name of a lock"),
        ("{ name: 'a', key: '/a' }", "`/a` is not a valid key"),
        ("{ name: 'a', key: 'a/../b' }", "`a/../b` is not a valid key"),
        ("{ name: 'a', ttl: '9s' }", range),
        ("{ name: 'a', ttl: '25h' }", range),
        ("{ name: 'a' }, { name: 'a', key: 'b' }", "two locks are named `a`"),
        ("{ name: 'a', key: 'x' }, { name: 'b', key: 'x' }", "the locks `a` and `b` have the same key"),
        (
            "{ name: 'a', key: 'x', slots: 2 }, { name: 'b', key: 'x/y' }",
            "the locks `a` and `b` have the same key",
        ),
    ] {
        assert_eq!(errors(&locks(lock)), [message], "{lock}");
    }
    assert_eq!(errors(&locks("{ name: 'a', slots: 0 }")).len(), 1);
}

#[test]
fn d14_a_stop_time_that_does_not_fit_into_the_ttl_is_a_fault() {
    let slow = app("requires: ['lock.primary'], drain: '20s'");
    assert_eq!(
        faults(&slow)[..1],
        [
            "the jobs that require the lock `primary` take up to 25s to stop; with this `ttl` they get SIGKILL after 10.235s"
        ]
    );
    assert!(
        faults(&slow.replace("name: 'primary'", "name: 'primary', ttl: '36s'"))
            .iter()
            .all(|fault| !fault.contains("lock"))
    );
    // What is bound to the job stops first.
    let chain = app("requires: ['lock.primary'], restarts: 'unlimited' }, { name: 'b', exec: 'x', requires: [{ source: 'app', bind: true }], killAfter: '5s'")
        .replace("{ consul", "{ stopTimeout: 6, consul");
    assert!(faults(&chain)[0].contains("take up to 11s to stop"), "{:?}", faults(&chain));
}

#[test]
fn d14_a_local_lock_is_a_warning() {
    let local = app("requires: ['lock.primary'], drain: '20s'").replace("consul: 'consul:8500', ", "");
    let warnings = messages(&local, Severity::Warning);
    assert!(
        warnings.contains(&"without `consul`, each container has the lock `primary` for itself".to_owned())
    );
}
