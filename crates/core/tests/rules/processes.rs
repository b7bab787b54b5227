//! P3–P6: starts, exits and timeouts.

use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Remains, StartErrorKind};
use containerpilot_core::plan::{Level, Signal};
use containerpilot_core::request::Request;
use containerpilot_core::state::journal::EndReason;
use containerpilot_core::{Input, State};

use crate::harness::Harness;

#[test]
fn p3_exit_codes_signals_and_failed_starts() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 4, restartBackoff: false }");
    harness.starts_succeed = false;
    harness.take_output();
    harness.exit("a", 0);
    harness.exit("a", 1);
    harness.exit_on("a", 9);
    harness.fail_start("a", StartErrorKind::NoResources);
    assert_eq!(harness.take_events(), ["a exitSuccess", "a exitFailed", "a exitFailed", "a exitFailed"]);
    assert!(
        harness.log.iter().any(|line| line.contains("/bin/x: No such file or directory")),
        "{:?}",
        harness.log
    );
}

#[test]
fn p3_a_process_that_does_not_execute_its_program_within_10s_is_a_failed_start() {
    let mut harness = Harness::jobs(
        "{ name: 'a', exec: 'x', restarts: 1 }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitFailed' } }",
    );
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.take_output();
    harness.millis(9_999);
    assert_eq!(harness.take_output(), [] as [&str; 0]);
    assert_eq!(harness.status("a").word(), "starting");
    harness.millis(1);
    assert_eq!(harness.take_output(), ["event a exitFailed", "cancel a", "spawn a", "spawn b"]);
    let expected = "failed to start: x: did not reach exec within 10s, sent SIGKILL";
    assert!(harness.log.iter().any(|line| line == expected), "{:?}", harness.log);
    assert_eq!(harness.status("a").last_exit, Some(ExitStatus::Code(125)));
    // What was on its way about the first run is ignored, and the second one has its own time.
    harness.input(Input::Started { run: RunId(1), pid: 7 });
    assert_eq!(harness.status("a").pid, None);
    harness.seconds(9);
    harness.input(Input::Started { run: RunId(2), pid: 8 });
    harness.seconds(9);
    assert_eq!(harness.status("a").pid, Some(8));
}

#[test]
fn p5_the_timeout_of_a_run_counts_from_the_execution_of_its_program() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x', timeout: '2s' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.take_output();
    harness.seconds(5);
    harness.input(Input::Started { run: RunId(1), pid: 7 });
    harness.millis(1_999);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
}

#[test]
fn p4_an_orphaned_process_group_is_killed_after_the_stop_timeout() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1 }");
    harness.take_output();
    harness.exit_with_orphans("a");
    harness.take_output();
    harness.millis(4_999);
    assert!(!harness.take_effects().contains(&"kill orphans".to_owned()));
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill orphans"]);
}

#[test]
fn p4_daemons_of_a_run_are_killed_after_the_stop_timeout() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1 }, { name: 'b', exec: 'y' }");
    let found = |harness: &mut Harness| {
        harness.input(Input::OrphansFound { run: RunId(1) });
        harness.take_effects()
    };
    assert_eq!(found(&mut harness).last().unwrap(), "spawn b", "the run has not ended");
    harness.exit("a", 0);
    harness.take_output();
    assert!(found(&mut harness).is_empty());
    harness.millis(4_000);
    assert!(found(&mut harness).is_empty(), "the time counts from the first one");
    harness.millis(1_000);
    assert_eq!(harness.take_effects(), ["kill orphans"]);
    // Those that show up later have the same time.
    assert!(found(&mut harness).is_empty());
    harness.millis(5_000);
    assert_eq!(harness.take_effects(), ["kill orphans"]);
    harness.signal(15);
    harness.seconds(1);
    harness.take_output();
    assert!(found(&mut harness).is_empty());
    harness.seconds(4);
    assert_eq!(
        harness.take_effects(),
        ["kill a 9", "kill b 9", "kill orphans"],
        "the stop timeout has passed"
    );
    assert_eq!(found(&mut harness), ["kill orphans"], "all jobs were killed");
}

#[test]
fn p6_a_process_that_sigkill_does_not_end_is_abandoned_and_its_run_has_failed() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '3s', restarts: 1 }");
    harness.seconds(3);
    harness.take_output();
    harness.millis(1_999);
    assert!(harness.take_output().is_empty());
    harness.millis(1);
    assert_eq!(harness.take_output(), ["event a exitFailed", "abandon a", "spawn a"]);
    let message = "did not exit within 2s after SIGKILL, abandoning process 101";
    assert!(harness.log.iter().any(|line| line == message), "{:?}", harness.log);
    // Its exit comes too late to count.
    harness.input(Input::Exited { run: RunId(1), status: ExitStatus::Code(0), remains: Remains::Nothing });
    assert!(harness.take_output().is_empty());
    // A process that exits in time is not abandoned.
    harness.seconds(4);
    harness.exit_on("a", 9);
    harness.seconds(9);
    assert!(!harness.take_output().contains(&"abandon a".to_owned()));
}

#[test]
fn p6_w8_a_process_that_is_abandoned_before_it_has_started_was_a_short_run() {
    let backoff = "restartBackoff: { initial: '100ms', max: '10s', reset: '1s' }";
    let mut harness = Harness::running(&format!("{{ name: 'a', exec: 'x', restarts: 9, {backoff} }}"));
    harness.exit("a", 1);
    harness.starts_succeed = false;
    harness.exit("a", 1);
    harness.millis(100);
    harness.request(Request::Signal(JobIx(0), Signal::KILL));
    harness.take_output();
    harness.seconds(2);
    assert_eq!(harness.take_output(), ["event a exitFailed", "abandon a"]);
    assert_eq!(harness.status("a").state, State::Delaying);
}

