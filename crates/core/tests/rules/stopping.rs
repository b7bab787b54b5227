//! S1–S7: stopping.

use containerpilot_core::effect::Effect;
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::{StartError, StartErrorKind};
use containerpilot_core::plan::{Level, OnCompletion, Plan, Role, Signal};
use containerpilot_core::{Core, Input, Phase, Request, Time};

use crate::harness::{Harness, plan};

#[test]
fn s1_sigterm_stops_all_jobs_and_the_supervisor_exits_with_the_last() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', restarts: 'unlimited' }");
    harness.take_output();
    harness.signal(15);
    assert_eq!(
        harness.take_output(),
        ["event global shutdown", "event a stopping", "event b stopping", "kill a 15", "kill b 15"]
    );
    harness.exit("a", 0);
    assert_eq!(harness.exit, None);
    harness.exit_on("b", 15);
    assert_eq!(
        harness.take_output(),
        ["event a exitSuccess", "event a stopped", "event b exitFailed", "event b stopped", "exit 0"]
    );
}

#[test]
fn s1_a_second_signal_kills() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    harness.signal(15);
    harness.take_output();
    harness.signal(2);
    assert_eq!(harness.take_output(), ["kill a 9"]);
    let output = "received a second stop signal (SIGINT), killing 1 job";
    assert!(harness.log.iter().any(|message| message == output), "{:?}", harness.log);
    harness.exit_on("a", 9);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s1_s8_sigquit_shuts_down() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    harness.take_output();
    harness.signal(3);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 9"], "another signal is the second one");
}

#[test]
fn s1_a_signal_without_a_meaning_is_logged_once_and_ignored() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x' }");
    harness.take_output();
    harness.log.clear();
    for signal in (4..=64).chain(4..=64).filter(|signal| ![9, 10, 12, 15, 17, 18, 19].contains(signal)) {
        harness.signal(signal);
    }
    assert_eq!(harness.take_output(), [] as [&str; 0]);
    assert_eq!(harness.log.len(), 54, "one entry for each signal");
    let alarm = "received SIGALRM, ignored; the stop signals are SIGTERM, SIGINT and SIGQUIT";
    assert!(harness.log.iter().any(|message| message == alarm), "{:?}", harness.log);
    harness.signal(18);
    harness.signal(10);
    assert_eq!(harness.log.len(), 54, "SIGCONT and SIGUSR1 mean something");
}

#[test]
fn s2_the_order_of_a_stop() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', port: 80, stopSignal: 'SIGQUIT', drain: '3s', health: { exec: 'c', interval: 10, ttl: 30 } }, \
         { name: 'pre1', exec: 'x', when: { source: 'web', once: 'stopping' } }, \
         { name: 'pre2', exec: 'x', when: { source: 'web', each: 'stopping' } }, \
         { name: 'post', exec: 'x', when: { source: 'web', once: 'stopped' } }",
    );
    harness.finish_check(true);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["spawn pre1", "spawn pre2"], "the hooks first");
    harness.exit("pre1", 0);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "it waits for all of them");
    harness.exit("pre2", 0);
    assert_eq!(harness.take_effects(), ["advertise web absent"], "then the catalog");
    harness.pass(std::time::Duration::from_millis(2_999));
    assert_eq!(harness.take_effects(), [] as [&str; 0], "then the drain");
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill web 3"], "then its own signal");
    harness.exit("web", 0);
    assert_eq!(
        harness.take_output(),
        [
            "event web exitSuccess",
            "event web unhealthy",
            "event web becameUnhealthy",
            "event web stopped",
            "spawn post"
        ],
        "H7: it was healthy"
    );
    harness.exit("post", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s2_a_job_waits_for_its_hooks_at_most_its_stop_timeout() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x', stopTimeout: '1s' }, { name: 'pre', exec: 'x', when: { source: 'web', once: 'stopping' } }",
    );
    harness.signal(15);
    harness.take_output();
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill web 15"]);
    harness.exit("web", 0);
    assert_eq!(harness.exit, None, "the hook still runs");
    harness.exit("pre", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s2_stop_hooks_run_when_a_job_completes_by_itself() {
    let mut harness = Harness::running(
        "{ name: 'web', exec: 'x' }, { name: 'pre', exec: 'x', when: { source: 'web', once: 'stopping' } }",
    );
    harness.take_output();
    harness.exit("web", 0);
    assert_eq!(harness.take_output(), ["event web exitSuccess", "event web stopping", "spawn pre"]);
    assert_eq!(harness.exit, None);
    harness.exit("pre", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s2_hooks_that_wait_for_each_other_do_not_deadlock() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'a', exec: 'x', when: { source: 'b', once: 'stopping' } }, \
         { name: 'b', exec: 'x', when: { source: 'a', once: 'stopping' } }",
    );
    harness.signal(15);
    harness.exit("main", 0);
    for hook in ["a", "b", "a"] {
        if harness.has_process(hook) {
            harness.exit(hook, 0);
        }
    }
    assert_eq!(harness.exit, Some(0), "without waiting for the stop timeout");
}

