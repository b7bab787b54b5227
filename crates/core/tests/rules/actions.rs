//! Actions of the supervisor (W19), and the queue of events (W21).

use std::time::Duration;

use containerpilot_core::ids::JobIx;
use containerpilot_core::plan::{Level, Signal};
use containerpilot_core::{Input, Request, State, Time};

use crate::harness::{Harness, plan};

const TERM: u8 = 15;
const HUP: u8 = 1;

#[test]
fn w19_an_action_signals_a_running_job() {
    let mut harness = Harness::running(
        "{ name: 'nginx', exec: 'x' }, \
         { name: 'nginx-reload', do: { signal: 'HUP', to: 'nginx' }, when: { source: 'SIGHUP' } }",
    );
    harness.take_output();
    harness.signal(HUP);
    assert_eq!(
        harness.take_output(),
        ["event SIGHUP signal", "event nginx-reload exitSuccess", "kill nginx 1"]
    );
    assert_eq!(harness.job_of("nginx: sent SIGHUP to process group 101"), Some("nginx-reload".into()));
    assert_eq!(harness.status("nginx-reload").word(), "waiting");
    assert_eq!(harness.status("nginx-reload").pid, None);
}

#[test]
fn w19_an_action_that_is_refused_has_failed() {
    let mut harness = Harness::running(
        "{ name: 'nginx', exec: 'x', when: { source: 'late', once: 'healthy' } }, \
         { name: 'late', exec: 'x', health: { exec: 'x', interval: 1, ttl: 5 } }, \
         { name: 'a', do: { signal: 'HUP', to: 'nginx' } }",
    );
    assert!(harness.take_output().contains(&"event a exitFailed".into()));
    assert_eq!(harness.level_of("refused: nginx: not running"), Some(Level::Error));
    assert_eq!(harness.status("a").word(), "failed");
    let explanation = harness.core.explain(JobIx(2), None).to_string();
    assert!(explanation.contains("last run was refused 0s ago: nginx: not running"), "{explanation}");
}

#[test]
fn w19_a_failed_action_decides_the_exit_code_like_a_program() {
    let mut harness = Harness::running(
        "{ name: 'b', exec: 'x', when: { source: 'SIGUSR2' } }, \
         { name: 'a', do: { signal: 'HUP', to: 'b' }, onFailure: 'shutdown' }",
    );
    assert_eq!(harness.exit, Some(1));
    assert_eq!(
        harness.last_entry.take().unwrap().message,
        "exiting with code 1: the action of a was refused"
    );
}

#[test]
fn w19_an_action_starts_stops_and_restarts_a_job() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, \
         { name: 'restart', do: { restart: 'x' }, when: { source: 'SIGHUP' } }, \
         { name: 'stop', do: { stop: 'x' }, when: { source: 'SIGUSR2' } }, \
         { name: 'start', do: { start: 'x' }, when: { each: 'enterMaintenance' } }, { name: 'other', exec: 'x' }",
    );
    harness.take_output();
    harness.signal(HUP);
    assert_eq!(harness.take_effects(), ["kill x 15"]);
    harness.exit_on("x", TERM);
    assert_eq!(harness.take_effects(), ["spawn x"]);
    let explanation = harness.core.explain(JobIx(0), None).to_string();
    assert!(explanation.contains("started by an action of restart"), "{explanation}");
    assert!(harness.log.iter().any(|line| line.ends_with("cause: action of restart")), "{:?}", harness.log);
    harness.signal(12);
    harness.exit_on("x", TERM);
    assert_eq!(harness.status("x").word(), "stopped");
    let explanation = harness.core.explain(JobIx(0), None).to_string();
    assert!(explanation.starts_with("x: stopped by an action of stop"), "{explanation}");
    harness.take_output();
    harness.maintenance(true);
    assert_eq!(harness.take_effects(), ["spawn x"]);
}

#[test]
fn w19_a_job_that_an_action_has_stopped_does_not_hold_the_supervisor_open() {
    let mut harness = Harness::running(
        "{ name: 'main', exec: 'x' }, { name: 'sidecar', exec: 'x', onSuccess: 'shutdown' }, \
         { name: 'end', do: { stop: 'sidecar' }, when: { source: 'main', once: 'exitSuccess' } }",
    );
    harness.exit("main", 0);
    assert_eq!(harness.exit, None);
    harness.exit_on("sidecar", TERM);
    assert_eq!(harness.exit, Some(0));
    assert_eq!(
        harness.last_entry.take().unwrap().message,
        "exiting with code 0: all jobs that do work have ended"
    );
}

