//! H11, H12: readiness, the watchdog, and what the service manager is told.

use std::time::Duration;

use containerpilot_core::input::Remains;
use containerpilot_core::{Input, Notice, Readiness, Request};

use crate::harness::Harness;

const WEB: &str = "{ name: 'web', exec: 'x', port: 80, ready: 'notify' }";

#[test]
fn h11_a_job_with_ready_and_no_checks_is_healthy_while_it_is_ready() {
    let mut harness = Harness::running(WEB);
    assert_eq!(harness.take_effects(), ["spawn web"]);
    harness.seconds(600);
    assert_eq!(harness.take_output(), Vec::<String>::new(), "nothing is polled, and nothing is unhealthy");
    assert_eq!(harness.core.timer_count(), 0);
    assert_eq!(harness.status("web").readiness, Some(Readiness::Starting));
    harness.notify("web", "READY=1");
    assert_eq!(
        harness.take_output(),
        ["event web ready", "event web healthy", "event web becameHealthy", "advertise web passing"]
    );
    harness.notify("web", "READY=1");
    assert!(harness.take_output().is_empty(), "it is ready already");
    harness.seconds(10);
    assert_eq!(harness.take_output(), ["heartbeat web"]);
    harness.exit("web", 0);
    let events = harness.take_events();
    assert_eq!(events[..3], ["web exitSuccess", "web unhealthy", "web becameUnhealthy"]);
    assert_eq!(harness.status("web").readiness, None);
}

#[test]
fn h11_s14_what_is_left_of_a_run_does_not_report_for_it() {
    let mut harness = Harness::running(WEB);
    harness.notify("web", "READY=1");
    harness.signal(15);
    let run = harness.exit_leaving("web", Remains::Group("another process".into()));
    assert_eq!(harness.status("web").readiness, Some(Readiness::Starting), "everything is forgotten");
    harness.take_output();
    for notice in [Notice::Ready, Notice::Stopping] {
        harness.input(Input::Notified { run, notice });
        assert_eq!(harness.status("web").readiness, Some(Readiness::Starting));
    }
    assert!(harness.take_output().is_empty());
}

#[test]
fn h11_a_descriptor_and_a_line_count_like_a_message() {
    for ready in ["{ fd: 3 }", "{ line: '^listening' }"] {
        let mut harness = Harness::running(&format!("{{ name: 'web', exec: 'x', ready: {ready} }}"));
        harness.take_output();
        harness.notify("web", "READY=1");
        assert_eq!(
            harness.take_output(),
            ["event web ready", "event web healthy", "event web becameHealthy"]
        );
        assert_eq!(harness.core.timer_count(), 0, "it costs no timer");
    }
}

#[test]
fn h11_with_checks_a_job_is_healthy_when_it_is_ready_and_they_pass() {
    let web = "{ name: 'web', exec: 'x', ready: 'notify', health: { exec: 'c', interval: 10, ttl: 30 } }";
    let mut harness = Harness::running(web);
    assert_eq!(harness.take_effects(), ["spawn web", "check check.web"], "checks start as ever");
    harness.finish_check(true);
    assert!(harness.take_events().is_empty(), "not ready yet");
    harness.notify("web", "READY=1");
    assert_eq!(harness.take_events(), ["web ready", "web healthy", "web becameHealthy"]);

    let mut harness = Harness::running(web);
    harness.take_output();
    harness.notify("web", "READY=1");
    assert_eq!(harness.take_events(), ["web ready"], "its check has not passed yet");
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy", "web becameHealthy"]);
    harness.seconds(10);
    harness.finish_check(false);
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
    harness.seconds(10);
    harness.finish_check(true);
    assert_eq!(harness.take_events(), ["web healthy", "web becameHealthy"], "it is still ready");
}

#[test]
fn h11_a_process_that_reloads_stays_healthy_and_is_ready_again() {
    let mut harness = Harness::running(WEB);
    harness.notify("web", "RELOADING=1");
    assert_eq!(harness.status("web").readiness, Some(Readiness::Starting), "it was never ready");
    harness.notify("web", "READY=1");
    harness.take_output();
    harness.notify("web", "RELOADING=1");
    assert!(harness.take_output().is_empty());
    assert_eq!(harness.status("web").readiness, Some(Readiness::Reloading));
    assert_eq!(harness.status("web").healthy, Some(true));
    harness.notify("web", "READY=1");
    assert_eq!(harness.take_output(), ["event web ready"]);
}

#[test]
fn h11_a_process_that_stops_by_itself_is_no_longer_healthy() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, ready: 'notify', restarts: 'unlimited',
           health: { interval: 10, ttl: 30, onUnhealthy: 'restart' } }",
    );
    harness.notify("web", "READY=1");
    harness.take_output();
    harness.notify("web", "STOPPING=1");
    assert_eq!(
        harness.take_output(),
        ["event web unhealthy", "event web becameUnhealthy", "advertise web critical"],
        "and it is not sent a signal"
    );
    harness.notify("web", "READY=1\nWATCHDOG=1\nRELOADING=1");
    harness.seconds(60);
    assert!(harness.take_output().is_empty(), "there is no way back");
    assert_eq!(harness.core.timer_count(), 0);
    harness.exit("web", 0);
    let output = harness.take_output();
    assert_eq!(output[..2], ["event web exitSuccess", "spawn web"]);
    assert_eq!(harness.status("web").readiness, Some(Readiness::Starting), "the next run is not ready yet");
}

