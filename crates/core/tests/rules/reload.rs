//! R1–R4: reload.

use std::time::Duration;

use containerpilot_core::event::Code;
use containerpilot_core::ids::{JobIx, LockIx, RunId};
use containerpilot_core::lock_report::LockReport;
use containerpilot_core::plan::diff::Changes;
use containerpilot_core::request::Refusal;
use containerpilot_core::{Input, Reply, Request, RequestId};

use crate::harness::{Harness, plan};

pub(crate) fn reload(harness: &mut Harness, jobs: &str) {
    let mut plan = plan(&format!("{{ jobs: [{jobs}] }}"));
    plan.logging.level = containerpilot_core::plan::Level::Debug;
    harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(plan)) });
}

fn changes(kept: &[&str], restarted: &[&str], started: &[&str], stopped: &[&str]) -> Reply {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Reply::Reloaded(Changes {
        kept: names(kept),
        restarted: names(restarted),
        started: names(started),
        stopped: names(stopped),
        ..Changes::default()
    })
}

const A: &str = "{ name: 'a', exec: 'x' }";
const B: &str = "{ name: 'b', exec: 'x' }";

#[test]
fn r3_reloading_the_same_plan_changes_nothing() {
    let jobs = "{ name: 'web', exec: 'x', port: 80, health: { exec: 'c', interval: 5, ttl: 15 } }, \
                { name: 'cron', exec: 'x', when: { interval: '10s' } }";
    let mut harness = Harness::running(jobs);
    harness.finish_check(true);
    harness.take_output();
    let deadline = harness.core.next_deadline();
    reload(&mut harness, jobs);
    assert_eq!(harness.take_output(), [] as [&str; 0]);
    assert_eq!(harness.replies, [changes(&["web", "cron"], &[], &[], &[])]);
    assert_eq!(harness.core.next_deadline(), deadline);
}

#[test]
fn r3_unchanged_jobs_keep_running_and_only_changed_ones_see_startup() {
    let kept = "{ name: 'kept', exec: 'x', when: { event: 'startup', each: 'startup' }, \
                 health: { exec: 'c', interval: 5, ttl: 15 }, restarts: 0 }";
    let kept = kept.replace("event: 'startup', ", "");
    let mut harness =
        Harness::running(&format!("{{ name: 'gone', exec: 'x' }}, {{ name: 'other', exec: 'x' }}, {kept}"));
    harness.finish_check(true);
    let pid = harness.status("kept").pid;
    harness.take_output();
    reload(&mut harness, &format!("{kept}, {{ name: 'other', exec: 'y' }}, {{ name: 'new', exec: 'x' }}"));
    assert_eq!(harness.take_effects(), ["kill gone 15", "kill other 15"]);
    harness.exit_on("gone", 15);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "not before all have stopped");
    harness.exit_on("other", 15);
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn other", "spawn new"]);
    assert_eq!(harness.replies, [changes(&["kept"], &["other"], &["new"], &["gone"])]);
    assert_eq!((harness.status("kept").pid, harness.status("kept").healthy), (pid, Some(true)));
    assert_eq!(harness.status("other").generation, 1);
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["check check.kept"], "its timers have moved");
    harness.exit("kept", 0);
    assert_eq!(harness.status("kept").word(), "complete", "its process has moved");
}

#[test]
fn r3_stop_hooks_of_replaced_jobs_run_and_stay() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }";
    let mut harness = Harness::running(&format!("{hook}, {A}"));
    for argument in ["1", "2"] {
        harness.take_output();
        reload(&mut harness, &format!("{hook}, {{ name: 'a', exec: 'x {argument}' }}"));
        assert_eq!(harness.take_effects(), ["spawn hook"]);
        harness.exit("hook", 0);
        assert_eq!(harness.take_effects(), ["kill a 15"]);
        harness.exit_on("a", 15);
        assert_eq!(harness.take_effects(), ["plan replaced", "spawn a"]);
    }
}

