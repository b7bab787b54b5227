//! Findings of `--explore`.

use containerpilot_simulation::explore::{Explorer, Finding, Found, Seed};
use containerpilot_simulation::runner::simulate;
use containerpilot_simulation::scenario::Scenario;

use super::support::{WEB, plan, scenario};

fn found(config: &str) -> Vec<Found> {
    let plan = plan(config);
    Explorer::new(&plan, &Scenario::default()).explore(1, 150)
}

fn problems(config: &str) -> Vec<Finding> {
    found(config).into_iter().filter(Found::is_problem).map(|found| found.finding).collect()
}

const CHECKED: &str = "health: { exec: 'ok', interval: 5, ttl: 15 }";

#[test]
fn x4_a_correct_configuration_has_no_problem() {
    assert_eq!(problems(WEB), []);
}

#[test]
fn x4_a_dependency_cycle_is_found() {
    let ring = format!(
        "{{ jobs: [{{ name: 'a', exec: 'a', when: {{ source: 'b', once: 'healthy' }}, {CHECKED} }},
                   {{ name: 'b', exec: 'b', when: {{ source: 'a', once: 'healthy' }}, {CHECKED} }},
                   {{ name: 'c', exec: 'c' }}] }}"
    );
    let names = ["a", "b"].map(|name| Finding::WaitsForever(name.into()));
    let never = ["a", "b"].map(|name| Finding::NeverStarts(name.into()));
    assert_eq!(problems(&ring), names.into_iter().chain(never).collect::<Vec<_>>());
    assert!(found(&ring)[0].faults.is_empty());
}

#[test]
fn x4_s15_a_hook_that_takes_longer_than_its_time_is_found() {
    let slow = "{ stopTimeout: '3s', jobs: [{ name: 'web', exec: 'web', restarts: 'unlimited' },
        { name: 'one', exec: 'one', when: { source: 'web', once: 'stopping' } },
        { name: 'two', exec: 'two', when: { source: 'one', once: 'stopped' } },
        { name: 'three', exec: 'three', timeout: '500ms', when: { source: 'web', once: 'stopped' } }] }";
    assert!(problems(slow).contains(&Finding::KilledAtStopTimeout("three".into())), "{:?}", problems(slow));
}

#[test]
fn x4_a_finding_that_needs_a_failure_is_a_consequence_with_the_fewest_faults() {
    let all = found(WEB);
    let waits = all.iter().find(|found| found.finding == Finding::WaitsForever("greet".into())).unwrap();
    assert!(!waits.is_problem());
    assert_eq!(waits.faults.len(), 1);
    assert!(waits.variations > 1);
}

#[test]
fn x4_a_seed_reproduces_the_world_of_a_finding() {
    let plan = plan(WEB);
    let explorer = Explorer::new(&plan, &Scenario::default());
    for found in explorer.explore(7, 100) {
        let seed: Seed = found.seed.to_string().parse().unwrap();
        assert_eq!(seed, found.seed);
        assert_eq!(explorer.faults(seed), found.faults);
        let run = simulate(&plan, &explorer.scenario(seed));
        if let Finding::WaitsForever(job) = &found.finding {
            assert_eq!(run.last.get(job).unwrap().word, "waiting", "{seed}");
        }
    }
    assert_eq!("1".parse::<Seed>(), Err(()));
    assert_eq!("1.2.3.4".parse::<Seed>(), Err(()));
}

#[test]
fn x4_a_job_that_starts_in_no_world_is_found() {
    let text = "{ jobs: [{ name: 'a', exec: 'a', restarts: 'unlimited' }, { name: 'b', exec: 'b', when: { source: 'a', once: 'exitSuccess' } },
        { name: 'c', exec: 'c', when: { source: 'nobody', once: 'exitFailed' } }] }";
    assert!(problems(text).contains(&Finding::NeverStarts("c".into())), "{:?}", problems(text));
}

#[test]
fn x4_variations_are_like_the_scenario_except_for_their_faults() {
    let plan = plan(WEB);
    let scenario = scenario(WEB, "{ jobs: [{ name: 'setup', runs: { lasts: 'never' } }] }");
    let found = Explorer::new(&plan, &scenario).explore(1, 1);
    let names: Vec<Finding> = found.into_iter().map(|found| found.finding).collect();
    assert_eq!(names, [Finding::WaitsForever("greet".into()), Finding::WaitsForever("web".into())]);
}
