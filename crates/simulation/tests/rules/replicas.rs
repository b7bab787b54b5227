//! W20: replicas in a simulation.

use super::support::{reloading, run, times, verdict};

const WEB: &str = r#"{ jobs: [
    { name: "web", exec: "web", replicas: 2, restarts: "unlimited", health: { exec: "ok", interval: 1, ttl: 5 } },
    { name: "proxy", exec: "proxy", restarts: "unlimited", when: { source: "web", once: "healthy" } },
] }"#;

#[test]
fn w20_a_scenario_restarts_replicas_one_at_a_time() {
    let world = r#"{ jobs: [{ name: "web-1", runs: [{}, { healthyAfter: "5s" }] }],
                     happens: [{ at: "20s", rollingRestart: "web" }] }"#;
    let run = run(WEB, world);
    let (first, second) = (times(&run, "web-1 starts"), times(&run, "web-2 starts"));
    assert_eq!((first.len(), second.len()), (2, 2));
    let healthy_again = times(&run, "web-1 healthy")[1];
    assert!(first[1] < healthy_again && healthy_again < second[1], "{first:?} {healthy_again} {second:?}");
}

#[test]
fn w20_a_scenario_changes_the_number_of_replicas() {
    let world = r#"happens: [{ at: "20s", scale: "web=3" }, { at: "30s", scale: "web=1" }, { at: "40s", stop: "web" }],"#;
    for expected in [
        r#"{ see: "web-3 starts", after: "20s", before: "21s" }"#,
        r#"{ see: "web-3 stopping", after: "30s", before: "31s" }"#,
        r#"{ see: "web-2 stopping", after: "30s", before: "31s" }"#,
        r#"{ see: "web-1 stopping", after: "40s", before: "41s" }"#,
        r#"{ see: "proxy starts", times: 1 }"#,
    ] {
        let (holds, happened) = verdict(WEB, world, expected);
        assert!(holds, "{expected}: {happened}");
    }
}

#[test]
fn w20_a_number_of_replicas_that_is_impossible_is_an_error() {
    let happens = |scale: &str| format!(r#"{{ happens: [{{ at: "1s", scale: "{scale}" }}] }}"#);
    for (scale, expected) in [
        ("web", "`web` is not NAME=NUMBER"),
        ("proxy=2", "`proxy` has no `replicas`"),
        ("web=1001", "at most 1000 replicas"),
    ] {
        let problems = reloading(WEB, &happens(scale), &[]).unwrap_err();
        assert!(problems.contains(expected), "{scale}: {problems}");
    }
}