#[test]
fn r3_s15_replaced_jobs_that_do_not_stop_in_time_are_killed() {
    let hook = "{ name: 'hook', exec: 'x', timeout: '20s', when: { source: 'a', once: 'stopping' } }";
    let mut harness = Harness::running(&format!("{hook}, {A}"));
    harness.take_output();
    reload(&mut harness, hook);
    harness.seconds(19);
    assert_eq!(harness.take_effects(), ["spawn hook"], "the hook has its own time");
    harness.seconds(1);
    assert_eq!(harness.take_effects(), ["kill hook 9"]);
    harness.exit_on("hook", 9);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill a 9"], "a job that hangs does not block it");
    harness.exit_on("a", 9);
    assert_eq!(harness.take_effects()[0], "plan replaced");
}

#[test]
fn r3_a_job_that_changes_when_others_are_killed_has_the_same_time() {
    let env = "{ name: 'env', do: { setEnv: { K: 'v' } }, when: { source: 'a', once: 'exitFailed' } }";
    let web = "{ name: 'web', exec: 'x', drain: '60s' }";
    let mut harness = Harness::running(&format!("{A}, {env}, {web}"));
    harness.take_output();
    reload(&mut harness, &format!("{{ name: 'a', exec: 'y' }}, {env}, {web}"));
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill a 9"]);
    harness.exit_on("a", 9);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "it drains, because its variables have changed");
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill web 9"], "a drain does not hold up the reload");
    harness.exit_on("web", 9);
    assert_eq!(harness.take_effects()[0], "plan replaced");
}

#[test]
fn r3_a_process_that_was_killed_for_a_reload_is_not_killed_again() {
    let mut harness = Harness::running(&format!("{A}, {B}"));
    harness.take_output();
    reload(&mut harness, B);
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill a 15", "kill a 9"]);
    reload(&mut harness, "{ name: 'b', exec: 'y' }");
    harness.seconds(5);
    let killed: Vec<String> = harness.take_effects().into_iter().filter(|one| one.ends_with(" 9")).collect();
    assert_eq!(killed, ["kill b 9"]);
}

#[test]
fn r3_s2_a_reload_ended_by_a_shutdown_kills_no_further_job() {
    let hook = "{ name: 'hook', exec: 'x', timeout: '1s', when: { source: 'main', each: 'stopping' } }";
    let main = "{ name: 'main', exec: 'x', onSuccess: 'shutdown' }";
    let late = "{ name: 'late', exec: 'x', when: { source: 'main', once: 'exitSuccess' } }";
    let mut harness = Harness::running(&format!("{main}, {hook}, {late}"));
    harness.starts_succeed = false;
    harness.take_output();
    harness.exit("main", 0);
    assert_eq!(harness.take_effects(), ["spawn late", "spawn hook"]);
    reload(&mut harness, hook);
    // Main waits for its hook and is killed for the reload; its exit shuts the container down.
    harness.seconds(6);
    assert!(matches!(harness.replies[..], [Reply::Refused(_)]), "{:?}", harness.replies);
    assert_eq!(harness.log.iter().filter(|entry| entry.contains("for the reload")).count(), 1);
    let effects = harness.take_effects();
    assert!(effects.contains(&"kill late 15".to_owned()), "the shutdown has its own timeout: {effects:?}");
    harness.input(Input::Started { run: RunId(2), pid: 7 });
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
}

#[test]
fn r3_new_jobs_get_the_events_that_hold_already() {
    let db = "{ name: 'db', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }, { name: 'setup', exec: 'x' }";
    let mut harness = Harness::running(db);
    harness.finish_check(true);
    harness.exit("setup", 0);
    harness.take_output();
    reload(
        &mut harness,
        &format!(
            "{db}, {{ name: 'app', exec: 'x', when: {{ source: 'db', once: 'healthy' }} }}, \
             {{ name: 'late', exec: 'x', when: {{ source: 'setup', once: 'exitSuccess' }} }}, \
             {{ name: 'both', exec: 'x', when: {{ all: [{{ source: 'setup', event: 'exitSuccess' }}, {{ source: 'db', event: 'healthy' }}] }} }}, \
             {{ name: 'sad', exec: 'x', when: {{ source: 'db', once: 'unhealthy' }} }}"
        ),
    );
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn app", "spawn late", "spawn both"]);
    assert_eq!(harness.status("sad").word(), "waiting");
}