#[test]
fn s3_only_stop_events_start_jobs_during_a_shutdown() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x', restarts: 'unlimited' }, \
         { name: 'bye', exec: 'x', when: { once: 'shutdown' } }, \
         { name: 'fail', exec: 'x', when: { source: 'main', each: 'exitFailed' } }, \
         { name: 'tick', exec: 'x', when: { interval: '1s' } }",
    );
    harness.exit("tick", 0);
    harness.take_output();
    harness.signal(15);
    harness.exit("main", 1);
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill main 15", "spawn bye"]);
    harness.exit("bye", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s4_a_job_that_is_starting_is_stopped_too() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 15"], "the signal ends it before it executes its program");
    harness.fail_start("a", StartErrorKind::Killed(Signal::TERM));
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s4_a_start_that_does_not_end_is_given_up_at_the_stop_timeout() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.signal(15);
    harness.take_output();
    harness.millis(4_999);
    assert_eq!(harness.exit, None);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["cancel a", "exit 0"], "nothing waits for its exit");
}

#[test]
fn s2_a_stop_during_a_start_counts_its_stop_timeout_from_the_signal() {
    let mut harness =
        Harness::jobs("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    for job in [JobIx(0), JobIx(1)] {
        harness.request(Request::Stop(job));
    }
    assert_eq!(harness.take_effects()[3..], ["kill a 15", "kill b 15"]);
    harness.seconds(3);
    // It was executed before the signal arrived, and ignores it.
    harness.input(Input::Started { run: RunId(1), pid: 5 });
    harness.seconds(2);
    assert_eq!(harness.take_effects(), ["kill a 9", "cancel b"]);
    assert_eq!((harness.status("a").word(), harness.status("b").word()), ("stopping", "stopped"));
}

#[test]
fn s7_a_signal_during_a_start_is_forwarded_at_once() {
    let mut core = Core::new(Plan::single_program("x".into(), Vec::new()));
    let mut effects = Vec::new();
    core.step(Time::ZERO, Input::Signal(Signal::TERM), &mut effects);
    assert!(effects.is_empty(), "kept until there is a process: {effects:?}");
    core.step(Time::ZERO, Input::Ready, &mut effects);
    let [Effect::Spawn { run, .. }, Effect::Kill { run: killed, signal: Signal::TERM, .. }] = effects[..]
    else {
        panic!("{effects:?}");
    };
    assert_eq!(run, killed);
    let why = StartError { kind: StartErrorKind::Killed(Signal::TERM), message: String::new() };
    effects.clear();
    core.step(Time::ZERO, Input::StartFailed { run, why }, &mut effects);
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Exit(exit) if exit.code == 143)),
        "{effects:?}"
    );
}

#[test]
fn s5_the_exit_code_is_that_of_the_first_job_that_failed() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'c', exec: 'x' }");
    harness.exit("a", 0);
    harness.exit_on("c", 9);
    harness.exit("b", 3);
    assert_eq!(harness.exit, Some(137));
    for (kind, code) in [(StartErrorKind::NotFound, 127), (StartErrorKind::NotExecutable, 126)] {
        let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
        harness.starts_succeed = false;
        harness.input(Input::Ready);
        harness.fail_start("a", kind);
        assert_eq!(harness.exit, Some(code));
    }
}

