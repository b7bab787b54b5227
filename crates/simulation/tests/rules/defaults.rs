//! Defaults: what happens without a scenario.

use super::support::{CONSUL, WEB, run, times};

#[test]
fn x4_a_task_that_others_wait_for_succeeds_after_a_second() {
    let run = run(WEB, "{}");
    assert_eq!(times(&run, "setup starts"), [0]);
    assert_eq!(times(&run, "setup exitSuccess"), [1_000]);
    assert_eq!(times(&run, "web starts"), [1_000]);
}

#[test]
fn x4_a_service_is_healthy_at_its_first_check_and_runs_until_it_is_stopped() {
    let run = run(WEB, "{}");
    assert_eq!(times(&run, "web healthy"), [1_010]);
    assert_eq!(times(&run, "greet starts"), [1_010]);
    assert_eq!(times(&run, "web stopping"), [60_000]);
}

#[test]
fn x4_after_a_minute_the_supervisor_is_stopped_in_order() {
    let run = run(WEB, "{}");
    assert_eq!(run.stop_requested_at.map(super::support::millis), Some(60_000));
    assert_eq!(times(&run, "bye starts"), [60_000]);
    assert_eq!(times(&run, "web gets SIGTERM"), [61_000]);
    assert_eq!(run.exit.map(|(at, code)| (super::support::millis(at), code)), Some((61_100, 0)));
}

#[test]
fn x4_a_supervisor_that_exits_by_itself_is_not_stopped() {
    let text = r#"{ jobs: [{ name: "a", exec: "a" }, { name: "b", exec: "b", when: { source: "a", once: "exitSuccess" } }] }"#;
    let run = run(text, r#"{ jobs: [{ name: "b", runs: { lasts: "2s" } }] }"#);
    assert_eq!(run.exit.map(|(at, code)| (super::support::millis(at), code)), Some((3_000, 0)));
    assert_eq!(run.stop_requested_at, None);
}

#[test]
fn x4_w4_a_periodic_job_exits_before_its_next_tick() {
    let run = run(r#"{ jobs: [{ name: "cron", exec: "x", when: { interval: "400ms" } }] }"#, "{ until: 1 }");
    assert_eq!(times(&run, "cron starts"), [0, 400, 800]);
    assert_eq!(times(&run, "cron exitSuccess"), [200, 600, 1_000]);
}

#[test]
fn x4_a_watch_follows_the_job_that_advertises_its_service() {
    let run = run(CONSUL, "{}");
    // Two requests: a registration, and an update of the status.
    assert_eq!(times(&run, "web advertised"), [15]);
    assert_eq!(times(&run, "watch.web healthy"), [15]);
    assert_eq!(times(&run, "seen starts"), [15]);
}

#[test]
fn x4_a_watch_of_a_service_outside_sees_an_instance_after_a_second() {
    assert_eq!(times(&run(CONSUL, "{}"), "watch.db healthy"), [1_000]);
}

#[test]
fn x4_d7_a_watch_with_the_name_of_a_service_that_it_does_not_see_does_not_follow_it() {
    for kind in ["tag: 'green'", "key: 'colour'"] {
        let watch = format!("{{ name: 'web', interval: 5, {kind} }}");
        let config = CONSUL.replace("{ name: \"web\", interval: 5 }", &watch);
        assert_eq!(times(&run(&config, "{}"), "watch.web healthy"), [1_000], "{kind}");
    }
}

#[test]
fn x4_the_embedded_catalog_answers_at_once() {
    let embedded = CONSUL.replace("consul: \"localhost:8500\",", "");
    let run = run(&embedded, "{}");
    assert_eq!(times(&run, "web advertised"), [10]);
    assert_eq!(times(&run, "watch.web healthy"), [10]);
}

#[test]
fn x4_the_same_scenario_has_the_same_result() {
    assert_eq!(run(WEB, "{}").entries, run(WEB, "{}").entries);
}

#[test]
fn x4_a_day_of_twenty_jobs_takes_less_than_a_minute() {
    use std::fmt::Write as _;
    let mut jobs = String::new();
    for nth in 0..20 {
        let when = match nth {
            0 => String::new(),
            nth => format!("when: {{ source: 'job{}', once: 'healthy' }},", nth - 1),
        };
        write!(jobs, "{{ name: 'job{nth}', exec: 'x', {when} restarts: 'unlimited', health: {{ exec: 'ok', interval: 10, ttl: 30 }} }},").unwrap();
    }
    let began = std::time::Instant::now();
    let run = run(
        &format!("{{ jobs: [{jobs}] }}"),
        r#"{ until: "24h", jobs: [{ name: "job3", runs: { lasts: "10m", exit: 1 } }] }"#,
    );
    assert_eq!(run.histories.get("job3").unwrap().runs_at_end, 144);
    assert!(run.steps > 150_000, "{}", run.steps);
    // About 0.2 s on an idle machine; `benches/simulate.rs` measures it.
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn x4_an_endless_loop_at_one_instant_is_aborted() {
    let text = r#"{ jobs: [{ name: "a", exec: "a", restarts: "unlimited", restartBackoff: false }] }"#;
    let run = run(text, "{ jobs: [{ name: 'a', runs: { lasts: 0 } }] }");
    assert_eq!(run.abort, Some(containerpilot_simulation::timeline::Abort::NoTimePasses));
}
