//! P3–P6: starts, exits and timeouts.

use containerpilot_core::Input;
use containerpilot_core::ids::RunId;
use containerpilot_core::input::{ExitStatus, StartErrorKind};

use crate::stage::Stage;

#[test]
fn p3_codes_signals_and_failed_starts() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 4, restartBackoff: false }");
    stage.willing = false;
    stage.look();
    stage.exit("a", 0);
    stage.exit("a", 1);
    stage.killed("a", 9);
    stage.fails_to_start("a", StartErrorKind::NoResources);
    assert_eq!(stage.events(), ["a exitSuccess", "a exitFailed", "a exitFailed", "a exitFailed"]);
    assert!(stage.log.iter().any(|line| line.contains("/bin/x: no such thing")), "{:?}", stage.log);
}

#[test]
fn p4_what_is_left_of_a_group_is_killed_after_the_stop_time() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 1 }");
    stage.look();
    stage.exit_with_orphans("a");
    stage.look();
    stage.millis(4_999);
    assert!(!stage.acts().contains(&"kill remains".to_owned()));
    stage.millis(1);
    assert_eq!(stage.acts(), ["kill remains"]);
}

#[test]
fn p5_a_run_that_takes_too_long_is_killed_and_has_failed() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', timeout: '2s' }");
    stage.look();
    stage.seconds(2);
    assert_eq!(stage.acts(), ["kill a 9"]);
    assert!(stage.log.iter().any(|line| line == "a timeout after 2s"), "{:?}", stage.log);
    // Even one that exits with 0 at that very moment has used up its time.
    stage.exit("a", 0);
    assert_eq!(stage.events().first().map(String::as_str), Some("a exitFailed"));
    assert_eq!(stage.exit, Some(1));
}

#[test]
fn p6_news_of_a_run_that_is_over_means_nothing() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 3, restartBackoff: false }");
    stage.exit("a", 0);
    stage.look();
    stage.input(Input::Exited { run: RunId(1), status: ExitStatus::Code(9), orphans: false });
    stage.input(Input::Started { run: RunId(1), pid: 7 });
    stage.input(Input::Exited { run: RunId(99), status: ExitStatus::Code(9), orphans: false });
    assert!(stage.look().is_empty());
}

/// Who is killed while memory runs out is told so; who is killed otherwise is not.
#[test]
fn p3_a_run_that_the_kernel_ended_for_want_of_memory_is_told_so() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 9, restartBackoff: false }");
    let last = |stage: &Stage| stage.log.iter().rfind(|line| line.starts_with("exited")).cloned().unwrap();
    stage.killed("a", 9);
    assert_eq!(
        last(&stage),
        "exited on SIGKILL after 0s (not sent by the supervisor, possibly out of memory)"
    );
    stage.input(Input::OutOfMemory { processes: 0 });
    stage.killed("a", 9);
    assert_eq!(last(&stage), "exited on SIGKILL after 0s");
    stage.input(Input::OutOfMemory { processes: 2 });
    stage.exit("a", 1);
    assert_eq!(last(&stage), "exited with code 1 after 0s");
    stage.killed("a", 9);
    assert_eq!(
        last(&stage),
        "exited on SIGKILL after 0s (out of memory: the kernel killed processes of this container)"
    );
    stage.exit("a", 137);
    assert_eq!(
        last(&stage),
        "exited with code 137 after 0s (out of memory: the kernel killed a process of this container)"
    );
    // Nothing is left to be explained.
    stage.killed("a", 9);
    assert_eq!(last(&stage), "exited on SIGKILL after 0s");
}

#[test]
fn p5_a_run_that_was_killed_from_here_is_not_put_down_to_memory() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', timeout: '2s' }");
    stage.seconds(2);
    stage.input(Input::OutOfMemory { processes: 1 });
    stage.killed("a", 9);
    assert!(!stage.log.iter().any(|line| line.contains("memory")), "{:?}", stage.log);
}