#[test]
fn w19_an_action_concerns_every_job_of_a_group_but_itself() {
    let mut harness = Harness::running(
        "{ name: 'a', exec: 'x', groups: ['web'] }, { name: 'b', exec: 'x', groups: ['web'], when: { source: 'SIGUSR2' } }, \
         { name: 'c', exec: 'x' }, { name: 'd', exec: 'x', groups: ['db', 'web'] }, \
         { name: 'act', groups: ['web'], do: { signal: 'USR1', to: '@web' }, when: { source: 'SIGHUP' } }",
    );
    harness.take_output();
    harness.signal(HUP);
    assert_eq!(harness.take_effects(), ["kill a 10", "kill d 10"]);
    // One of them was enough.
    assert!(
        harness
            .log
            .iter()
            .any(|line| line.starts_with("a: sent SIGUSR1") && line.contains("; d: sent SIGUSR1"))
    );
}

#[test]
fn w19_actions_of_the_supervisor_itself() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, \
         { name: 'env', do: { setEnv: { A: 'new', B: '' } } }, \
         { name: 'reload', do: { reload: true }, when: { source: 'env', once: 'exitSuccess' } }, \
         { name: 'enter', do: { maintenance: 'enter' }, when: { source: 'reload', once: 'exitSuccess' } }, \
         { name: 'leave', do: { maintenance: 'exit' }, when: { source: 'SIGHUP' } }, \
         { name: 'after', exec: 'x', when: { source: 'enter', once: 'stopped' } }",
    );
    let output = harness.take_output();
    for line in ["reload", "event global enterMaintenance", "event enter exitSuccess", "spawn after"] {
        assert!(output.contains(&line.into()), "{line}: {output:?}");
    }
    let variables = harness.environment.jobs.overrides();
    assert_eq!(variables.get("A"), Some(&Some("new".into())));
    assert_eq!(variables.get("B"), Some(&None));
    assert!(harness.core.overview().maintenance);
    harness.signal(HUP);
    assert!(!harness.core.overview().maintenance);
    harness.signal(HUP);
    assert!(harness.log.contains(&"not in maintenance mode".into()));
    // The value may be a secret.
    assert!(!harness.log.iter().any(|line| line.contains("new")));
}

#[test]
fn w19_shutdown_exits_with_its_code() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, \
         { name: 'end', do: { shutdown: 42 }, onSuccess: 'shutdown', when: { source: 'x', once: 'exitFailed' } }, \
         { name: 'again', do: { shutdown: 43 }, when: { once: 'shutdown' } }, { name: 'y', exec: 'y' }",
    );
    harness.exit("x", 1);
    assert!(harness.take_output().contains(&"kill y 15".into()));
    harness.exit_on("y", TERM);
    assert_eq!(harness.exit, Some(42));
    assert_eq!(harness.last_entry.take().unwrap().message, "exiting with code 42: requested by end");
    assert!(harness.log.contains(&"refused: the supervisor is shutting down".into()));
}

#[test]
fn w19_an_action_is_a_stop_hook_like_a_program() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'y', exec: 'x' }, \
         { name: 'hook', do: { signal: 'USR1', to: 'y' }, when: { source: 'x', once: 'stopping' } }",
    );
    harness.take_output();
    harness.signal(TERM);
    let effects = harness.take_effects();
    let first = |line: &str| effects.iter().position(|other| other == line);
    assert!(first("kill y 10") < first("kill x 15"), "{effects:?}");
    harness.exit_on("x", TERM);
    harness.exit_on("y", TERM);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w19_actions_are_restarted_and_periodic_like_programs() {
    let mut harness = Harness::running(
        "{ name: 'b', exec: 'x', when: { source: 'SIGUSR2' } }, { name: 'c', exec: 'x' }, \
         { name: 'a', do: { signal: 'HUP', to: 'b' }, restarts: 3 }, \
         { name: 'tick', do: { signal: 'USR1', to: 'c' }, when: { interval: '1s' } }",
    );
    harness.seconds(10);
    let output = harness.take_output();
    assert_eq!(output.iter().filter(|line| *line == "event a exitFailed").count(), 4);
    assert_eq!(output.iter().filter(|line| *line == "kill c 10").count(), 11);
    assert_eq!(harness.status("a").word(), "failed");
}

