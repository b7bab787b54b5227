//! What each expectation means, and what is shown if it does not hold.

use super::support::{CONSUL, WEB, verdict, verdicts};

fn holds(expectation: &str) -> bool {
    verdict(WEB, "", expectation).0
}

#[test]
fn x4_see_holds_if_the_moment_happens() {
    assert!(holds("{ see: 'web healthy' }"));
    assert!(holds("{ see: 'startup' }"));
    assert!(!holds("{ see: 'web exitFailed' }"));
}

#[test]
fn x4_before_and_after_bound_the_first_time() {
    assert!(holds("{ see: 'web healthy', before: '10s' }"));
    assert!(holds("{ see: 'web healthy', before: 2, after: '1s' }"));
    assert!(!holds("{ see: 'web healthy', before: '1s' }"));
    assert!(!holds("{ see: 'setup starts', after: '1s' }"));
}

#[test]
fn x4_moments_of_the_same_instant_are_compared_by_their_order() {
    assert!(holds("{ see: 'greet starts', after: 'web healthy' }"));
    assert!(!holds("{ see: 'web healthy', after: 'greet starts' }"));
    assert!(holds("{ see: 'setup exitSuccess', before: 'web starts' }"));
    assert!(!holds("{ see: 'web starts', before: 'setup exitSuccess' }"));
}

#[test]
fn x4_times_counts_within_the_window() {
    assert!(holds("{ see: 'web starts', times: 1 }"));
    assert!(holds("{ see: 'web starts', times: 0, before: '1s' }"));
    let (holds, happened) =
        verdict(WEB, "jobs: [{ name: 'web', runs: { lasts: 15 } }],", "{ see: 'web starts', times: 2 }");
    assert!(!holds);
    assert_eq!(happened, "it happened 4 times, first at 1s and last at 46s");
}

#[test]
fn x4_never_holds_if_the_moment_does_not_happen_in_the_window() {
    assert!(holds("{ never: 'web exitFailed' }"));
    assert!(!holds("{ never: 'web starts' }"));
    assert!(holds("{ never: 'web starts', after: '2s' }"));
    assert!(holds("{ never: 'web starts', before: 'setup exitSuccess' }"));
}

#[test]
fn x4_the_shutdown_at_the_end_of_the_simulation_does_not_count() {
    assert!(holds("{ never: 'web stopping' }"));
    assert!(!verdict(WEB, "happens: [{ at: 9, signal: 'TERM' }],", "{ never: 'web stopping' }").0);
}

#[test]
fn x4_within_counts_from_each_of_and_includes_the_shutdown_at_the_end() {
    assert!(holds("{ see: 'exit', within: '2s', of: 'shutdown' }"));
    let (holds, happened) = verdict(WEB, "", "{ see: 'exit', within: '1s', of: 'shutdown' }");
    assert!(!holds);
    assert_eq!(happened, "after shutdown at 1m0s it took 1.1s");
    let world = "jobs: [{ name: 'web', runs: [{ lasts: 20, exit: 1 }, {}] }],";
    assert!(
        verdict(WEB, world, "{ see: 'web starts', within: '1s', of: 'web exitFailed', before: 'shutdown' }")
            .0
    );
    assert!(
        verdict(WEB, world, "{ see: 'web starts', within: '100ms', of: 'web exitFailed' }")
            .1
            .starts_with("it never happened after web exitFailed at 1m1.1s")
    );
}

#[test]
fn x4_a_job_is_in_a_state_at_a_time_or_at_the_end() {
    assert!(holds("{ job: 'web', is: 'waiting', at: '500ms' }"));
    assert!(holds("{ job: 'web', is: 'healthy' }"));
    assert!(holds("{ job: 'web', is: 'running' }"));
    assert!(holds("{ job: 'setup', is: 'complete' }"));
    assert!(!holds("{ job: 'greet', is: 'complete' }"));
}

#[test]
fn x4_exit_is_the_exit_code_of_the_supervisor() {
    assert!(holds("{ exit: 0 }"));
    assert!(!holds("{ exit: 0, before: '1m' }"));
    let alone = r#"{ jobs: [{ name: "a", exec: "a" }] }"#;
    assert!(verdict(alone, "jobs: [{ name: 'a', runs: { exit: 3 } }],", "{ exit: 3, before: '5s' }").0);
}

#[test]
fn x4_moments_of_the_catalog_and_of_watches_are_seen() {
    let world = "happens: [{ at: 10, maintenance: true }],";
    assert!(verdict(CONSUL, world, "{ see: 'web advertised', before: 1 }").0);
    assert!(verdict(CONSUL, world, "{ see: 'web deregistered', after: 'enterMaintenance' }").0);
    assert!(verdict(CONSUL, world, "{ see: 'watch.web unhealthy', after: 'web deregistered' }").0);
    assert!(verdict(CONSUL, world, "{ see: 'db healthy', before: 2 }").0);
}

#[test]
fn x5_a_missing_moment_is_explained_with_the_whole_chain_of_conditions() {
    let text = "{ jobs: [{ name: 'setup', runs: { lasts: 'never' } }], expect: [{ see: 'greet starts', why: 'people like it' }] }";
    let verdict = verdicts(WEB, text).remove(0);
    assert_eq!((verdict.holds, verdict.happened.as_str()), (false, "it never happened"));
    assert_eq!(verdict.why.as_deref(), Some("people like it"));
    let because = verdict.because.join("\n");
    assert!(because.contains("waiting until web is healthy; web: waiting to start"), "{because}");
    assert!(because.contains("waiting until setup exits successfully; setup: running"), "{because}");
}

#[test]
fn x5_a_late_moment_is_explained_at_the_time_it_was_expected() {
    let text =
        "{ jobs: [{ name: 'setup', runs: { lasts: 9 } }], expect: [{ see: 'web starts', before: 5 }] }";
    let verdict = verdicts(WEB, text).remove(0);
    assert_eq!(verdict.happened, "it happened at 9s");
    assert!(verdict.because[0].starts_with("at 5s: web: waiting to start"), "{:?}", verdict.because);
}

#[test]
fn x5_an_unexpected_moment_is_shown_with_its_causes() {
    let verdict = verdicts(WEB, "{ expect: [{ never: 'greet starts' }] }").remove(0);
    assert_eq!(
        verdict.because,
        [
            "started by web healthy at 1.01s",
            "its run started at 1s",
            "started by setup exitSuccess (code 0) at 1s",
            "its run started at 0s",
            "started by startup at 0s",
        ]
    );
}
