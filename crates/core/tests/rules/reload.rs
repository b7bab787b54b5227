//! Another plan while the supervisor runs (R1–R4).

use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::plan::diff::Changes;
use containerpilot_core::{Input, Reply, Request, RequestId};

use crate::stage::{Stage, plan};

fn reload(stage: &mut Stage, jobs: &str) {
    let mut plan = plan(&format!("{{ jobs: [{jobs}] }}"));
    plan.logging.level = containerpilot_core::plan::Level::Debug;
    stage.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(plan)) });
}

fn changes(kept: &[&str], restarted: &[&str], started: &[&str], stopped: &[&str]) -> Reply {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Reply::Reloaded(Changes {
        kept: names(kept),
        restarted: names(restarted),
        started: names(started),
        stopped: names(stopped),
    })
}

const A: &str = "{ name: 'a', exec: 'x' }";
const B: &str = "{ name: 'b', exec: 'x' }";

#[test]
fn r3_a_reload_to_the_same_plan_changes_nothing() {
    let jobs = "{ name: 'web', exec: 'x', port: 80, health: { exec: 'c', interval: 5, ttl: 15 } }, \
                { name: 'cron', exec: 'x', when: { interval: '10s' } }";
    let mut stage = Stage::running(jobs);
    stage.checked(true);
    stage.look();
    let deadline = stage.core.next_deadline();
    reload(&mut stage, jobs);
    assert_eq!(stage.look(), [] as [&str; 0]);
    assert_eq!(stage.answers, [changes(&["web", "cron"], &[], &[], &[])]);
    assert_eq!(stage.core.next_deadline(), deadline);
}

#[test]
fn r3_unchanged_jobs_go_on_changed_ones_are_replaced_and_only_they_see_startup() {
    let kept = "{ name: 'kept', exec: 'x', when: { event: 'startup', each: 'startup' }, \
                 health: { exec: 'c', interval: 5, ttl: 15 }, restarts: 0 }";
    let kept = kept.replace("event: 'startup', ", "");
    let mut stage =
        Stage::running(&format!("{{ name: 'gone', exec: 'x' }}, {{ name: 'other', exec: 'x' }}, {kept}"));
    stage.checked(true);
    let pid = stage.status("kept").pid;
    stage.look();
    reload(&mut stage, &format!("{kept}, {{ name: 'other', exec: 'y' }}, {{ name: 'new', exec: 'x' }}"));
    assert_eq!(stage.acts(), ["kill gone 15", "kill other 15"]);
    stage.killed("gone", 15);
    assert_eq!(stage.acts(), [] as [&str; 0], "not before all have stopped");
    stage.killed("other", 15);
    assert_eq!(stage.acts(), ["replanned", "spawn other", "spawn new"]);
    assert_eq!(stage.answers, [changes(&["kept"], &["other"], &["new"], &["gone"])]);
    assert_eq!((stage.status("kept").pid, stage.status("kept").healthy), (pid, Some(true)));
    assert_eq!(stage.status("other").generation, 1);
    stage.seconds(5);
    assert_eq!(stage.acts(), ["check check.kept"], "its deadlines are its own");
    stage.exit("kept", 0);
    assert_eq!(stage.status("kept").word(), "complete", "its process is known at its new place");
}

#[test]
fn r3_the_hooks_of_what_is_replaced_run_and_stay() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }";
    let mut stage = Stage::running(&format!("{hook}, {A}"));
    for argument in ["1", "2"] {
        stage.look();
        reload(&mut stage, &format!("{hook}, {{ name: 'a', exec: 'x {argument}' }}"));
        assert_eq!(stage.acts(), ["spawn hook"]);
        stage.exit("hook", 0);
        assert_eq!(stage.acts(), ["kill a 15"]);
        stage.killed("a", 15);
        assert_eq!(stage.acts(), ["replanned", "spawn a"]);
    }
}

#[test]
fn r3_what_does_not_stop_in_time_is_killed() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'a', once: 'stopping' } }";
    let mut stage = Stage::running(&format!("{hook}, {A}"));
    stage.look();
    reload(&mut stage, hook);
    stage.seconds(5);
    assert_eq!(stage.acts(), ["spawn hook", "kill a 9"], "a hook that hangs does not hold it");
    stage.killed("a", 9);
    assert_eq!(stage.acts(), ["replanned"]);
}