#[test]
fn h11_what_a_process_says_before_its_start_counts_after_it() {
    let mut harness = Harness::jobs(WEB);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.take_output();
    harness.notify("web", "READY=1\nSTATUS=warming up");
    assert!(harness.take_output().is_empty());
    harness.start("web");
    assert_eq!(
        harness.take_output(),
        ["event web ready", "event web healthy", "event web becameHealthy", "advertise web passing"]
    );
}

#[test]
fn h11_maintenance_keeps_the_readiness() {
    let mut harness =
        Harness::running("{ name: 'web', exec: 'x', port: 80, ready: 'notify', watchdog: '5s' }");
    harness.maintenance(true);
    harness.take_output();
    harness.notify("web", "READY=1");
    harness.seconds(60);
    assert_eq!(harness.take_output(), ["event web ready"], "it is not checked, and has no watchdog");
    harness.maintenance(false);
    let output = harness.take_output();
    assert!(output.contains(&"event web becameHealthy".to_owned()), "{output:?}");
    harness.seconds(5);
    assert!(harness.take_events().contains(&"web becameUnhealthy".to_owned()));
}

#[test]
fn h11_the_status_of_a_process_is_shown_and_forgotten_at_its_exit() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', ready: 'notify', restarts: 'unlimited', restartBackoff: false }",
    );
    let shown = |harness: &Harness| harness.core.overview().jobs[0].process_status.clone();
    assert_eq!(shown(&harness), None);
    harness.notify("web", "STATUS=5 clients\n");
    assert_eq!(shown(&harness).as_deref(), Some("5 clients"));
    harness.notify("web", "STATUS=");
    assert_eq!(shown(&harness), None);
    harness.notify("web", "STATUS=bye");
    harness.exit("web", 0);
    assert_eq!(shown(&harness), None);
}

#[test]
fn h11_a_job_runs_when_another_is_ready() {
    let mut harness = Harness::running(
        "{ name: 'db', exec: 'x', ready: { fd: 4 } },
         { name: 'app', exec: 'x', when: { source: 'db', once: 'ready' } }",
    );
    assert_eq!(harness.take_effects(), ["spawn db"]);
    harness.notify("db", "READY=1");
    assert_eq!(harness.take_effects(), ["spawn app"]);
}

#[test]
fn w10_a_job_that_waits_for_ready_of_a_job_that_never_was_is_skipped() {
    let mut harness = Harness::running(
        "{ name: 'db', exec: 'x', ready: 'notify' },
         { name: 'app', exec: 'x', when: { source: 'db', once: 'ready' } }",
    );
    harness.exit("db", 1);
    assert!(
        harness.log.iter().any(|line| line.contains("`db ready` can no longer happen")),
        "{:?}",
        harness.log
    );
    assert_eq!(harness.exit, Some(1));
}

#[test]
fn h11_notices_of_other_jobs_and_of_runs_that_are_over_are_ignored() {
    let mut harness = Harness::running(&format!("{WEB}, {{ name: 'plain', exec: 'x' }}"));
    harness.take_output();
    harness.notify("plain", "READY=1\nWATCHDOG=1\nSTATUS=x\nSTOPPING=1");
    assert!(harness.take_output().is_empty());
    assert_eq!(harness.status("plain").readiness, None);
    for notice in ["READY=1", "STOPPING=1", "WATCHDOG=1"] {
        let notice = containerpilot_core::Notice::parse(notice.as_bytes()).next().unwrap();
        harness.input(Input::Notified { run: containerpilot_core::ids::RunId(77), notice });
    }
    assert!(harness.take_output().is_empty());
}

#[test]
fn h12_a_missed_watchdog_is_a_failed_check() {
    let mut harness = Harness::running("{ name: 'web', exec: 'x', ready: 'notify', watchdog: '5s' }");
    harness.notify("web", "WATCHDOG=1");
    harness.seconds(60);
    assert_eq!(harness.core.timer_count(), 0, "it begins when the process is ready");
    harness.notify("web", "READY=1");
    harness.take_output();
    for _ in 0..5 {
        harness.seconds(4);
        harness.notify("web", "WATCHDOG=1");
    }
    assert!(harness.take_output().is_empty(), "in time");
    harness.seconds(5);
    assert_eq!(harness.take_events(), ["web unhealthy", "web becameUnhealthy"]);
    let warned = harness.log.iter().any(|line| line == "unhealthy: ready.web: no WATCHDOG=1 within 5s");
    assert!(warned, "{:?}", harness.log);
    harness.seconds(30);
    assert!(harness.take_output().is_empty());
    harness.notify("web", "WATCHDOG=1");
    assert_eq!(harness.take_events(), ["web healthy", "web becameHealthy"]);
}

