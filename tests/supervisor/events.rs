//! Events (E1–E3, E7, E8), as logged at level `debug`.

use crate::support::config::Config;
use crate::support::supervisor::{Supervisor, modes};

fn line_number(log: &str, text: &str) -> usize {
    log.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no `{text}`"))
}

#[test]
fn e1_every_event_of_a_job_can_start_another_job() {
    let codes = ["exitSuccess", "exitFailed", "stopping", "stopped", "healthy", "unhealthy"];
    let mut config = Config::new()
        .job("good", "exec: 'sleep 0.2', health: { interval: 1, ttl: 5 }")
        .job("exitbad", "exec: 'false'")
        .job("late", "exec: 'true', when: { source: 'good', once: 'unhealthy', timeout: '10ms' }")
        .job("on-timerExpired", "exec: 'true', when: { source: 'late', once: 'timerExpired' }")
        .job("on-startup", "exec: 'true', when: { once: 'startup' }")
        .job("on-shutdown", "exec: 'true', when: { once: 'shutdown' }");
    for code in codes {
        let source = if code == "exitFailed" { "exitbad" } else { "good" };
        let keys = format!("exec: 'true', when: {{ source: '{source}', once: '{code}' }}");
        config = config.job(format!("on-{code}"), keys);
    }
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, &config).wait();
        assert_eq!(code, 1);
        for code in codes.iter().chain(&["startup", "shutdown", "timerExpired"]) {
            assert!(log.contains(&format!("on-{code} exited with code 0")), "{code}");
        }
    }
}

#[test]
fn e2_e3_e8_events_are_ordered_and_stopped_comes_after_the_last_exit() {
    let config = "{ logging: { level: 'debug' }, jobs: [
        { name: 'a', exec: 'true', restarts: 2, restartBackoff: false } ] }";
    for mode in modes() {
        let (code, log) = Supervisor::start(mode, config).wait();
        assert_eq!(code, 0);
        let exits: Vec<usize> = log
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("a exitSuccess"))
            .map(|(nth, _)| nth)
            .collect();
        assert_eq!(exits.len(), 3);
        assert!(line_number(&log, "startup") < line_number(&log, "a started"));
        assert!(exits[2] < line_number(&log, "a stopping"));
        assert!(line_number(&log, "a stopping") < line_number(&log, "a stopped"));
        assert!(line_number(&log, "a stopped") < line_number(&log, "shutdown"));
    }
}

#[test]
fn e7_no_event_is_lost_among_200_simultaneous_exits() {
    let config = (0..200).fold(Config::new(), |config, n| {
        let after = format!("exec: 'true', when: {{ source: 's{n}', once: 'exitSuccess' }}");
        config.job(format!("s{n}"), "exec: 'true'").job(format!("t{n}"), after)
    });
    let (code, log) = Supervisor::start(modes()[0], &config).wait();
    assert_eq!(code, 0);
    assert!((0..200).all(|n| log.contains(&format!(" t{n} exited with code 0 "))));
}

#[test]
fn e7_sigterm_is_handled_while_jobs_restart_without_delay() {
    let names = (0..10).map(|n| format!("j{n}"));
    let config = Config::new().jobs(names, "exec: 'true', restarts: 'unlimited', restartBackoff: false");
    for mode in modes() {
        let mut run = Supervisor::start(mode, &config);
        for _ in 0..50 {
            run.wait_for_line("j9 restarting");
        }
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}

#[test]
fn e7_sigterm_is_handled_while_starts_fail_without_delay() {
    for mode in modes() {
        let mut run = Supervisor::start(
            mode,
            "{ jobs: [{ name: 'bad', exec: '/no/such', restarts: 'unlimited', restartBackoff: false }] }",
        );
        for _ in 0..50 {
            run.wait_for_line("bad failed to start");
        }
        run.signal("-TERM");
        assert_eq!(run.wait().0, 0);
    }
}
