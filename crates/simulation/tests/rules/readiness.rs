//! H11, H12: programs that become ready, and that stop to send `WATCHDOG=1`.

use super::support::{run, times};

const WEB: &str = r#"{ jobs: [
    { name: "web", exec: "web", ready: "notify", watchdog: "10s", restarts: "unlimited",
      health: { interval: 5, ttl: 15, onUnhealthy: "restart" } },
    { name: "app", exec: "app", when: { source: "web", once: "ready" } },
] }"#;

#[test]
fn h11_a_program_is_ready_after_a_time() {
    let run = run(WEB, "{ jobs: [{ name: 'web', runs: { ready: '2s' } }] }");
    assert_eq!(times(&run, "web ready"), [2_000]);
    assert_eq!(times(&run, "web becameHealthy"), [2_000]);
    assert_eq!(times(&run, "app starts"), [2_000]);
}

#[test]
fn h11_a_program_is_ready_at_once_unless_the_scenario_says_never() {
    assert_eq!(times(&run(WEB, "{}"), "web ready"), [0]);
    let never = run(WEB, "{ jobs: [{ name: 'web', runs: { ready: 'never' } }] }");
    assert_eq!(times(&never, "web ready"), [0; 0]);
    assert_eq!(times(&never, "web becameHealthy"), [0; 0]);
}

#[test]
fn h12_a_program_that_stops_to_send_watchdog_is_restarted() {
    let run = run(WEB, "{ jobs: [{ name: 'web', runs: [{ watchdogStops: '12s' }, {}] }] }");
    // The last message is that of 10 s.
    assert_eq!(times(&run, "web becameUnhealthy").first(), Some(&20_000));
    assert_eq!(times(&run, "web starts").len(), 2, "and the next run does not hang");
}