#[test]
fn r3_s2_nobody_is_killed_for_a_reload_that_has_come_to_nothing() {
    let hook = "{ name: 'hook', exec: 'x', when: { source: 'main', each: 'stopping' } }";
    let main = "{ name: 'main', exec: 'x', onSuccess: 'shutdown' }";
    let late = "{ name: 'late', exec: 'x', when: { source: 'main', once: 'exitSuccess' } }";
    let mut stage = Stage::running(&format!("{main}, {hook}, {late}"));
    stage.willing = false;
    stage.look();
    stage.exit("main", 0);
    assert_eq!(stage.acts(), ["spawn late", "spawn hook"]);
    reload(&mut stage, hook);
    // The hook holds the end of main, which is killed for the reload, and whose end is the end of everything.
    stage.seconds(5);
    assert!(matches!(stage.answers[..], [Reply::Refused(_)]), "{:?}", stage.answers);
    assert_eq!(stage.log.iter().filter(|entry| entry.contains("for the reload")).count(), 1);
    stage.look();
    stage.input(Input::Started { run: RunId(2), pid: 7 });
    assert_eq!(stage.acts(), ["kill late 15"], "it has the time of the stop");
}

#[test]
fn r3_who_comes_later_is_told_what_holds_already() {
    let db = "{ name: 'db', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }, { name: 'setup', exec: 'x' }";
    let mut stage = Stage::running(db);
    stage.checked(true);
    stage.exit("setup", 0);
    stage.look();
    reload(
        &mut stage,
        &format!(
            "{db}, {{ name: 'app', exec: 'x', when: {{ source: 'db', once: 'healthy' }} }}, \
             {{ name: 'late', exec: 'x', when: {{ source: 'setup', once: 'exitSuccess' }} }}, \
             {{ name: 'both', exec: 'x', when: {{ all: [{{ source: 'setup', event: 'exitSuccess' }}, {{ source: 'db', event: 'healthy' }}] }} }}, \
             {{ name: 'sad', exec: 'x', when: {{ source: 'db', once: 'unhealthy' }} }}"
        ),
    );
    assert_eq!(stage.acts(), ["replanned", "spawn app", "spawn late", "spawn both"]);
    assert_eq!(stage.status("sad").word(), "waiting");
}

#[test]
fn r3_who_had_no_hope_has_one_again() {
    let app = "{ name: 'app', exec: 'x', when: { source: 'b', once: 'exitSuccess' } }";
    let mut stage = Stage::running(&format!("{A}, {app}"));
    assert_eq!(stage.status("app").word(), "complete");
    reload(&mut stage, &format!("{A}, {app}, {B}"));
    assert_eq!(stage.status("app").word(), "waiting");
    stage.exit("b", 0);
    assert!(stage.has_process("app"));
}

#[test]
fn r3_what_is_complete_or_was_stopped_by_hand_stays_so() {
    let mut stage = Stage::running(&format!("{A}, {B}"));
    stage.exit("a", 0);
    stage.command(Request::Stop(JobIx(1)));
    stage.killed("b", 15);
    stage.look();
    reload(&mut stage, &format!("{B}, {A}, {{ name: 'c', exec: 'x' }}"));
    assert_eq!(stage.acts(), ["replanned", "spawn c"]);
    assert_eq!((stage.status("a").word(), stage.status("b").word()), ("complete", "stopped"));
    stage.exit("c", 0);
    assert_eq!(stage.exit, None, "b may be started again");
}

#[test]
fn r4_reloads_that_come_together_are_one_and_the_last_wins() {
    let mut stage = Stage::running(A);
    for nth in 0..100 {
        reload(&mut stage, &format!("{{ name: 'a', exec: 'x {nth}' }}"));
    }
    stage.look();
    stage.killed("a", 15);
    assert_eq!(stage.acts(), ["replanned", "spawn a"]);
    assert_eq!(stage.answers, vec![changes(&[], &["a"], &[], &[]); 100]);
    let exec = stage.core.plan().jobs[0].exec.clone().unwrap();
    assert_eq!(exec.arguments, ["99"]);
}