#[test]
fn r3_unreachable_jobs_get_a_new_generation() {
    let app = "{ name: 'app', exec: 'x', when: { source: 'b', once: 'exitSuccess' } }";
    let mut harness = Harness::running(&format!("{A}, {app}"));
    assert_eq!(harness.status("app").word(), "skipped");
    reload(&mut harness, &format!("{A}, {app}, {B}"));
    assert_eq!(harness.status("app").word(), "waiting");
    harness.exit("b", 0);
    assert!(harness.has_process("app"));
}

#[test]
fn r3_complete_and_stopped_jobs_stay_so() {
    let mut harness = Harness::running(&format!("{A}, {B}"));
    harness.exit("a", 0);
    harness.request(Request::Stop(JobIx(1)));
    harness.exit_on("b", 15);
    harness.take_output();
    reload(&mut harness, &format!("{B}, {A}, {{ name: 'c', exec: 'x' }}"));
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn c"]);
    assert_eq!((harness.status("a").word(), harness.status("b").word()), ("complete", "stopped"));
    harness.exit("c", 0);
    assert_eq!(harness.exit, None, "b may be started again");
}

#[test]
fn r4_concurrent_reloads_are_merged_and_the_last_plan_wins() {
    let mut harness = Harness::running(A);
    for nth in 0..100 {
        reload(&mut harness, &format!("{{ name: 'a', exec: 'x {nth}' }}"));
    }
    harness.take_output();
    harness.exit_on("a", 15);
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn a"]);
    assert_eq!(harness.replies, vec![changes(&[], &["a"], &[], &[]); 100]);
    let exec = harness.core.plan().jobs[0].exec.program().cloned().unwrap();
    assert_eq!(exec.arguments, ["99"]);
}

#[test]
fn r4_a_reload_back_to_the_old_plan_restarts_stopped_jobs() {
    let mut harness = Harness::running(&format!("{A}, {B}"));
    reload(&mut harness, B);
    reload(&mut harness, &format!("{A}, {B}"));
    harness.take_output();
    harness.exit_on("a", 15);
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn a"]);
    assert_eq!(harness.replies.last(), Some(&changes(&["b"], &["a"], &[], &[])));
}

