//! `analyze`: the critical path of the start.

use super::{json, run_err, run_ok, supervisor, wait};

#[test]
fn x12_analyze_shows_what_determined_when_the_container_was_ready() {
    let it = supervisor(
        "{ jobs: [
            { name: 'setup', exec: 'sleep 0.3' },
            { name: 'db', exec: ['sh', '-c', 'sleep 0.5; touch @/up; exec sleep 1000'], when: { source: 'setup', once: 'exitSuccess' },
              health: { exec: 'test -e @/up', interval: 1, ttl: 5 } },
            { name: 'app', exec: 'sleep 1000', requires: ['db'] },
            { name: 'side', exec: 'sleep 1000' },
            { name: 'hook', exec: 'true', when: { source: 'app', once: 'stopping' } },
          ] }",
    );
    wait(&it, "app", "running");
    let text = run_ok(&it, &["analyze"]);
    assert!(text.starts_with("ready "), "{text}");
    assert!(
        text.lines().next().unwrap().ends_with(" after the start of the supervisor; app was the last job"),
        "{text}"
    );
    let found = json(&run_ok(&it, &["analyze", "--format", "json"]));
    let steps: Vec<&str> =
        found["path"].as_array().unwrap().iter().map(|step| step["what"].as_str().unwrap()).collect();
    let expected =
        ["startup", "setup starts", "setup exits successfully", "db starts", "db is healthy", "app starts"];
    assert_eq!(steps, expected);
    let took = |step: usize| found["path"][step]["took"].as_f64().unwrap();
    // A start that is noticed late leaves less for the step after it.
    assert!(took(1) + took(2) >= 0.3 && took(3) + took(4) >= 0.5, "{text}");
    let total: f64 = (0..steps.len()).map(took).sum();
    assert!((total - found["ready"].as_f64().unwrap()).abs() < 0.001, "{text}");
}

#[test]
fn x12_analyze_says_when_the_journal_does_not_reach_back_to_the_start() {
    let it = supervisor(
        "{ jobs: [{ name: 'web', exec: 'sleep 1000' }, { name: 'each', exec: 'true', when: { source: 'SIGUSR2' } }] }",
    );
    wait(&it, "web", "running");
    run_ok(&it, &["analyze"]);
    // A thousand events later.
    crate::support::supervisor::wait_until("the journal is full", || {
        for _ in 0..50 {
            it.signal("-USR2");
        }
        run_ok(&it, &["events", "-n", "1"])
            .split_whitespace()
            .nth(1)
            .is_some_and(|id| id.parse().unwrap_or(0) > 1100)
    });
    let why = run_err(&it, &["analyze"]);
    assert!(
        why.starts_with(
            "the journal no longer reaches back to the start: the supervisor keeps the last 1024 events"
        ),
        "{why}"
    );
}