#[test]
fn r4_a_reload_back_to_what_was_starts_what_was_stopped() {
    let mut stage = Stage::running(&format!("{A}, {B}"));
    reload(&mut stage, B);
    reload(&mut stage, &format!("{A}, {B}"));
    stage.look();
    stage.killed("a", 15);
    assert_eq!(stage.acts(), ["replanned", "spawn a"]);
    assert_eq!(stage.answers.last(), Some(&changes(&["b"], &["a"], &[], &[])));
}

#[test]
fn r4_in_a_shutdown_a_reload_is_refused_and_one_under_way_is_given_up() {
    let refused = Reply::Refused("the supervisor is shutting down".into());
    let mut stage = Stage::running(&format!("{A}, {B}"));
    reload(&mut stage, B);
    stage.signal(15);
    assert_eq!(stage.answers.last(), Some(&refused));
    reload(&mut stage, A);
    assert_eq!(stage.answers, [refused.clone(), refused]);
    stage.killed("a", 15);
    stage.killed("b", 15);
    assert_eq!(stage.exit, Some(0));
}

#[test]
fn r4_a_reload_before_the_startup_waits_for_it() {
    let mut stage = Stage::jobs(A);
    reload(&mut stage, B);
    stage.input(Input::Ready);
    stage.killed("a", 15);
    assert!(stage.has_process("b"));
    assert_eq!(stage.answers, [changes(&[], &[], &["b"], &["a"])]);
}

#[test]
fn r3_the_causes_of_what_goes_on_are_not_forgotten() {
    let b = "{ name: 'b', exec: 'x', when: { source: 'a', once: 'exitSuccess' } }";
    let mut stage = Stage::running(&format!("{A}, {b}"));
    stage.exit("a", 0);
    reload(&mut stage, b);
    let explained = stage.core.explain(JobIx(0)).sentences();
    assert_eq!(
        explained.last().map(String::as_str),
        Some("it was started by a exitSuccess, which came from global startup")
    );
}

#[test]
fn p7_what_was_set_by_hand_is_still_set_after_a_reload() {
    let mut stage = Stage::running(A);
    stage.command(Request::SetVariables(vec![("K".into(), Some("v".into()))]));
    reload(&mut stage, &format!("{B}, {A}"));
    let pid = stage.status("a").pid.unwrap().to_string();
    let told: Vec<_> = stage.environment.iter().collect();
    assert!(told.contains(&("K", "v")) && told.contains(&("CONTAINERPILOT_A_PID", pid.as_str())), "{told:?}");
}

#[test]
fn c6_a_reload_stops_and_starts_coprocesses_whatever_they_are_and_resets_their_restarts() {
    let coprocess = |mut plan: containerpilot_core::plan::Plan| {
        plan.jobs[1].role = containerpilot_core::plan::Role::Coprocess;
        plan
    };
    let text =
        "{ jobs: [{ name: 'a', exec: 'x' }, { name: 'co', exec: 'x', restarts: 1, restartBackoff: false }] }";
    let mut stage = Stage::new(coprocess(plan(text)));
    stage.input(Input::Ready);
    for _ in 0..2 {
        stage.exit("co", 1);
        stage.look();
        stage.input(Input::Request {
            id: RequestId(1),
            request: Request::Reload(Box::new(coprocess(plan(text)))),
        });
        stage.killed("co", 15);
        assert_eq!(stage.acts(), ["kill co 15", "replanned", "spawn co"]);
        assert_eq!(stage.answers.pop(), Some(changes(&["a"], &["co"], &[], &[])));
    }
    stage.exit("co", 1);
    stage.exit("co", 1);
    stage.exit("a", 0);
    assert_eq!(stage.exit, Some(0), "it neither holds the supervisor open nor says how it went");
}