#[test]
fn p6_the_time_after_sigkill_counts_from_the_first_one() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'y' }");
    for _ in 0..3 {
        harness.request(Request::Signal(JobIx(0), Signal::KILL));
        harness.millis(900);
    }
    assert!(harness.status("a").state.has_ended());
    assert!(!harness.has_process("a"));
}

#[test]
fn p5_l5_the_entry_about_a_timeout_has_the_arguments_without_secrets() {
    let long = "y".repeat(300);
    for (exec, said) in [
        ("['sh', '-c', 'sleep 9']", "'[-c sleep 9]'".to_owned()),
        (
            "'app --password hunter2 http://me:hunter2@host/'",
            "'[--password ******* http://me:*******@host/]'".into(),
        ),
        (&format!("'x {long}'"), format!("'[{}…]'", &long[..200])),
    ] {
        let mut harness = Harness::running(&format!("{{ name: 'a', exec: {exec}, timeout: '2s' }}"));
        harness.seconds(2);
        let said = format!("a timeout after 2s: {said}");
        assert!(harness.log.contains(&said), "{said}: {:?}", harness.log);
    }
}

#[test]
fn p5_a_run_that_times_out_is_killed_and_has_failed() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '2s' }");
    harness.take_output();
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
    assert!(harness.log.iter().any(|line| line == "a timeout after 2s: '[]'"), "{:?}", harness.log);
    // An exit with 0 after the timeout still counts as failed.
    harness.exit("a", 0);
    assert_eq!(harness.take_events().first().map(String::as_str), Some("a exitFailed"));
    assert_eq!(harness.exit, Some(1));
}

#[test]
fn p6_inputs_of_a_run_that_has_ended_are_ignored() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 3, restartBackoff: false }");
    harness.exit("a", 0);
    harness.take_output();
    harness.input(Input::Exited { run: RunId(1), status: ExitStatus::Code(9), remains: Remains::Nothing });
    harness.input(Input::Started { run: RunId(1), pid: 7 });
    harness.input(Input::Exited { run: RunId(99), status: ExitStatus::Code(9), remains: Remains::Nothing });
    assert!(harness.take_output().is_empty());
}

#[test]
fn p3_an_exit_caused_by_the_oom_killer_is_logged_as_such() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 9, restartBackoff: false }");
    let last =
        |harness: &Harness| harness.log.iter().rfind(|line| line.starts_with("exited")).cloned().unwrap();
    harness.exit_on("a", 9);
    assert_eq!(
        last(&harness),
        "exited on SIGKILL after 0s (not sent by the supervisor, possibly out of memory)"
    );
    harness.input(Input::OutOfMemory { processes: 0 });
    harness.exit_on("a", 9);
    assert_eq!(last(&harness), "exited on SIGKILL after 0s");
    harness.input(Input::OutOfMemory { processes: 2 });
    harness.exit("a", 1);
    assert_eq!(last(&harness), "exited with code 1 after 0s");
    harness.exit_on("a", 9);
    assert_eq!(
        last(&harness),
        "exited on SIGKILL after 0s (out of memory: the kernel killed processes of this container)"
    );
    harness.exit("a", 137);
    assert_eq!(
        last(&harness),
        "exited with code 137 after 0s (out of memory: the kernel killed a process of this container)"
    );
    // All OOM kills have been attributed.
    harness.exit_on("a", 9);
    assert_eq!(last(&harness), "exited on SIGKILL after 0s");
}

#[test]
fn p5_a_run_killed_by_the_supervisor_is_not_attributed_to_the_oom_killer() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '2s' }");
    harness.seconds(2);
    harness.input(Input::OutOfMemory { processes: 1 });
    harness.exit_on("a", 9);
    assert!(!harness.log.iter().any(|line| line.contains("memory")), "{:?}", harness.log);
}

#[test]
fn p3_l7_a_start_that_fails_is_an_error_unless_the_job_is_restarted() {
    for kind in [StartErrorKind::NotFound, StartErrorKind::Killed(Signal::TERM)] {
        for (restarts, level) in [(0, Level::Error), (1, Level::Warn)] {
            let mut harness = Harness::jobs(&format!("{{ name: 'a', exec: 'x', restarts: {restarts} }}"));
            harness.starts_succeed = false;
            harness.input(Input::Ready);
            harness.fail_start("a", kind);
            assert_eq!(harness.level_of("failed to start"), Some(level), "{kind:?}");
            let fields = harness.fields_of("failed to start");
            assert_eq!(fields.event.name(), "exitFailed");
            assert_eq!(fields.cause.as_deref(), Some("/bin/x: No such file or directory"));
        }
    }
}

#[test]
fn p4_daemons_are_logged_with_the_job_whose_last_run_left_them() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }");
    for (job, run) in [("b", RunId(2)), ("a", RunId(1))] {
        harness.exit(job, 0);
        harness.input(Input::OrphansFound { run });
        assert_eq!(harness.job_of("left processes").as_deref(), Some(job));
    }
}

#[test]
fn p6_t4_an_abandoned_run_ended_as_its_end_was_begun() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '3s', restarts: 1 }");
    harness.seconds(5);
    assert_eq!(harness.core.job_overview(JobIx(0)).ended_by, Some(EndReason::Timeout));
}
