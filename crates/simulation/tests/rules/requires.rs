//! W18, S10: requirements in a simulation.

use super::support::{run, times, verdict};

const BOUND: &str = r#"{ jobs: [
    { name: "db", exec: "db", restarts: "unlimited", health: { exec: "ok", interval: 1, ttl: 5 } },
    { name: "migrate", exec: "migrate", requires: ["db"] },
    { name: "app", exec: "app", restarts: "unlimited", requires: [{ source: "db", bind: true }, "migrate"] },
] }"#;

#[test]
fn w18_jobs_start_when_their_requirements_hold() {
    let run = run(BOUND, "{}");
    assert_eq!(times(&run, "db healthy"), [10]);
    assert_eq!(times(&run, "migrate starts"), [10]);
    assert_eq!(times(&run, "app starts"), [1_010]);
}

#[test]
fn w18_a_bound_job_comes_back_with_its_source() {
    let world = r#"jobs: [{ name: "db", checks: { from: "10s", to: "20s" } }],"#;
    let (holds, happened) = verdict(BOUND, world, r#"{ see: "app starts", times: 2, before: "25s" }"#);
    assert!(holds, "{happened}");
    let (holds, happened) = verdict(BOUND, world, r#"{ see: "app stopping", after: "10s", before: "12s" }"#);
    assert!(holds, "{happened}");
}

#[test]
fn s10_a_shutdown_stops_requirers_first() {
    let run = run(BOUND, "{}");
    assert_eq!(times(&run, "app gets SIGTERM"), [60_000]);
    assert_eq!(times(&run, "db gets SIGTERM"), [60_100]);
}