/// How often each job has exited in this time; the step itself must end.
fn exits(text: &str, name: &str, time: Duration) -> usize {
    let mut harness = Harness::running(text);
    harness.signal(HUP);
    harness.pass(time);
    let line = format!("event {name} exitSuccess");
    harness.take_output().iter().filter(|other| **other == line).count()
}

#[test]
fn w14_actions_in_a_ring_are_spaced() {
    let second = Duration::from_secs(1);
    // By events and actions, by stop events, and by actions alone.
    for ring in [
        "{ name: 'a', do: { start: 'b' }, when: { source: 'b', each: 'exitSuccess' } }, { name: 'b', do: { reload: true } }",
        "{ name: 'a', do: { start: 'b' }, when: { source: 'b', each: 'stopped' } }, { name: 'b', do: { reload: true } }",
        "{ name: 'a', do: { restart: 'b' }, when: { source: 'b', once: 'stopped' } }, { name: 'b', do: { reload: true } }",
        "{ name: 'a', do: { start: 'b' } }, { name: 'b', do: { start: 'a' } }",
        "{ name: 'a', do: { restart: '@ring' }, groups: ['ring'] }, { name: 'b', do: { restart: '@ring' }, groups: ['ring'] }",
        "{ name: 'a', do: { maintenance: 'enter' }, when: { source: 'a', each: 'exitSuccess' } }, { name: 'b', do: { start: 'a' } }",
        "{ name: 'a', do: { start: 'b' }, restarts: 'unlimited' }, { name: 'b', do: { reload: true } }",
        "{ name: 'a', do: { maintenance: 'exit' }, when: { each: 'enterMaintenance' } }, { name: 'c', do: { maintenance: 'enter' }, when: { each: 'exitMaintenance' } }, { name: 'b', do: { maintenance: 'enter' } }",
        "{ name: 'a', do: { start: 'b' }, when: { interval: '300ms' } }, { name: 'b', do: { restart: 'a' }, when: { interval: '300ms' } }",
    ] {
        let text = format!("{{ name: 'x', exec: 'x' }}, {ring}");
        let count = exits(&text, "a", second);
        assert!((2..12).contains(&count), "{ring}: {count}");
    }
}

#[test]
fn w19_a_thousand_actions_that_start_each_other_do_not_nest() {
    let jobs: Vec<String> = (0..1_000)
        .map(|nth| {
            format!("{{ name: 'j{nth}', do: {{ start: 'j{}' }}, when: {{ source: 'SIGHUP' }} }}", nth + 1)
        })
        .collect();
    let text = format!("{}, {{ name: 'j1000', exec: 'x', when: {{ source: 'SIGUSR2' }} }}", jobs.join(","));
    let mut harness = Harness::jobs(&text);
    harness.input(containerpilot_core::Input::Ready);
    harness.request(Request::Start(JobIx(0)));
    assert!(harness.has_process("j1000"));
}

#[test]
fn w10_an_action_can_start_what_a_job_waits_for_again() {
    let text = "{ name: 'x', exec: 'x', restarts: 'unlimited' }, \
                { name: 'task', exec: 'x' }, { name: 'again', do: { start: 'task' }, when: { source: 'SIGHUP' } }, \
                { name: 'after', exec: 'x', when: { source: 'task', each: 'exitSuccess' } }";
    let mut harness = Harness::running(text);
    harness.exit("task", 0);
    harness.exit("after", 0);
    // Without the action, no further event could come.
    assert_eq!(harness.status("after").word(), "waiting");
    harness.signal(HUP);
    harness.exit("task", 0);
    assert!(harness.has_process("after"));
    // Jobs that only such an action could start are unreachable, if the action itself is.
    let ring = "{ name: 'x', exec: 'x', restarts: 'unlimited' }, { name: 'b', exec: 'x' }, \
                { name: 'a', do: { start: 'b' }, when: { source: 'b', once: 'healthy' } }, \
                { name: 'c', exec: 'x', when: { source: 'b', each: 'exitSuccess' } }";
    let mut harness = Harness::running(ring);
    harness.exit("b", 0);
    harness.exit("c", 0);
    assert_eq!((harness.status("a").word(), harness.status("c").word()), ("skipped", "complete"));
}