#[test]
fn r4_a_shutdown_refuses_new_and_pending_reloads() {
    let refused = Reply::Refused(Refusal::ShuttingDown);
    let mut harness = Harness::running(&format!("{A}, {B}"));
    reload(&mut harness, B);
    harness.signal(15);
    assert_eq!(harness.replies.last(), Some(&refused));
    reload(&mut harness, A);
    assert_eq!(harness.replies, [refused.clone(), refused]);
    harness.exit_on("a", 15);
    harness.exit_on("b", 15);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn r4_a_reload_before_startup_waits_for_it() {
    let mut harness = Harness::jobs(A);
    reload(&mut harness, B);
    harness.input(Input::Ready);
    harness.exit_on("a", 15);
    assert!(harness.has_process("b"));
    assert_eq!(harness.replies, [changes(&[], &[], &["b"], &["a"])]);
}

#[test]
fn r3_the_causes_of_continuing_runs_are_kept() {
    let b = "{ name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }";
    let mut harness = Harness::running(&format!("{A}, {b}"));
    harness.exit("a", 0);
    reload(&mut harness, b);
    let explained = harness.core.explain(JobIx(0), None).sentences();
    assert_eq!(explained.last().map(String::as_str), Some("started by a exitSuccess, caused by startup"));
}

#[test]
fn p7_variables_set_by_putenv_survive_a_reload() {
    let a = "{ name: 'a', exec: 'x', env: { K: 'own' } }";
    let mut harness = Harness::running(a);
    put(&mut harness, "K", "v");
    reload(&mut harness, &format!("{B}, {a}"));
    let pid = harness.status("a").pid.unwrap().to_string();
    let variables: Vec<_> = harness.environment.iter().collect();
    assert!(
        variables.contains(&("K", "v")) && variables.contains(&("CONTAINERPILOT_A_PID", pid.as_str())),
        "{variables:?}"
    );
}

fn put(harness: &mut Harness, name: &str, value: &str) {
    harness.request(Request::SetVariables(vec![(name.into(), Some(value.into()))]));
    harness.replies.clear();
}

#[test]
fn r3_a_reload_restarts_processes_whose_variables_have_changed() {
    let own = "{ name: 'own', exec: 'x', env: { K: 'mine' } }";
    let each = "{ name: 'each', exec: 'x', when: { source: 'a', each: 'healthy' } }";
    let tick = "{ name: 'tick', exec: 'x', when: { interval: '10s' } }";
    let done = "{ name: 'done', exec: 'x' }";
    let jobs = format!("{A}, {own}, {each}, {tick}, {done}");
    let mut harness = Harness::running(&jobs);
    harness.exit_on("done", 0);
    put(&mut harness, "K", "v");
    harness.take_effects();
    let new = plan(&format!("{{ jobs: [{jobs}] }}"));
    let Reply::Reloaded(expected) = changes(&["own", "each", "tick", "done"], &["a"], &[], &[]) else {
        unreachable!()
    };
    assert_eq!(harness.core.changes(&new), expected, "the dry run says so");
    reload(&mut harness, &jobs);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
    harness.exit_on("a", 15);
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn a"]);
    assert!(harness.environment.iter().any(|one| one == ("K", "v")));
    assert_eq!(harness.replies, [Reply::Reloaded(expected)]);
    // It has them now, and the same value is no change.
    put(&mut harness, "K", "v");
    reload(&mut harness, &jobs);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    // There and back again is none, either.
    put(&mut harness, "K", "w");
    put(&mut harness, "K", "v");
    reload(&mut harness, &jobs);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    // Unsetting it is one.
    put(&mut harness, "K", "");
    reload(&mut harness, &jobs);
    assert_eq!(harness.take_effects(), ["kill a 15"]);
}

#[test]
fn r3_new_variables_neither_restart_a_stopped_job_nor_count_for_scale() {
    let jobs = format!("{A}, {{ name: 'b', exec: 'x', replicas: 1 }}");
    let mut harness = Harness::running(&jobs);
    harness.request(Request::Stop(JobIx(0)));
    put(&mut harness, "K", "v");
    harness.take_effects();
    harness.request(Request::Scale("b".into(), 2));
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn b-2"], "b-1 keeps its process");
    reload(&mut harness, &jobs);
    assert_eq!(harness.take_effects(), ["kill b-1 15"], "a is stopped already");
    harness.exit_on("a", 15);
    harness.exit_on("b-1", 15);
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn b-1"], "a stays stopped");
}

#[test]
fn c6_a_reload_restarts_all_coprocesses_and_resets_their_restarts() {
    let coprocess = |mut plan: containerpilot_core::plan::Plan| {
        plan.jobs[1].role = containerpilot_core::plan::Role::Coprocess;
        plan
    };
    let text =
        "{ jobs: [{ name: 'a', exec: 'x' }, { name: 'co', exec: 'x', restarts: 1, restartBackoff: false }] }";
    let mut harness = Harness::new(coprocess(plan(text)));
    harness.input(Input::Ready);
    for _ in 0..2 {
        harness.exit("co", 1);
        harness.take_output();
        harness.input(Input::Request {
            id: RequestId(1),
            request: Request::Reload(Box::new(coprocess(plan(text)))),
        });
        harness.exit_on("co", 15);
        assert_eq!(harness.take_effects(), ["kill co 15", "plan replaced", "spawn co"]);
        assert_eq!(harness.replies.pop(), Some(changes(&["a"], &["co"], &[], &[])));
    }
    harness.exit("co", 1);
    harness.exit("co", 1);
    harness.exit("a", 0);
    assert_eq!(harness.exit, Some(0), "it neither keeps the supervisor running nor sets its exit code");
}

#[test]
fn r3_stop_hooks_run_again_for_the_next_generation() {
    let others =
        "{ name: 'work', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopped' } }";
    let mut harness = Harness::running(&format!("{others}, {A}"));
    for argument in ["1", "2"] {
        harness.exit("a", 0);
        harness.exit("hook", 0);
        assert_eq!(harness.status("hook").word(), "complete", "there is no job to wait for");
        harness.take_output();
        reload(&mut harness, &format!("{others}, {{ name: 'a', exec: 'x {argument}' }}"));
        assert_eq!(harness.take_effects(), ["plan replaced", "spawn a"]);
        assert_eq!(harness.status("hook").word(), "waiting");
    }
    reload(&mut harness, others);
    harness.exit_on("a", 15);
    assert_eq!(harness.take_effects(), ["kill a 15", "spawn hook", "plan replaced"]);
}

#[test]
fn r3_w7_an_event_listed_twice_that_holds_already_runs_a_job_once() {
    let web = "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }";
    let mut harness = Harness::running(web);
    harness.finish_check(true);
    harness.take_output();
    let event = "{ source: 'web', event: 'healthy' }";
    reload(
        &mut harness,
        &format!("{web}, {{ name: 'new', exec: 'x', when: {{ any: [{event}, {event}], each: true }} }}"),
    );
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn new"]);
    harness.exit("new", 0);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
}

#[test]
fn r3_an_exit_that_will_be_sent_again_is_not_sent_to_new_jobs() {
    let task = "{ name: 'task', exec: 'x', restarts: 'unlimited' }";
    let mut harness = Harness::running(task);
    // It restarts in the same step.
    harness.exit("task", 0);
    harness.take_output();
    reload(
        &mut harness,
        &format!("{task}, {{ name: 'new', exec: 'x', when: {{ source: 'task', once: 'exitSuccess' }} }}"),
    );
    assert_eq!(harness.take_effects(), ["plan replaced"]);
    harness.exit("task", 0);
    assert_eq!(harness.take_effects(), ["spawn new"]);
}

#[test]
fn r3_w12_a_changed_watch_is_not_healthy_until_it_reports_so() {
    let jobs = "{ name: 'work', exec: 'x' }, { name: 'both', exec: 'x', when: { all: \
                [{ source: 'watch.db', event: 'healthy' }, { source: 'work', event: 'exitSuccess' }] } }";
    let text = |interval: u32| {
        format!("{{ consul: 'x', jobs: [{jobs}], watches: [{{ name: 'db', interval: {interval} }}] }}")
    };
    let mut harness = Harness::new(plan(&text(1)));
    harness.input(Input::Ready);
    harness.instances(1);
    let mut other = plan(&text(2));
    other.logging.level = containerpilot_core::plan::Level::Debug;
    harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(other)) });
    harness.take_output();
    harness.exit("work", 0);
    assert_eq!(harness.take_effects(), [] as [&str; 0], "the new watch has no answer yet");
    harness.instances(1);
    assert_eq!(harness.take_effects(), ["spawn both"]);
}

