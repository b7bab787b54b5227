//! X4, D13: watches of other kinds than services in a scenario.

use super::support::{reloading, run, times};

const CONFIG: &str = "{ watches: [{ name: 'port', tcp: 'db:5432', interval: 1 },
        { name: 'flags', file: '/etc/flags', interval: 1 }],
    jobs: [{ name: 'app', exec: 'app', requires: ['watch.port'] },
        { name: 'each', exec: 'job', when: { source: 'watch.flags', each: 'changed' } }] }";

#[test]
fn x4_d13_a_peer_is_up_or_down() {
    let run = run(
        CONFIG,
        "{ watches: [{ name: 'port', sees: [{ at: 3 }, { at: 5, up: false }, { at: 8, up: true }] }] }",
    );
    assert_eq!(times(&run, "watch.port healthy"), [3_000, 8_000]);
    assert_eq!(times(&run, "watch.port unhealthy"), [5_000]);
    assert_eq!(times(&run, "watch.port changed"), [3_000, 5_000, 8_000]);
    assert_eq!(times(&run, "app starts"), [3_000]);
}

#[test]
fn x4_d13_a_file_changes_with_its_value() {
    let run = run(
        CONFIG,
        "{ watches: [{ name: 'flags', sees: [{ at: 2, value: 'a' }, { at: 4, value: 'b' }, { at: 6, value: 'b' },
            { at: 7, up: false }, { at: 9, value: 'b' }] }],
           jobs: [{ name: 'each', runs: { lasts: '10ms' } }] }",
    );
    assert_eq!(times(&run, "watch.flags changed"), [2_000, 4_000, 7_000, 9_000]);
    assert_eq!(times(&run, "watch.flags unhealthy"), [7_000]);
    assert_eq!(times(&run, "watch.flags healthy"), [2_000, 9_000]);
    assert_eq!(times(&run, "each starts"), [2_000, 4_000, 7_000, 9_000]);
}

#[test]
fn x4_d13_keys_of_another_kind_are_refused() {
    for (world, message) in [
        ("{ watches: [{ name: 'port', sees: { value: 'x' } }] }", "`port` has no value"),
        ("{ watches: [{ name: 'port', sees: { instances: 2 } }] }", "`port` has no instances"),
    ] {
        let report = reloading(CONFIG, world, &[]).unwrap_err();
        assert!(report.contains(message), "{report}");
    }
}