#[test]
fn s5_a_failure_followed_by_success_does_not_count() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', restarts: 1, restartBackoff: false }");
    harness.exit("a", 3);
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s5_on_failure_and_on_success_stop_the_container() {
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', onFailure: 'shutdown' }, { name: 'b', exec: 'x' }");
    harness.exit("a", 4);
    assert!(harness.take_effects().contains(&"kill b 15".to_owned()));
    harness.exit_on("b", 15);
    assert_eq!(harness.exit, Some(4));
    let mut harness =
        Harness::running("{ name: 'a', exec: 'x', onSuccess: 'shutdown' }, { name: 'b', exec: 'x' }");
    harness.exit("a", 0);
    harness.exit_on("b", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s7_the_container_exits_with_the_code_of_the_main_program() {
    let mut plan =
        plan("{ jobs: [{ name: 'main', exec: 'x' }, { name: 'side', exec: 'x', restarts: 'unlimited' }] }");
    plan.jobs[0].role = Role::Main;
    (plan.jobs[0].on_failure, plan.jobs[0].on_success) = (OnCompletion::Shutdown, OnCompletion::Shutdown);
    let mut harness = Harness::new(plan);
    harness.input(Input::Ready);
    harness.exit("main", 42);
    harness.exit_on("side", 15);
    assert_eq!(harness.exit, Some(42));
}

#[test]
fn s7_without_a_file_every_signal_is_forwarded_to_the_program() {
    let mut plan = plan("{ jobs: [{ name: 'main', exec: 'x' }] }");
    plan.jobs[0].role = Role::Main;
    plan.pass_signals = true;
    let mut harness = Harness::new(plan);
    harness.input(Input::Ready);
    harness.take_output();
    for signal in [1, 2, 15, 28, 10, 15] {
        harness.signal(signal);
        assert_eq!(harness.take_effects(), [format!("kill main {signal}")]);
    }
    harness.exit_on("main", 15);
    assert_eq!(harness.exit, Some(143));
}

#[test]
fn s1_sigterm_before_startup() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    harness.signal(15);
    assert_eq!(harness.exit, Some(0));
    assert!(harness.status("a").state.has_ended());
}

const STUBBORN: &str = "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }";

#[test]
fn s1_the_same_signal_twice_at_once_counts_once() {
    let mut harness = Harness::running(STUBBORN);
    harness.signal(15);
    harness.take_output();
    harness.signal(15);
    harness.millis(99);
    harness.signal(15);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 9", "kill b 9"], "a second request");
}

#[test]
fn s1_a_different_signal_counts_as_the_second() {
    let mut harness = Harness::running(STUBBORN);
    harness.signal(2);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill a 9", "kill b 9"]);
}

#[test]
fn s1_the_first_signal_during_a_shutdown_without_signal_does_not_kill() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', onFailure: 'shutdown' }, { name: 'b', exec: 'x', restarts: 'unlimited' }",
    );
    harness.exit("a", 3);
    assert_eq!(harness.take_effects(), ["spawn a", "spawn b", "kill b 15"]);
    harness.signal(15);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "already stopping");
    harness.seconds(1);
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill b 9"]);
    harness.exit_on("b", 9);
    assert_eq!(harness.exit, Some(3));
}

#[test]
fn s2_a_job_waits_for_its_deregistration_at_most_one_second() {
    let web = "{ name: 'web', exec: 'x', port: 80, initial_status: 'passing', \
               health: { exec: 'c', interval: 5, ttl: 15 } }, { name: 'b', exec: 'x' }";
    let mut harness = Harness::running(web);
    harness.catalog_confirms = false;
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["cancel check", "advertise web absent", "kill b 15"]);
    harness.millis(999);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill web 15"], "an unreachable Consul");
    let mut harness = Harness::running(web);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["cancel check", "advertise web absent", "kill b 15", "kill web 15"]);
}