#[test]
fn w19_a_reload_keeps_the_causes_of_actions() {
    let text = |first: &str| {
        format!(
            "{{ jobs: [{first} {{ name: 'x', exec: 'x' }}, \
             {{ name: 'act', do: {{ restart: 'x' }}, when: {{ source: 'SIGHUP' }} }}] }}"
        )
    };
    let mut harness = Harness::new(plan(&text("{ name: 'first', exec: 'y' },")));
    harness.input(containerpilot_core::Input::Ready);
    harness.signal(HUP);
    harness.exit_on("x", TERM);
    harness.input(containerpilot_core::Input::Request {
        id: containerpilot_core::RequestId(1),
        request: Request::Reload(Box::new(plan(&text("")))),
    });
    harness.exit_on("first", TERM);
    let explanation = harness.core.explain(JobIx(0), None).to_string();
    assert!(explanation.contains("started by an action of act"), "{explanation}");
}

#[test]
fn w21_with_all_every_event_starts_a_run_in_order() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x', restarts: 'unlimited', restartBackoff: { initial: '1s' } }, \
         { name: 'q', exec: 'x', when: { source: 'SIGHUP', queue: 'all' } }, \
         { name: 'l', exec: 'x', when: { source: 'SIGHUP' } }",
    );
    for _ in 0..5 {
        harness.signal(HUP);
    }
    assert_eq!(harness.core.job_overview(JobIx(1)).pending_events, 4);
    assert_eq!(harness.core.job_overview(JobIx(2)).pending_events, 1);
    let count = |harness: &mut Harness, name: &str| {
        let mut runs = 0;
        while harness.has_process(name) {
            runs += 1;
            harness.exit(name, 0);
        }
        runs
    };
    assert_eq!(count(&mut harness, "q"), 5);
    assert_eq!(count(&mut harness, "l"), 2);
}

#[test]
fn w21_each_run_gets_the_variables_of_its_event() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'q', exec: 'x', when: { queue: 'all', each: true, any: [\
         { source: 'SIGHUP' }, { source: 'SIGUSR2' }] } }",
    );
    let source = |harness: &Harness| {
        let found = harness.environment.cause.iter().find(|(name, _)| *name == "CONTAINERPILOT_EVENT_SOURCE");
        found.unwrap().1.clone()
    };
    for signal in [HUP, 12, HUP] {
        harness.signal(signal);
    }
    let mut sources = Vec::new();
    while harness.has_process("q") {
        sources.push(source(&harness));
        harness.exit("q", 1);
    }
    assert_eq!(sources, ["SIGHUP", "SIGUSR2", "SIGHUP"]);
}

#[test]
fn w21_the_oldest_of_too_many_events_is_dropped_and_counted() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'q', exec: 'x', when: { source: 'SIGHUP', queue: 'all' } }",
    );
    for _ in 0..1101 {
        harness.signal(HUP);
    }
    let warning = "more than 1000 events are pending, dropping the oldest";
    let logged = |harness: &Harness| harness.log.iter().filter(|line| *line == warning).count();
    let overview = harness.core.job_overview(JobIx(1));
    assert_eq!((overview.pending_events, overview.dropped_events), (1000, Some(100)));
    // Once per burst.
    assert_eq!(logged(&harness), 1);
    harness.exit("q", 0);
    harness.signal(HUP);
    harness.signal(HUP);
    assert_eq!((harness.core.job_overview(JobIx(1)).dropped_events, logged(&harness)), (Some(101), 1));
    assert_eq!(harness.core.job_overview(JobIx(0)).dropped_events, None);
    // A stop empties the queue.
    harness.request(Request::Stop(JobIx(1)));
    assert_eq!(harness.core.job_overview(JobIx(1)).pending_events, 0);
}

#[test]
fn w21_a_job_in_a_ring_is_spaced_and_loses_no_event() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'q', exec: 'x', when: { queue: 'all', each: true, any: [\
         { source: 'SIGHUP' }, { source: 'q', event: 'exitSuccess' }] } }",
    );
    harness.signal(HUP);
    harness.signal(HUP);
    for _ in 0..3 {
        harness.exit("q", 0);
        harness.seconds(1);
    }
    // Two signals and three exits, of which three have had a run.
    assert!(harness.has_process("q"));
    assert_eq!(harness.core.job_overview(JobIx(1)).pending_events, 1);
    assert_eq!(harness.now, Time::ZERO + Duration::from_secs(3));
}