#[test]
fn r3_what_has_run_at_the_end_of_a_job_is_there_for_the_end_of_its_next_life() {
    let others =
        "{ name: 'work', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'a', once: 'stopped' } }";
    let mut stage = Stage::running(&format!("{others}, {A}"));
    for argument in ["1", "2"] {
        stage.exit("a", 0);
        stage.exit("hook", 0);
        assert_eq!(stage.status("hook").word(), "complete", "nobody is there whose end could come");
        stage.look();
        reload(&mut stage, &format!("{others}, {{ name: 'a', exec: 'x {argument}' }}"));
        assert_eq!(stage.acts(), ["replanned", "spawn a"]);
        assert_eq!(stage.status("hook").word(), "waiting");
    }
    reload(&mut stage, others);
    stage.killed("a", 15);
    assert_eq!(stage.acts(), ["kill a 15", "spawn hook", "replanned"]);
}

#[test]
fn r3_w7_who_names_twice_what_holds_already_runs_once() {
    let web = "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }";
    let mut stage = Stage::running(web);
    stage.checked(true);
    stage.look();
    let event = "{ source: 'web', event: 'healthy' }";
    reload(
        &mut stage,
        &format!("{web}, {{ name: 'new', exec: 'x', when: {{ any: [{event}, {event}], each: true }} }}"),
    );
    assert_eq!(stage.acts(), ["replanned", "spawn new"]);
    stage.exit("new", 0);
    assert_eq!(stage.acts(), [] as [&str; 0]);
}

#[test]
fn r3_an_exit_that_will_be_said_again_is_not_told_to_who_is_new() {
    let task = "{ name: 'task', exec: 'x', restarts: 'unlimited' }";
    let mut stage = Stage::running(task);
    // It runs again in the same instant.
    stage.exit("task", 0);
    stage.look();
    reload(
        &mut stage,
        &format!("{task}, {{ name: 'new', exec: 'x', when: {{ source: 'task', once: 'exitSuccess' }} }}"),
    );
    assert_eq!(stage.acts(), ["replanned"]);
    stage.exit("task", 0);
    assert_eq!(stage.acts(), ["spawn new"]);
}

#[test]
fn r3_w12_a_watch_that_is_another_one_is_not_healthy_until_it_says_so() {
    let jobs = "{ name: 'work', exec: 'x' }, { name: 'both', exec: 'x', when: { all: \
                [{ source: 'watch.db', event: 'healthy' }, { source: 'work', event: 'exitSuccess' }] } }";
    let text = |interval: u32| {
        format!("{{ consul: 'x', jobs: [{jobs}], watches: [{{ name: 'db', interval: {interval} }}] }}")
    };
    let mut stage = Stage::new(plan(&text(1)));
    stage.input(Input::Ready);
    stage.instances(1);
    let mut other = plan(&text(2));
    other.logging.level = containerpilot_core::plan::Level::Debug;
    stage.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(other)) });
    stage.look();
    stage.exit("work", 0);
    assert_eq!(stage.acts(), [] as [&str; 0], "of the new watch nothing is known yet");
    stage.instances(1);
    assert_eq!(stage.acts(), ["spawn both"]);
}

#[test]
fn r3_h3_who_is_healthy_while_it_runs_waits_for_no_check_of_its_life_before() {
    let telemetry = "telemetry: { port: 9090, interfaces: 'static:10.0.0.1' }";
    let checked = "{ name: 'web', exec: 'x', health: { exec: 'c', interval: 5, ttl: 15 } }";
    let mut stage = Stage::new(plan(&format!("{{ {telemetry}, jobs: [{checked}] }}")));
    stage.input(Input::Ready);
    let mut other = stage.core.plan().clone();
    let idle = other.jobs.last().and_then(|job| job.health.clone());
    other.jobs[0].health = idle;
    stage.input(Input::Request { id: RequestId(9), request: Request::Reload(Box::new(other)) });
    stage.killed("web", 15);
    assert_eq!(stage.checks_going(), 1, "the one that was cut short has not ended yet");
    assert_eq!(stage.status("web").healthy, Some(true));
}

#[test]
fn r3_p3_that_memory_ran_out_is_not_forgotten_by_a_reload() {
    let mut stage = Stage::running(A);
    stage.input(Input::OutOfMemory { processes: 1 });
    reload(&mut stage, &format!("{A}, {B}"));
    stage.killed("a", 9);
    assert!(stage.log.iter().any(|line| line.contains("out of memory")), "{:?}", stage.log);
}