#[test]
fn s2_a_job_waits_for_its_deregistration_at_most_a_quarter_of_the_stop_timeout() {
    let mut plan = plan(
        "{ stopTimeout: '1s', jobs: [{ name: 'web', exec: 'x', port: 80, initial_status: 'passing', \
           health: { exec: 'c', interval: 5, ttl: 15 } }] }",
    );
    plan.jobs[0].stop.drain = containerpilot_core::plan::Drain::For(std::time::Duration::from_millis(100));
    let mut harness = Harness::new(plan);
    harness.input(Input::Ready);
    harness.catalog_confirms = false;
    harness.signal(15);
    harness.take_output();
    harness.millis(349);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["kill web 15"], "a quarter of the stop timeout, then it drains");
}

#[test]
fn s5_a_failed_hook_counts_only_if_no_work_failed() {
    let jobs =
        "{ name: 'a', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }";
    for (work, hook, code) in [(3, 4, 3), (0, 4, 4), (0, 0, 0), (3, 0, 3)] {
        let mut harness = Harness::running(jobs);
        harness.exit("a", work);
        harness.exit("hook", hook);
        assert_eq!(harness.exit, Some(code));
    }
    let after =
        "{ name: 'a', exec: 'x' }, { name: 'after', exec: 'x', when: { source: 'a', once: 'stopped' } }";
    for (work, hook, code) in [(3, 4, 3), (0, 4, 4)] {
        let mut harness = Harness::running(after);
        harness.exit("a", work);
        harness.exit("after", hook);
        assert_eq!(harness.exit, Some(code));
    }
}

#[test]
fn s5_w5_a_start_timeout_is_not_a_failure() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x', when: { source: 'a', once: 'exitFailed', timeout: '1s' } }",
    );
    harness.seconds(1);
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s2_the_stop_signal_is_logged() {
    let mut harness = Harness::running("{ name: 'a', exec: 'x', stopSignal: 'SIGUSR1' }");
    harness.signal(15);
    assert!(harness.log.iter().any(|line| line == "stopping: sent SIGUSR1"), "{:?}", harness.log);
}

#[test]
fn s3_a_hook_that_has_run_during_the_shutdown_does_not_wait_for_its_other_event() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'b', exec: 'x' }, { name: 'hook', exec: 'x', when: { each: true, any: \
         [{ source: 'a', event: 'stopping' }, { source: 'b', event: 'stopped' }] } }",
    );
    harness.signal(15);
    assert!(harness.has_process("hook"));
    harness.take_output();
    harness.exit("hook", 0);
    assert_eq!(
        harness.take_output(),
        ["event hook exitSuccess", "event hook stopping", "event hook stopped", "kill a 15"]
    );
}