#[test]
fn r5_h3_a_check_without_a_process_does_not_wait_for_one_that_was_replaced() {
    let telemetry = "telemetry: { port: 9090, interfaces: 'static:10.0.0.1' }";
    let checked = "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }";
    let mut harness = Harness::new(plan(&format!("{{ {telemetry}, jobs: [{checked}] }}")));
    harness.input(Input::Ready);
    let mut other = harness.core.plan().clone();
    let idle = other.jobs.last().and_then(|job| job.health.clone());
    other.jobs[0].health = idle;
    harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(other)) });
    assert_eq!(harness.running_checks(), 1, "the cancelled check has not finished");
    assert_eq!(harness.status("web").healthy, Some(true));
}

#[test]
fn t1_r3_telemetry_is_healthy_and_registered_only_when_it_listens() {
    let with = |port: u16| {
        plan(&format!("{{ telemetry: {{ port: {port}, interfaces: 'static:10.0.0.1' }}, jobs: [{A}] }}"))
    };
    let reload = |harness: &mut Harness, plan| {
        harness.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(plan)) });
    };
    let mut harness = Harness::running(A);
    harness.take_output();
    reload(&mut harness, with(9090));
    assert_eq!(harness.status("containerpilot").healthy, None);
    harness.input(Input::TelemetryListens(Err("port 9090: EADDRINUSE".into())));
    harness.seconds(60);
    assert_eq!(harness.status("containerpilot").healthy, Some(false));
    assert!(!harness.take_effects().iter().any(|effect| effect.starts_with("advertise")));
    let checks = &harness.core.job_overview(JobIx(1)).checks;
    let message = checks[0].last.as_ref().map(|last| last.result.clone());
    assert_eq!(message, Some(Err("port 9090: EADDRINUSE".into())));
    harness.input(Input::TelemetryListens(Ok(())));
    assert_eq!(harness.status("containerpilot").healthy, Some(true));
    assert_eq!(harness.take_effects(), ["advertise containerpilot passing"]);
    // A reload that does not move it does not change that; one that moves it does.
    let same = harness.core.plan().clone();
    reload(&mut harness, same);
    assert_eq!(harness.status("containerpilot").healthy, Some(true));
    reload(&mut harness, with(9091));
    harness.input(Input::Deregistered { job: JobIx(1) });
    assert_eq!(harness.status("containerpilot").healthy, None);
    harness.input(Input::TelemetryListens(Ok(())));
    assert_eq!(harness.status("containerpilot").healthy, Some(true));
}

