//! S1–S7: stopping.

use containerpilot_core::input::StartErrorKind;
use containerpilot_core::plan::{OnCompletion, Role};
use containerpilot_core::{Input, State};

use crate::stage::{Stage, plan};

#[test]
fn s1_sigterm_stops_everything_and_it_leaves_as_soon_as_all_is_done() {
    let mut stage =
        Stage::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', restarts: 'unlimited' }");
    stage.look();
    stage.signal(15);
    assert_eq!(
        stage.look(),
        ["event global shutdown", "event a stopping", "event b stopping", "kill a 15", "kill b 15"]
    );
    stage.exit("a", 0);
    assert_eq!(stage.exit, None);
    stage.killed("b", 15);
    assert_eq!(
        stage.look(),
        ["event a exitSuccess", "event a stopped", "event b exitFailed", "event b stopped", "exit 0"]
    );
}

#[test]
fn s1_a_second_signal_kills() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x' }");
    stage.signal(15);
    stage.look();
    stage.signal(2);
    assert_eq!(stage.look(), ["kill a 9"]);
    let said = "received a second stop signal (SIGINT), killing 1 job";
    assert!(stage.log.iter().any(|message| message == said), "{:?}", stage.log);
    stage.killed("a", 9);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s2_the_order_of_a_stop() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x', port: 80, stopSignal: 'SIGQUIT', drain: '3s', health: { exec: 'c', interval: 10, ttl: 30 } }, \
         { name: 'pre1', exec: 'x', when: { source: 'web', once: 'stopping' } }, \
         { name: 'pre2', exec: 'x', when: { source: 'web', each: 'stopping' } }, \
         { name: 'post', exec: 'x', when: { source: 'web', once: 'stopped' } }",
    );
    stage.checked(true);
    stage.look();
    stage.signal(15);
    assert_eq!(stage.acts(), ["spawn pre1", "spawn pre2"], "the hooks first");
    stage.exit("pre1", 0);
    assert_eq!(stage.acts(), [] as [&str; 0], "all of them are waited for");
    stage.exit("pre2", 0);
    assert_eq!(stage.acts(), ["advertise web absent"], "then the catalog");
    stage.pass(std::time::Duration::from_millis(2_999));
    assert_eq!(stage.acts(), [] as [&str; 0], "then the drain");
    stage.millis(1);
    assert_eq!(stage.acts(), ["kill web 3"], "then its own signal");
    stage.exit("web", 0);
    assert_eq!(
        stage.look(),
        ["event web exitSuccess", "event web unhealthy", "event web stopped", "spawn post"],
        "H7: it was healthy"
    );
    stage.exit("post", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s2_a_job_does_not_wait_longer_than_its_stop_timeout() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x', stopTimeout: '1s' }, { name: 'pre', exec: 'x', when: { source: 'web', once: 'stopping' } }",
    );
    stage.signal(15);
    stage.look();
    stage.seconds(1);
    assert_eq!(stage.acts(), ["kill web 15"]);
    stage.exit("web", 0);
    assert_eq!(stage.exit, None, "the hook still runs");
    stage.exit("pre", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s2_a_hook_runs_also_when_a_job_completes_by_itself() {
    let mut stage = Stage::running(
        "{ name: 'web', exec: 'x' }, { name: 'pre', exec: 'x', when: { source: 'web', once: 'stopping' } }",
    );
    stage.look();
    stage.exit("web", 0);
    assert_eq!(stage.look(), ["event web exitSuccess", "event web stopping", "spawn pre"]);
    assert_eq!(stage.exit, None);
    stage.exit("pre", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s2_hooks_that_wait_for_one_another_do_not_hang() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'b', once: 'stopping' } }, \
         { name: 'b', exec: 'x', when: { source: 'a', once: 'stopping' } }",
    );
    stage.signal(15);
    stage.exit("main", 0);
    for hook in ["a", "b", "a"] {
        if stage.has_process(hook) {
            stage.exit(hook, 0);
        }
    }
    assert_eq!(stage.exit, Some(0), "and nobody sits the stop time out");
}

