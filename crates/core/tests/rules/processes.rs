//! P3–P6: starts, exits and timeouts.

use containerpilot_core::Input;
use containerpilot_core::ids::RunId;
use containerpilot_core::input::{ExitStatus, StartErrorKind};

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
fn p5_a_run_that_times_out_is_killed_and_has_failed() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', timeout: '2s' }");
    harness.take_output();
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
    assert!(harness.log.iter().any(|line| line == "a timeout after 2s"), "{:?}", harness.log);
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
    harness.input(Input::Exited { run: RunId(1), status: ExitStatus::Code(9), orphans: false });
    harness.input(Input::Started { run: RunId(1), pid: 7 });
    harness.input(Input::Exited { run: RunId(99), status: ExitStatus::Code(9), orphans: false });
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