#[test]
fn s3_hook_that_runs_when_the_shutdown_begins_still_runs_for_its_stop_event() {
    let mut harness = Harness::running(
        "{ name: 'db', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'db', each: 'stopped' } }",
    );
    harness.request(Request::Stop(JobIx(0)));
    harness.exit_on("db", 15);
    harness.request(Request::Start(JobIx(0)));
    harness.take_output();
    harness.signal(15);
    harness.exit("hook", 0);
    assert_eq!(harness.take_effects(), ["kill db 15"]);
    harness.exit_on("db", 15);
    assert_eq!(harness.take_effects(), ["spawn hook"]);
    harness.exit("hook", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn s5_failure_of_a_job_that_is_being_stopped_by_hand_is_not_the_exit_code() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x' }, { name: 'repair', exec: 'x', when: { source: 'SIGUSR2' } },
         { name: 'hook', exec: 'x', when: { source: 'repair', once: 'stopping' } }",
    );
    harness.signal(12);
    harness.request(Request::Stop(JobIx(1)));
    assert!(harness.has_process("hook"));
    harness.exit("repair", 7);
    harness.exit("a", 0);
    harness.exit("hook", 0);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn p3_start_that_fails_after_the_stop_signal_is_no_failure() {
    let mut harness = Harness::jobs("{ name: 'a', exec: 'x' }");
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.signal(15);
    harness.fail_start("a", StartErrorKind::NotFound);
    assert_eq!(harness.level_of("failed to start"), Some(Level::Info));
    assert_eq!(harness.exit, Some(0));
}

const MIGRATE: &str = "{ name: 'migrate', exec: 'x' }";

#[test]
fn s13_a_server_that_starts_after_a_stop_holds_the_supervisor_open() {
    let ways = ["restarts: 'unlimited'", "restarts: 1", "health: { exec: 'c', interval: 1, ttl: 5 }"];
    for (event, way) in ["stopping", "stopped"].iter().flat_map(|event| ways.map(|way| (event, way))) {
        let job =
            format!("{{ name: 'web', exec: 'x', {way}, when: {{ source: 'migrate', once: '{event}' }} }}");
        let mut harness = Harness::running(&format!("{MIGRATE}, {job}"));
        harness.exit("migrate", 0);
        harness.seconds(60);
        assert!(harness.has_process("web"), "{event}, {way}");
        assert_eq!(harness.core.phase(), Phase::Running, "{event}, {way}");
    }
}

#[test]
fn s13_a_server_that_starts_after_a_stop_is_stopped_like_any_other_job() {
    let web =
        "{ name: 'web', exec: 'x', restarts: 'unlimited', when: { source: 'migrate', once: 'stopped' } }";
    let mut harness = Harness::running(&format!("{MIGRATE}, {web}"));
    harness.exit("migrate", 0);
    harness.take_output();
    harness.signal(15);
    assert_eq!(harness.take_effects(), ["kill web 15"], "at once, as it is no hook");
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill web 9"], "within one stop timeout");

    let mut harness = Harness::running(&format!("{MIGRATE}, {web}"));
    harness.take_output();
    harness.signal(15);
    harness.exit("migrate", 0);
    assert_eq!(harness.take_effects(), ["kill migrate 15", "exit 0"], "a shutdown starts no server");
}

#[test]
fn s13_s3_a_hook_with_a_limit_of_restarts_still_runs_during_a_shutdown() {
    let hook = "{ name: 'hook', exec: 'x', restarts: 1, when: { source: 'migrate', once: 'stopped' } }";
    let last = "{ name: 'last', exec: 'x', restarts: 'unlimited', when: { once: 'shutdown' } }";
    let mut harness = Harness::running(&format!("{MIGRATE}, {hook}, {last}"));
    harness.signal(15);
    harness.exit("migrate", 0);
    assert!(harness.has_process("hook") && harness.has_process("last"));
}

#[test]
fn s13_a_failed_server_decides_the_exit_code() {
    let web = "{ name: 'web', exec: 'x', restarts: 1, when: { source: 'migrate', once: 'stopped' } }";
    let mut harness = Harness::running(&format!("{MIGRATE}, {web}"));
    harness.exit("migrate", 0);
    harness.exit("web", 3);
    harness.exit("web", 4);
    assert_eq!(harness.exit, Some(4));
}

/// Of the hooks of one event, the first one ends the container: it may not start again. The others run.
#[test]
fn s3_e3_a_hook_after_the_one_that_ends_the_container_runs() {
    for code in ["onFailure: 'shutdown',", ""] {
        let mut harness = Harness::running(&format!(
            "{{ name: 'main', exec: 'x' }},
             {{ name: 'limited', exec: 'x', when: {{ source: 'main', each: 'stopped' }}, {code}
                startLimit: {{ count: 1, within: '1h', then: 'shutdown' }} }},
             {{ name: 'hook', exec: 'x', when: {{ source: 'main', each: 'stopped' }} }},
             {{ name: 'other', exec: 'x', when: {{ source: 'main', each: 'exitSuccess' }} }}"
        ));
        harness.request(Request::Start(JobIx(1)));
        harness.exit("limited", 1);
        harness.exit("main", 0);
        assert_eq!(harness.core.phase(), Phase::Stopping, "{:?}", harness.log);
        assert!(harness.has_process("hook"), "{:?}", harness.log);
        harness.exit("hook", 0);
        if harness.has_process("other") {
            harness.exit_on("other", 15);
        }
        assert_eq!(harness.exit, Some(1));
    }
}