#[test]
fn s3_only_what_belongs_to_the_end_still_runs_during_a_shutdown() {
    let mut stage = Stage::running(
        "{ name: 'main', exec: 'x', restarts: 'unlimited' }, \
         { name: 'bye', exec: 'x', when: { once: 'shutdown' } }, \
         { name: 'fail', exec: 'x', when: { source: 'main', each: 'exitFailed' } }, \
         { name: 'tick', exec: 'x', when: { interval: '1s' } }",
    );
    stage.exit("tick", 0);
    stage.look();
    stage.signal(15);
    stage.exit("main", 1);
    stage.seconds(2);
    assert_eq!(stage.acts(), ["kill main 15", "spawn bye"]);
    stage.exit("bye", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s4_when_the_stop_time_has_passed_everything_is_killed_hooks_included() {
    let mut stage = Stage::new(plan(
        "{ stopTimeout: 3, jobs: [{ name: 'web', exec: 'x' }, { name: 'pre', exec: 'x', when: { source: 'web', once: 'stopping' } }] }",
    ));
    stage.input(Input::Ready);
    stage.signal(15);
    stage.look();
    stage.seconds(3);
    let mut acts = stage.acts();
    acts.sort();
    assert_eq!(acts, ["kill pre 9", "kill web 9"]);
    stage.killed("pre", 9);
    stage.killed("web", 9);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s4_a_process_that_cannot_be_killed_does_not_hold_it_for_ever() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x' }");
    stage.signal(15);
    stage.seconds(7);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s4_a_job_that_is_just_being_started_is_stopped_too() {
    let mut stage = Stage::jobs("{ name: 'a', exec: 'x' }");
    stage.willing = false;
    stage.input(Input::Ready);
    stage.look();
    stage.signal(15);
    assert_eq!(stage.acts(), [] as [&str; 0], "there is nobody to signal yet");
    stage.input(Input::Started { run: containerpilot_core::ids::RunId(1), pid: 5 });
    assert_eq!(stage.acts(), ["kill a 15"]);
}

#[test]
fn s5_the_code_of_the_first_that_failed_for_good() {
    let mut stage =
        Stage::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }");
    stage.exit("a", 0);
    stage.killed("c", 9);
    stage.exit("b", 3);
    assert_eq!(stage.exit, Some(137));
    for (kind, code) in [(StartErrorKind::NotFound, 127), (StartErrorKind::NotExecutable, 126)] {
        let mut stage = Stage::jobs("{ name: 'a', exec: 'x' }");
        stage.willing = false;
        stage.input(Input::Ready);
        stage.fails_to_start("a", kind);
        assert_eq!(stage.exit, Some(code));
    }
}

#[test]
fn s5_a_failure_that_was_followed_by_success_does_not_count() {
    let mut stage = Stage::running("{ name: 'a', exec: 'x', restarts: 1, restartBackoff: false }");
    stage.exit("a", 3);
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s5_on_failure_and_on_success_stop_the_container() {
    let mut stage =
        Stage::running("{ name: 'a', exec: 'x', onFailure: 'shutdown' }, { name: 'b', exec: 'x' }");
    stage.exit("a", 4);
    assert!(stage.acts().contains(&"kill b 15".to_owned()));
    stage.killed("b", 15);
    assert_eq!(stage.exit, Some(4));
    let mut stage =
        Stage::running("{ name: 'a', exec: 'x', onSuccess: 'shutdown' }, { name: 'b', exec: 'x' }");
    stage.exit("a", 0);
    stage.killed("b", 15);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn s7_the_end_of_the_main_program_ends_everything_with_its_code() {
    let mut plan =
        plan("{ jobs: [{ name: 'main', exec: 'x' }, { name: 'side', exec: 'x', restarts: 'unlimited' }] }");
    plan.jobs[0].role = Role::Main;
    (plan.jobs[0].on_failure, plan.jobs[0].on_success) = (OnCompletion::Shutdown, OnCompletion::Shutdown);
    let mut stage = Stage::new(plan);
    stage.input(Input::Ready);
    stage.exit("main", 42);
    stage.killed("side", 15);
    assert_eq!(stage.exit, Some(42));
}

#[test]
fn s7_without_a_file_every_signal_goes_on_to_the_program() {
    let mut plan = plan("{ jobs: [{ name: 'main', exec: 'x' }] }");
    plan.jobs[0].role = Role::Main;
    plan.pass_signals = true;
    let mut stage = Stage::new(plan);
    stage.input(Input::Ready);
    stage.look();
    for signal in [1, 2, 15, 28, 10, 15] {
        stage.signal(signal);
        assert_eq!(stage.acts(), [format!("kill main {signal}")]);
    }
    stage.killed("main", 15);
    assert_eq!(stage.exit, Some(143));
}

#[test]
fn s1_sigterm_before_startup() {
    let mut stage = Stage::jobs("{ name: 'a', exec: 'x' }");
    stage.signal(15);
    assert_eq!(stage.exit, Some(0));
    assert_eq!(stage.status("a").state, State::Complete);
}

const STUBBORN: &str = "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }";

#[test]
fn s1_the_same_signal_twice_at_once_is_one_request() {
    let mut stage = Stage::running(STUBBORN);
    stage.signal(15);
    stage.look();
    stage.signal(15);
    stage.millis(99);
    stage.signal(15);
    assert_eq!(stage.acts(), [] as [&str; 0]);
    stage.millis(1);
    stage.signal(15);
    assert_eq!(stage.acts(), ["kill a 9", "kill b 9"], "somebody means it");
}

#[test]
fn s1_another_signal_is_another_request() {
    let mut stage = Stage::running(STUBBORN);
    stage.signal(2);
    stage.look();
    stage.signal(15);
    assert_eq!(stage.acts(), ["kill a 9", "kill b 9"]);
}

#[test]
fn s1_the_first_signal_in_a_stop_of_its_own_is_not_the_second() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x', onFailure: 'shutdown' }, { name: 'b', exec: 'x', restarts: 'unlimited' }",
    );
    stage.exit("a", 3);
    assert_eq!(stage.acts(), ["spawn a", "spawn b", "kill b 15"]);
    stage.signal(15);
    assert_eq!(stage.acts(), [] as [&str; 0], "it stops already");
    stage.seconds(1);
    stage.signal(15);
    assert_eq!(stage.acts(), ["kill b 9"]);
    stage.killed("b", 9);
    assert_eq!(stage.exit, Some(3));
}

#[test]
fn s2_a_job_waits_for_the_catalog_to_let_it_go_but_not_for_long() {
    let web = "{ name: 'web', exec: 'x', port: 80, initial_status: 'passing', \
               health: { exec: 'c', interval: 5, ttl: 15 } }, { name: 'b', exec: 'x' }";
    let mut stage = Stage::running(web);
    stage.catalog_answers = false;
    stage.look();
    stage.signal(15);
    assert_eq!(stage.acts(), ["cancel check", "advertise web absent", "kill b 15"]);
    stage.millis(999);
    assert_eq!(stage.acts(), [] as [&str; 0]);
    stage.millis(1);
    assert_eq!(stage.acts(), ["kill web 15"], "a Consul that is away");
    let mut stage = Stage::running(web);
    stage.look();
    stage.signal(15);
    assert_eq!(stage.acts(), ["cancel check", "advertise web absent", "kill b 15", "kill web 15"]);
}

#[test]
fn s2_a_quarter_of_a_short_stop_time_is_all_the_catalog_gets() {
    let mut plan = plan(
        "{ stopTimeout: '1s', jobs: [{ name: 'web', exec: 'x', port: 80, initial_status: 'passing', \
           health: { exec: 'c', interval: 5, ttl: 15 } }] }",
    );
    plan.jobs[0].stop.drain = std::time::Duration::from_millis(100);
    let mut stage = Stage::new(plan);
    stage.input(Input::Ready);
    stage.catalog_answers = false;
    stage.signal(15);
    stage.look();
    stage.millis(349);
    assert_eq!(stage.acts(), [] as [&str; 0]);
    stage.millis(1);
    assert_eq!(stage.acts(), ["kill web 15"], "a quarter, and then it drains");
}

#[test]
fn s5_a_hook_that_fails_does_not_speak_for_the_work() {
    let jobs =
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }";
    for (work, hook, code) in [(3, 4, 3), (0, 4, 4), (0, 0, 0), (3, 0, 3)] {
        let mut stage = Stage::running(jobs);
        stage.exit("a", work);
        stage.exit("hook", hook);
        assert_eq!(stage.exit, Some(code));
    }
    let after =
        "{ name: 'a', exec: 'x' }, { name: 'after', exec: 'x', when: { source: 'a', once: 'stopped' } }";
    for (work, hook, code) in [(3, 4, 3), (0, 4, 4)] {
        let mut stage = Stage::running(after);
        stage.exit("a", work);
        stage.exit("after", hook);
        assert_eq!(stage.exit, Some(code));
    }
}

#[test]
fn s5_w5_to_give_up_is_no_failure() {
    let mut stage = Stage::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitFailed', timeout: '1s' } }",
    );
    stage.seconds(1);
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0));
}