#[test]
fn r3_p3_the_count_of_oom_kills_survives_a_reload() {
    let mut harness = Harness::running(A);
    harness.input(Input::OutOfMemory { processes: 1 });
    reload(&mut harness, &format!("{A}, {B}"));
    harness.exit_on("a", 9);
    assert!(harness.log.iter().any(|line| line.contains("out of memory")), "{:?}", harness.log);
}

#[test]
fn r3_a_process_that_sigkill_does_not_end_does_not_block_a_reload() {
    let mut harness = Harness::running(&format!("{A}, {B}"));
    harness.take_output();
    reload(&mut harness, &format!("{{ name: 'a', exec: 'y' }}, {B}"));
    harness.seconds(5);
    assert_eq!(harness.take_effects(), ["kill a 15", "kill a 9"]);
    harness.millis(1_999);
    assert_eq!(harness.take_effects(), [] as [&str; 0]);
    harness.millis(1);
    assert_eq!(harness.take_effects(), ["abandon a", "plan replaced", "spawn a"]);
    assert_eq!(harness.replies, [changes(&["b"], &["a"], &[], &[])]);
}

#[test]
fn r3_a_new_job_sees_that_its_source_is_unhealthy_already() {
    let web = "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }";
    let mut harness = Harness::running(web);
    harness.finish_check(true);
    harness.seconds(5);
    harness.finish_check(false);
    harness.take_output();
    reload(
        &mut harness,
        &format!("{web}, {{ name: 'alert', exec: 'x', when: {{ source: 'web', once: 'unhealthy' }} }}"),
    );
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn alert"]);
    let value =
        |name: &str| harness.environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let event = [value("CONTAINERPILOT_EVENT"), value("CONTAINERPILOT_EVENT_SOURCE")];
    assert_eq!(event, [Some("unhealthy"), Some("web")], "it is started by that event");
}

#[test]
fn r3_w12_conditions_that_hold_survive_a_reload_of_other_jobs() {
    let jobs = "{ name: 'db', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }, { name: 'work', exec: 'x' }, \
                { name: 'both', exec: 'x', when: { all: \
                [{ source: 'db', event: 'healthy' }, { source: 'work', event: 'exitSuccess' }] } }";
    let mut harness = Harness::running(jobs);
    harness.finish_check(true);
    reload(&mut harness, &format!("{jobs}, {{ name: 'new', exec: 'x' }}"));
    harness.take_output();
    harness.exit("work", 0);
    assert_eq!(harness.take_effects(), ["spawn both"]);
}

#[test]
fn r3_t3_event_counts_of_continuing_jobs_survive_a_reload() {
    let mut harness = Harness::running(&format!("{A}, {{ name: 'old', exec: 'x' }}, {B}"));
    harness.exit("b", 3);
    harness.exit("old", 3);
    reload(&mut harness, &format!("{B}, {A}"));
    let overview = harness.core.overview();
    let failed = overview.events.iter().filter(|count| count.code.name() == "exitFailed");
    assert_eq!(failed.map(|count| (count.source.as_str(), count.count)).collect::<Vec<_>>(), [("b", 1)]);
}

#[test]
fn r3_events_of_removed_jobs_keep_their_names() {
    let c = "{ name: 'c', exec: 'x' }";
    let mut harness = Harness::running(&format!("{A}, {B}, {c}"));
    harness.exit("a", 0);
    harness.exit("b", 0);
    reload(&mut harness, &format!("{B}, {c}"));
    reload(&mut harness, c);
    let sources: Vec<String> = harness
        .core
        .journal()
        .events()
        .filter(|event| event.code == Code::ExitSuccess)
        .map(|event| harness.core.origin_name(event.origin).to_string())
        .collect();
    assert_eq!(sources, ["a", "b"]);
}