#[test]
fn h12_the_check_without_a_program_says_how_many_may_be_missed_and_what_follows() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', ready: 'notify', watchdog: '5s', restarts: 'unlimited',
           health: { interval: 10, ttl: 30, failures: 3, onUnhealthy: 'restart' } }",
    );
    harness.notify("web", "READY=1");
    harness.take_output();
    harness.seconds(14);
    assert!(harness.take_output().is_empty(), "two were missed");
    harness.notify("web", "WATCHDOG=1");
    harness.seconds(14);
    assert!(harness.take_output().is_empty(), "one resets the count");
    harness.seconds(1);
    assert_eq!(harness.take_output(), ["event web unhealthy", "event web becameUnhealthy", "kill web 15"]);
}

#[test]
fn h12_a_job_that_stops_has_no_watchdog() {
    let mut harness =
        Harness::running("{ name: 'web', exec: 'x', ready: 'notify', watchdog: '5s', drain: '60s' }");
    harness.notify("web", "READY=1");
    harness.request(Request::Stop(containerpilot_core::ids::JobIx(0)));
    harness.take_output();
    harness.pass(Duration::from_secs(59));
    assert!(harness.take_output().is_empty());
}

#[test]
fn h11_the_service_manager_is_told_when_every_job_of_the_startup_is_ready() {
    let mut harness = Harness::jobs(
        "{ name: 'setup', exec: 'x' },
         { name: 'web', exec: 'x', ready: 'notify' },
         { name: 'worker', exec: 'x', restarts: 'unlimited' },
         { name: 'tick', exec: 'x', when: { interval: '1h' } },
         { name: 'again', exec: 'x', when: { any: [{ source: 'global', event: 'startup' }, { source: 'SIGHUP' }], each: true } },
         { name: 'later', exec: 'x', when: { source: 'web', once: 'unhealthy' } }",
    );
    harness.core.notify_manager();
    harness.input(Input::Ready);
    let told = |harness: &mut Harness| -> Vec<String> {
        harness.take_effects().into_iter().filter(|effect| effect.starts_with("notify")).collect()
    };
    harness.notify("web", "READY=1");
    harness.exit("again", 0);
    assert!(told(&mut harness).is_empty(), "a job that runs once must succeed");
    harness.exit("setup", 0);
    assert_eq!(told(&mut harness), ["notify READY=1"]);
    harness.exit("web", 0);
    harness.seconds(60);
    assert!(told(&mut harness).is_empty(), "once");
    harness.signal(15);
    assert_eq!(told(&mut harness), ["notify STOPPING=1"]);
}

#[test]
fn h11_without_a_service_manager_nothing_is_told() {
    let mut harness = Harness::running("{ name: 'web', exec: 'x', ready: 'notify' }");
    harness.notify("web", "READY=1");
    harness.signal(15);
    assert!(!harness.take_output().iter().any(|line| line.starts_with("notify")));
}

#[test]
fn h11_explain_says_what_a_process_must_do_to_be_ready() {
    let mut harness = Harness::running("{ name: 'web', exec: 'x', ready: { line: 'listening' } }");
    let explained =
        |harness: &Harness| harness.core.explain(containerpilot_core::ids::JobIx(0), None).sentences();
    let first = explained(&harness).join("\n");
    assert!(first.contains("not ready yet: ready when it prints a line that matches `listening`"), "{first}");
    harness.notify("web", "READY=1\nSTATUS=5 clients");
    let then = explained(&harness).join("\n");
    assert!(then.contains("ready; it says: 5 clients"), "{then}");
}

#[test]
fn h11_a_process_that_is_ready_without_end_is_reported_a_few_times_per_second() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', ready: 'notify' }, { name: 'after', exec: 'x', when: { source: 'web', each: 'ready' } }",
    );
    let events = |harness: &mut Harness| {
        (0..1_000).for_each(|_| harness.notify("web", "READY=1\nRELOADING=1"));
        harness.take_events().iter().filter(|event| *event == "web ready").count()
    };
    assert_eq!(events(&mut harness), 5);
    harness.millis(900);
    assert_eq!(events(&mut harness), 0);
    harness.millis(100);
    assert_eq!(events(&mut harness), 5);
    assert_eq!(harness.log.iter().filter(|line| *line == "ready").count(), 10);
    // Its readiness itself is exact.
    assert_eq!(harness.status("web").healthy, Some(true));
    harness.notify("web", "READY=1");
    assert_eq!(harness.status("web").readiness, Some(Readiness::Ready));
}

#[test]
fn h11_a_job_in_its_restart_delay_is_not_ready_for_the_service_manager() {
    let mut harness =
        Harness::jobs("{ name: 'setup', exec: 'x' }, { name: 'worker', exec: 'x', restarts: 'unlimited' }");
    harness.core.notify_manager();
    harness.input(Input::Ready);
    while harness.has_process("worker") {
        harness.exit("worker", 1);
    }
    harness.exit("setup", 0);
    assert!(!harness.take_effects().contains(&"notify READY=1".to_owned()));
    harness.seconds(60);
    assert!(harness.take_effects().contains(&"notify READY=1".to_owned()));
}