#[test]
fn w21_s3_a_shutdown_runs_a_job_once_for_the_stop_events_in_its_queue() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'y', exec: 'x' }, { name: 'z', exec: 'x' }, { name: 'w', exec: 'x', restarts: 'unlimited' }, \
         { name: 'q', exec: 'x', when: { queue: 'all', each: true, any: [{ source: 'x', event: 'stopped' }, \
         { source: 'y', event: 'stopped' }, { source: 'z', event: 'stopped' }] } }",
    );
    for name in ["x", "y", "z"] {
        harness.exit(name, 0);
    }
    assert_eq!(harness.core.job_overview(JobIx(4)).pending_events, 2);
    harness.signal(TERM);
    harness.exit("q", 0);
    assert!(harness.has_process("q"));
    harness.exit("q", 0);
    assert!(!harness.has_process("q"));
    harness.exit_on("w", TERM);
    assert_eq!(harness.exit, Some(0));
}

#[test]
fn w18_w14_a_delayed_start_by_hand_does_not_wait_for_requirements() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'db', exec: 'x', health: { exec: 'x', interval: 1, ttl: 5 } }, \
         { name: 'a', do: { start: 'b' }, when: 'manual', requires: ['db'] }, { name: 'b', do: { start: 'a' }, when: 'manual' }",
    );
    harness.take_output();
    harness.request(Request::Start(JobIx(2)));
    harness.seconds(1);
    let runs = harness.take_events().iter().filter(|event| *event == "a exitSuccess").count();
    assert!(runs > 2, "{runs}");
}

#[test]
fn w14_a_user_starts_a_periodic_action_of_a_ring_at_any_time() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'a', do: { start: 'b' }, when: { interval: '1s' }, restarts: 0 }, \
         { name: 'b', do: { start: 'a' }, when: 'manual' }",
    );
    for _ in 0..2 {
        harness.take_output();
        harness.request(Request::Start(JobIx(1)));
        assert!(harness.take_output().contains(&"event a exitSuccess".to_string()));
    }
}

#[test]
fn w14_a_user_who_starts_an_action_in_its_back_off_uses_no_restart() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'a', do: { start: 'b' }, restarts: 'unlimited' }, \
         { name: 'b', do: { start: 'a' }, when: { source: 'SIGUSR2' } }",
    );
    while harness.status("a").state != State::Delaying {
        harness.millis(1);
    }
    harness.request(Request::Start(JobIx(1)));
    harness.take_events();
    harness.seconds(10);
    assert!(harness.take_events().contains(&"a exitSuccess".to_owned()));
    assert_eq!(harness.status("a").restarts, 0);
}

#[test]
fn w14_s3_a_hook_that_waits_for_its_back_off_runs_at_the_shutdown() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'hook', do: { start: 'b' }, when: { source: 'b', each: 'stopped' } }, \
         { name: 'b', do: { setEnv: { A: '1' } } }",
    );
    while harness.status("hook").state != State::Delaying {
        harness.millis(1);
    }
    harness.take_output();
    harness.signal(TERM);
    assert!(harness.take_events().contains(&"hook exitFailed".to_owned()), "nothing is started any more");
    harness.exit_on("x", TERM);
    assert!(harness.exit.is_some());
}

#[test]
fn w10_w19_a_watch_of_a_service_that_an_action_may_start_can_change() {
    let mut harness = Harness::new(plan(
        "{ watches: [{ name: 'web', interval: 1 }], jobs: [
           { name: 'web', exec: 'x', port: 80, health: { exec: 'c', interval: 1, ttl: 5 }, when: { source: 'a', once: 'exitFailed' } },
           { name: 'a', exec: 'x' },
           { name: 'go', do: { start: 'web' }, when: { source: 'SIGUSR2' } },
           { name: 'b', exec: 'x', when: { source: 'watch.web', each: 'changed' } } ] }",
    ));
    harness.input(Input::Ready);
    harness.exit("a", 0);
    assert_eq!((harness.status("web").word(), harness.status("b").word()), ("skipped", "waiting"));
    harness.signal(12);
    assert!(harness.has_process("web"));
}

#[test]
fn e3_w19_an_action_ends_before_the_shutdown_that_it_leads_to() {
    let mut plan =
        plan("{ jobs: [{ name: 'b', exec: 'x', when: 'manual' }, { name: 'a', do: { start: 'b' } }] }");
    // A job without a program and without checks is complete as soon as it starts.
    plan.jobs[0].exec = containerpilot_core::plan::Exec::Nothing;
    plan.jobs[0].on_success = containerpilot_core::plan::OnCompletion::Shutdown;
    let mut harness = Harness::new(plan);
    harness.input(Input::Ready);
    let events = harness.take_events();
    assert_eq!(events[3..], ["a exitSuccess", "global shutdown", "a stopping", "a stopped"]);
}

