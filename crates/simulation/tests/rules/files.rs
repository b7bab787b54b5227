//! X4, D15: rendered files in a scenario.

use super::support::{reloading, run, times};

const CONFIG: &str = "{ consul: 'localhost', watches: [{ name: 'app', interval: 1 }],
    files: [{ name: 'out', template: '{{`{{ watch \"app\" }}`}}', to: '/out', test: 'check', timeout: '5s' },
            { name: 'plain', template: 'x', to: '/plain' }],
    jobs: [{ name: 'server', exec: 'server', requires: ['file.out'] }] }";

#[test]
fn x4_d15_files_follow_what_watches_see() {
    let run = run(
        CONFIG,
        "{ watches: [{ name: 'app', sees: [{ at: 5 }, { at: 8, instances: 2 }, { at: 9, instances: 2 }] }] }",
    );
    assert_eq!(times(&run, "file.plain changed"), [20]);
    assert_eq!(times(&run, "file.out changed"), [5_030, 8_030]);
    assert_eq!(times(&run, "server starts"), [5_030]);
}

#[test]
fn x4_d15_a_scenario_lets_renderings_and_tests_fail() {
    let world = "{ watches: [{ name: 'app', sees: [{ at: 1 }, { at: 10, instances: 2 }, { at: 20, instances: 3 }, { at: 30, instances: 4 }] }],
        files: [{ name: 'out', takes: '100ms', fails: { from: 5, to: 15 }, tests: { from: 19, to: 25, answer: 'hang' } }] }";
    let run = run(CONFIG, world);
    assert_eq!(times(&run, "file.out failed"), [10_100, 25_100]);
    assert_eq!(times(&run, "file.out changed"), [1_210, 30_210]);
}

#[test]
fn x4_d15_mistakes_in_a_scenario_are_reported() {
    for (world, message) in [
        ("{ files: [{ name: 'ot' }] }", "there is no file `ot`"),
        ("{ files: [{ name: 'plain', tests: {} }] }", "`plain` has no `test`"),
        ("{ files: [{ name: 'out' }, { name: 'out' }] }", "duplicate script for file `out`"),
        ("{ expect: [{ see: 'file.out healthy' }] }", "`healthy` cannot happen to `file.out`"),
    ] {
        let report = reloading(CONFIG, world, &[]).unwrap_err();
        assert!(report.contains(message), "{report}");
    }
}