#[test]
fn r3_a_new_job_sees_that_its_source_was_not_started_in_time() {
    let jobs = "{ name: 'a', exec: 'x', when: { source: 'b', once: 'exitSuccess', timeout: '1s' } }, \
                { name: 'b', exec: 'x' }";
    let mut harness = Harness::running(jobs);
    harness.seconds(1);
    harness.take_output();
    reload(
        &mut harness,
        &format!("{jobs}, {{ name: 'c', exec: 'x', when: {{ source: 'a', once: 'timerExpired' }} }}"),
    );
    assert_eq!(harness.take_effects(), ["plan replaced", "spawn c"]);
}

#[test]
fn r3_a_changed_job_that_waits_for_its_condition_is_not_called_restarted() {
    let mut harness = Harness::running(&format!("{A}, {B}, {{ name: 'c', exec: 'x' }}"));
    let never = "{ name: 'a', exec: 'x', when: { source: 'SIGUSR2' } }";
    let holds = "{ name: 'c', exec: 'y', when: { source: 'b', once: 'exitSuccess' } }";
    harness.exit("b", 0);
    reload(&mut harness, &format!("{never}, {B}, {holds}"));
    harness.exit("a", 0);
    harness.exit("c", 0);
    let Some(Reply::Reloaded(changes)) = harness.replies.last() else { panic!("{:?}", harness.replies) };
    assert_eq!(
        (&changes.restarted[..], &changes.waiting[..]),
        (&["c".to_owned()][..], &["a".to_owned()][..])
    );
    assert_eq!((harness.status("a").word(), harness.status("c").word()), ("waiting", "running"));
}

#[test]
fn r3_h11_a_new_job_runs_once_for_what_a_process_says_before_its_start() {
    let web = "{ name: 'web', exec: 'x', ready: 'notify' }";
    let follower = "{ name: 'b', exec: 'x', when: { source: 'web', each: 'ready' } }";
    let mut harness = Harness::jobs(web);
    harness.starts_succeed = false;
    harness.input(Input::Ready);
    harness.notify("web", "READY=1");
    harness.take_output();
    reload(&mut harness, &format!("{web}, {follower}"));
    assert_eq!(harness.take_effects(), ["plan replaced"], "`ready` was not sent yet");
    harness.start("web");
    assert!(harness.take_effects().contains(&"spawn b".to_owned()));
}

#[test]
fn r3_new_jobs_get_only_the_events_of_watches_locks_and_maintenance_that_hold() {
    let text = |jobs: &str| {
        format!(
            "{{ consul: 'localhost', watches: [{{ name: 'db', interval: 1 }}], \
               locks: [{{ name: 'primary', ttl: '20s' }}], jobs: [{A} {jobs}] }}"
        )
    };
    let events = [
        ("source: 'watch.db', once: 'changed'", "w1"),
        ("source: 'watch.db', once: 'healthy'", "w2"),
        ("source: 'watch.db', once: 'unhealthy'", "w3"),
        ("source: 'lock.primary', once: 'acquired'", "l1"),
        ("source: 'lock.primary', once: 'lost'", "l2"),
        ("once: 'enterMaintenance'", "m1"),
        ("once: 'exitMaintenance'", "m2"),
    ];
    let followers =
        events.map(|(when, name)| format!(", {{ name: '{name}', exec: 'x', when: {{ {when} }} }}"));
    let spawned = |prepare: &dyn Fn(&mut Harness)| {
        let mut harness = Harness::new(plan(&text("")));
        harness.input(Input::Ready);
        prepare(&mut harness);
        harness.take_output();
        harness.request(Request::Reload(Box::new(plan(&text(&followers.concat())))));
        harness
            .take_effects()
            .iter()
            .filter_map(|line| line.strip_prefix("spawn "))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let hold = |harness: &mut Harness| {
        let report = LockReport::Held { fencing: 1, until: harness.now + Duration::from_secs(20) };
        harness.input(Input::Lock { lock: LockIx(0), report });
    };
    assert_eq!(spawned(&|_| {}), "");
    assert_eq!(spawned(&|harness| harness.instances(1)), "w1 w2");
    assert_eq!(spawned(&|harness| harness.instances(0)), "");
    assert_eq!(spawned(&hold), "l1");
    assert_eq!(spawned(&|harness| harness.maintenance(true)), "m1");
}