#[test]
fn x2_w19_a_hook_runs_for_every_generation_that_an_action_starts() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'hook', exec: 'x', when: { source: 'db', once: 'stopped' } }, \
         { name: 'db', exec: 'x', restarts: 0, when: { interval: '1h' } }, \
         { name: 'again', do: { start: 'db' }, when: { source: 'db', each: 'exitFailed' } }",
    );
    for round in 0..3 {
        harness.take_output();
        harness.exit("db", 1);
        assert!(harness.take_effects().contains(&"spawn hook".to_owned()), "round {round}");
        harness.exit("hook", 0);
    }
}

#[test]
fn w5_w14_an_action_that_a_user_has_started_does_not_give_up_in_its_back_off() {
    let job = |when: &str| {
        let ring = "{ name: 'b', do: { start: 'a' }, when: { source: 'SIGUSR2' } }, { name: 'x', exec: 'x' }";
        format!("{{ jobs: [{{ name: 'a', do: {{ start: 'b' }}, {when} }}, {ring}] }}")
    };
    let mut harness = Harness::new(plan(&job("restarts: 'unlimited'")));
    harness.input(Input::Ready);
    harness.seconds(1);
    let waiting = job("when: { source: 'SIGHUP', timeout: '200ms' }");
    harness.request(Request::Reload(Box::new(plan(&waiting))));
    harness.request(Request::Start(JobIx(0)));
    assert_eq!(harness.status("a").state, State::Delaying);
    harness.take_events();
    harness.seconds(60);
    let events = harness.take_events();
    assert!(events.contains(&"a exitSuccess".to_owned()) && !events.contains(&"a timerExpired".to_owned()));
}

#[test]
fn w5_w14_an_action_whose_event_has_come_does_not_give_up_in_its_back_off() {
    let job = |when: &str| {
        let ring = "{ name: 'b', do: { setEnv: { A: 'x' } }, when: { source: 'SIGUSR2' } }, { name: 'x', exec: 'x', env: { A: 'y' } }";
        format!("{{ jobs: [{{ name: 'a', do: {{ start: 'b' }}, {when} }}, {ring}] }}")
    };
    let mut harness = Harness::new(plan(&job("restarts: 'unlimited'")));
    harness.input(Input::Ready);
    harness.seconds(1);
    let waiting = job("when: { source: 'b', once: 'exitSuccess', timeout: '200ms' }");
    harness.request(Request::Reload(Box::new(plan(&waiting))));
    harness.input(Input::Signal(Signal::USR2));
    assert_eq!(harness.status("a").state, State::Delaying);
    harness.take_events();
    harness.seconds(60);
    let events = harness.take_events();
    assert!(events.contains(&"a exitSuccess".to_owned()) && !events.contains(&"a timerExpired".to_owned()));
}

#[test]
fn w7_w19_an_event_from_before_a_generation_does_not_start_it() {
    let mut harness = Harness::running(
        "{ name: 'x', exec: 'x' }, { name: 'main', do: { start: 'db' }, restarts: 0, when: { interval: '1h', source: 'x', once: 'exitSuccess' } }, \
         { name: 'db', do: { start: 'app' }, when: 'manual' }, \
         { name: 'app', exec: 'x', when: { source: 'main', each: 'stopping' } }, { name: 'y', exec: 'x' }",
    );
    harness.request(Request::Stop(JobIx(3)));
    harness.take_output();
    harness.exit("x", 0);
    assert!(harness.take_effects().contains(&"spawn app".to_owned()));
    harness.exit("app", 0);
    assert!(!harness.take_effects().contains(&"spawn app".to_owned()));
}

#[test]
fn w14_w19_an_action_that_ends_what_others_begin_is_not_delayed() {
    let leave = "{ name: 'leave', do: { maintenance: 'exit' }, when: { each: 'enterMaintenance' } }";
    let mut harness = Harness::running(&format!("{{ name: 'x', exec: 'x' }}, {leave}"));
    for _ in 0..20 {
        harness.maintenance(true);
        assert!(!harness.core.overview().maintenance);
    }
}
