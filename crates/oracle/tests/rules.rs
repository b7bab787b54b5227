//! Defects that random schedules have found, each as the smallest case by hand.

use std::time::Duration;

use containerpilot_core::effect::{Effect, Purpose, Wanted};
use containerpilot_core::event::{Code, Source, UserSignal};
use containerpilot_core::ids::{CheckRun, JobIx, RunId, WatchIx};
use containerpilot_core::input::{ExitStatus, Input, Instance};
use containerpilot_core::plan::{
    AtEnd, Check, Command, EventPattern, Health, Job, OnUnhealthy, Plan, Probe, Repeat, Restarts, Role,
    Signal, Status, Trigger, Watch,
};
use containerpilot_core::rules::command::{Answer, Command as ControlCommand, RequestId};
use containerpilot_core::{Core, Phase, State, Time};
use containerpilot_oracle::random::{consul, plain_job, plain_plan, service};
use containerpilot_simulation::world::pid_of;

/// A core, and the time.
struct TestCore {
    core: Core,
    now: u64,
}

impl TestCore {
    fn new(jobs: Vec<Job>) -> Self {
        Self::of(plain_plan(jobs))
    }

    fn of(plan: Plan) -> Self {
        Self { core: Core::new(plan), now: 0 }
    }

    /// Steps the core with an input, so many milliseconds after the start.
    fn at(&mut self, now: u64, input: Input) -> Vec<Effect> {
        self.now = now;
        let mut effects = Vec::new();
        self.core.step(Time::from_nanos(now * 1_000_000), input, &mut effects);
        effects
    }

    fn started(&mut self, run: u64) -> Vec<Effect> {
        self.at(self.now, Input::Started { run: RunId(run), pid: pid_of(RunId(run)) })
    }

    fn exited(&mut self, now: u64, run: u64, code: u8) -> Vec<Effect> {
        self.at(now, Input::Exited { run: RunId(run), status: ExitStatus::Code(code), orphans: false })
    }

    fn checked(&mut self, now: u64, check: u64, passes: bool) -> Vec<Effect> {
        let result = if passes { Ok(()) } else { Err("no".to_owned()) };
        self.at(now, Input::CheckDone { check: CheckRun(check), result })
    }

    fn state(&self, job: u32) -> State {
        self.core.status(JobIx(job)).state
    }

    fn count(&self, code: Code) -> usize {
        self.core.journal().events().filter(|event| event.code == code).count()
    }
}

fn when(name: &str, source: &str, code: Code, repeat: Repeat) -> Job {
    let trigger = Trigger::Event { event: event(source, code), repeat };
    with_trigger(name, trigger)
}

fn with_trigger(name: &str, trigger: Trigger) -> Job {
    let mut job = plain_job(name);
    job.when.trigger = trigger;
    job
}

fn event(source: &str, code: Code) -> EventPattern {
    let source = if source == "global" { Source::Global } else { Source::Job(source.into()) };
    EventPattern { source, code }
}

fn check(probe: Probe) -> Check {
    let second = Duration::from_secs(1);
    Check { name: "check".into(), probe, interval: second, timeout: second, failures: 1, raw_output: false }
}

fn with_health(mut job: Job, checks: Vec<Check>, on_unhealthy: OnUnhealthy) -> Job {
    job.health = Some(Health { checks, ttl: Duration::from_secs(15), heartbeat: None, on_unhealthy });
    job
}

fn exec() -> Probe {
    Probe::Exec(Command { program: "check".into(), arguments: Vec::new() })
}

fn spawned(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Spawn { .. })).count()
}

fn killed(effects: &[Effect]) -> Vec<u8> {
    let signal = |effect: &Effect| match effect {
        Effect::Kill { signal, .. } => Some(signal.0),
        _ => None,
    };
    effects.iter().filter_map(signal).collect()
}

fn exits(effects: &[Effect]) -> Option<u8> {
    effects.iter().find_map(|effect| match effect {
        Effect::Exit { code } => Some(*code),
        _ => None,
    })
}

fn maintenance(on: bool) -> Input {
    Input::Command { id: RequestId(1), command: ControlCommand::Maintenance(on) }
}

fn by_hand(command: ControlCommand) -> Input {
    Input::Command { id: RequestId(1), command }
}

fn coprocess(name: &str) -> Job {
    let mut job = plain_job(name);
    job.role = Role::Coprocess;
    job
}

/// A reload to the same plan.
fn reload(core: &TestCore, id: u64) -> Input {
    let command = ControlCommand::Reload(Box::new(core.core.plan().clone()));
    Input::Command { id: RequestId(id), command }
}

/// How many reload requests were answered with success, and how many were refused.
fn reload_answers(effects: &[Effect]) -> (usize, usize) {
    let count = |done: bool| {
        let fits = |answer: &Answer| match answer {
            Answer::Reloaded(_) => done,
            Answer::Refused(_) => !done,
            _ => false,
        };
        effects.iter().filter(|effect| matches!(effect, Effect::Reply { answer, .. } if fits(answer))).count()
    };
    (count(true), count(false))
}

const TERM: Input = Input::Signal(Signal::TERM);

#[test]
fn p3_p5_a_process_whose_exit_is_reported_late_is_neither_killed_nor_timed_out() {
    let mut job = plain_job("a");
    job.timeout = Some(Duration::from_millis(100));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    let effects = core.exited(150, 1, 0);
    assert!(killed(&effects).is_empty());
    assert_eq!(core.count(Code::ExitSuccess), 1);
    assert_eq!(exits(&effects), Some(0));
}

#[test]
fn p4_an_orphaned_process_group_does_not_outlive_the_supervisor() {
    let mut core = TestCore::new(vec![plain_job("a")]);
    core.at(0, Input::Ready);
    core.started(1);
    let effects = core.at(10, Input::Exited { run: RunId(1), status: ExitStatus::Code(0), orphans: true });
    assert!(effects.contains(&Effect::KillRemains { run: RunId(1) }));
    assert_eq!(exits(&effects), Some(0));
}

#[test]
fn p5_w4_a_run_that_dies_slowly_is_killed_once_and_counts_as_one_tick() {
    let mut job = with_trigger("a", Trigger::Interval(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Limited(4);
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(killed(&core.at(100, Input::Tick)), [9]);
    assert!(killed(&core.at(200, Input::Tick)).is_empty());
    assert!(killed(&core.at(300, Input::Tick)).is_empty());
    assert_eq!(core.core.status(JobIx(0)).restarts, 1);
    assert_eq!(spawned(&core.exited(310, 1, 137)), 1);
}

#[test]
fn p5_s4_a_run_killed_by_the_shutdown_is_not_killed_again_at_its_timeout() {
    let mut job = plain_job("a");
    job.timeout = Some(Duration::from_millis(5_500));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(killed(&core.at(10, TERM)), [15]);
    assert_eq!(killed(&core.at(5_010, Input::Tick)), [9]);
    assert!(killed(&core.at(5_600, Input::Tick)).is_empty());
    assert_eq!(exits(&core.at(7_010, Input::Tick)), Some(0));
}

#[test]
fn e7_inputs_before_the_startup_take_effect_after_it() {
    let source = Source::Watch("db".into());
    let trigger =
        Trigger::Event { event: EventPattern { source, code: Code::Healthy }, repeat: Repeat::Once };
    let watch = Watch { name: "db".into(), interval: Duration::from_secs(1), tag: None, dc: None };
    let hup = EventPattern { source: Source::Signal(UserSignal::Hup), code: Code::Signal };
    let reload = with_trigger("b", Trigger::Event { event: hup, repeat: Repeat::Each });
    let plan = Plan {
        watches: vec![watch],
        catalog: consul(),
        ..plain_plan(vec![with_trigger("a", trigger), reload])
    };
    let mut core = TestCore::of(plan);
    let one = Instance { id: "db-1".into(), address: "10.0.0.1".into(), port: 5432 };
    core.at(0, Input::Instances { watch: WatchIx(0), instances: vec![one] });
    core.at(0, Input::Signal(Signal(1)));
    assert_eq!(spawned(&core.at(1, Input::Ready)), 2);
    let codes: Vec<Code> = core.core.journal().events().map(|event| event.code).collect();
    assert_eq!(codes, [Code::Startup, Code::Changed, Code::Healthy, Code::Signal]);
}

#[test]
fn d8_maintenance_before_the_startup_keeps_services_out_of_the_catalog() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.service = Some(service("a", Some(Status::Passing)));
    let mut core = TestCore::new(vec![job]);
    core.at(0, maintenance(true));
    core.at(1, Input::Ready);
    assert_eq!(core.count(Code::EnterMaintenance), 1);
    assert!(core.started(1).is_empty());
    let effects = core.at(2, maintenance(false));
    let present = Effect::Advertise { job: JobIx(0), wanted: Wanted::Present(Status::Passing) };
    assert!(effects.contains(&present));
}

#[test]
fn w7_an_event_named_twice_runs_a_job_once() {
    let twice = vec![event("global", Code::Startup), event("global", Code::Startup)];
    let job = with_trigger("a", Trigger::Any { conditions: twice, repeat: Repeat::Each });
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    let effects = core.exited(10, 1, 0);
    assert_eq!((spawned(&effects), exits(&effects)), (0, Some(0)));
}

#[test]
fn w12_unhealthy_resets_a_healthy_condition_before_the_trigger_is_evaluated() {
    let source = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    let conditions = vec![event("a", Code::Unhealthy), event("a", Code::Healthy)];
    let waits = with_trigger("b", Trigger::All { conditions, repeat: Repeat::Once });
    let mut core = TestCore::new(vec![source, waits]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(10, 1, true);
    core.at(1_000, Input::Tick);
    assert_eq!(spawned(&core.checked(1_010, 2, false)), 0, "it is not healthy");
    core.at(2_000, Input::Tick);
    assert_eq!(spawned(&core.checked(2_010, 3, true)), 1, "it was unhealthy and is healthy again");
}

#[test]
fn w10_a_job_whose_conditions_cannot_hold_again_completes() {
    let conditions = vec![event("global", Code::Startup)];
    let job = with_trigger("a", Trigger::All { conditions, repeat: Repeat::Each });
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(exits(&core.exited(10, 1, 0)), Some(0));
}

#[test]
fn s2_a_process_stopped_before_it_has_started_is_not_registered() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.service = Some(service("a", Some(Status::Passing)));
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.at(1, TERM);
    let effects = core.started(1);
    assert_eq!(effects, [Effect::Kill { run: RunId(1), signal: Signal::TERM, purpose: Purpose::Stop }]);
}

#[test]
fn s2_a_job_waits_for_the_hook_of_its_hook() {
    let hook = when("hook", "a", Code::Stopping, Repeat::Once);
    let hooks_hook = when("hook2", "hook", Code::Stopping, Repeat::Once);
    let mut core = TestCore::new(vec![plain_job("a"), hook, hooks_hook]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(spawned(&core.at(10, TERM)), 1);
    core.started(2);
    assert_eq!(spawned(&core.exited(20, 2, 0)), 1);
    core.started(3);
    assert_eq!(core.state(1), State::Waiting);
    assert!(killed(&core.exited(30, 3, 0)).contains(&15), "only when the hook of the hook is done");
    assert_eq!(core.state(1), State::Complete);
}

#[test]
fn s4_hooks_that_wait_for_each_other_do_not_wait_for_the_stop_timeout() {
    let one = when("one", "two", Code::Stopping, Repeat::Once);
    let two = when("two", "one", Code::Stopping, Repeat::Once);
    let mut core = TestCore::new(vec![plain_job("a"), one, two]);
    core.at(0, Input::Ready);
    core.started(1);
    core.at(10, TERM);
    assert_eq!(spawned(&core.exited(20, 1, 0)), 1, "the cycle is broken");
    core.started(2);
    assert_eq!(exits(&core.exited(30, 2, 0)), Some(0));
}

#[test]
fn s3_a_stop_event_while_a_hook_runs_is_not_lost() {
    let any = vec![event("a", Code::Stopping), event("b", Code::Stopping)];
    let hook = with_trigger("hook", Trigger::Any { conditions: any, repeat: Repeat::Each });
    let mut core = TestCore::new(vec![plain_job("a"), plain_job("b"), hook]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    assert_eq!(spawned(&core.exited(10, 1, 0)), 1);
    core.started(3);
    assert_eq!(spawned(&core.at(20, TERM)), 0);
    assert_eq!(spawned(&core.exited(30, 3, 0)), 1, "for the stopping of b");
    core.started(4);
    assert_eq!(killed(&core.exited(40, 4, 0)), [15]);
    assert_eq!(exits(&core.exited(50, 2, 0)), Some(0));
}

#[test]
fn s3_a_job_without_a_program_does_not_start_during_a_shutdown() {
    let mut elsewhere = when("elsewhere", "global", Code::Shutdown, Repeat::Once);
    elsewhere.exec = None;
    elsewhere.service = Some(service("elsewhere", Some(Status::Passing)));
    let elsewhere = with_health(elsewhere, vec![check(exec())], OnUnhealthy::Report);
    let mut core = TestCore::new(vec![plain_job("a"), elsewhere]);
    core.at(0, Input::Ready);
    core.started(1);
    assert_eq!(killed(&core.at(10, TERM)), [15]);
    assert_eq!(core.state(1), State::Complete);
    assert_eq!(core.count(Code::Healthy), 0);
}

#[test]
fn s7_signals_before_the_process_has_started_are_passed_on_in_order() {
    let mut main = plain_job("main");
    main.role = Role::Main;
    (main.on_failure, main.on_success) = (AtEnd::Shutdown, AtEnd::Shutdown);
    let mut core = TestCore::of(Plan { pass_signals: true, ..plain_plan(vec![main]) });
    core.at(0, Input::Signal(Signal(10)));
    core.at(1, Input::Ready);
    core.at(2, TERM);
    core.at(3, Input::Signal(Signal(1)));
    assert_eq!(killed(&core.started(1)), [10, 15, 1]);
    let effects =
        core.at(4, Input::Exited { run: RunId(1), status: ExitStatus::Signal(Signal::TERM), orphans: false });
    assert_eq!((exits(&effects), core.core.phase()), (Some(143), Phase::Left));
}

#[test]
fn h2_a_new_run_starts_with_unknown_health() {
    let mut job = plain_job("a");
    job.restarts = Restarts::Unlimited;
    let job = with_health(job, vec![check(Probe::Running), check(exec())], OnUnhealthy::Report);
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(10, 1, true);
    assert_eq!(core.core.status(JobIx(0)).healthy, Some(true));
    core.exited(20, 1, 0);
    core.started(2);
    assert_eq!(core.core.status(JobIx(0)).healthy, None);
    core.checked(30, 2, true);
    assert_eq!(core.core.status(JobIx(0)).healthy, Some(true));
}

#[test]
fn h7_a_complete_job_without_a_process_is_not_healthy() {
    let mut elsewhere = plain_job("a");
    elsewhere.exec = None;
    let mut core = TestCore::new(vec![with_health(elsewhere, vec![check(exec())], OnUnhealthy::Report)]);
    core.at(0, Input::Ready);
    core.checked(10, 1, true);
    assert_eq!(exits(&core.at(20, TERM)), Some(0));
    assert_eq!(core.core.status(JobIx(0)).healthy, None);
    assert_eq!(core.count(Code::Unhealthy), 1);
}

#[test]
fn h8_a_job_that_flaps_while_it_stops_gets_one_sigterm_and_is_killed_in_time() {
    let mut job = plain_job("a");
    job.restarts = Restarts::Unlimited;
    let mut core = TestCore::new(vec![with_health(job, vec![check(exec())], OnUnhealthy::Restart)]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(0, 1, true);
    let mut signals = Vec::new();
    for (second, run) in (1..=12).zip(2..) {
        signals
            .extend(killed(&core.at(second * 1_000, Input::Tick)).into_iter().map(|signal| (second, signal)));
        let passes = second % 2 == 0;
        signals.extend(
            killed(&core.checked(second * 1_000, run, passes)).into_iter().map(|signal| (second, signal)),
        );
    }
    assert_eq!(signals, [(1, 15), (6, 9)]);
}

#[test]
fn w4_a_run_that_started_after_a_missed_tick_is_not_killed_for_it() {
    let mut job = with_trigger("a", Trigger::Interval(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Unlimited;
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.exited(10, 1, 0);
    assert_eq!(spawned(&core.at(100, Input::Tick)), 1);
    let late = core.at(250, Input::Started { run: RunId(2), pid: pid_of(RunId(2)) });
    assert!(killed(&late).is_empty(), "the tick was due at 200 ms, and the run started at 250 ms");
}

#[test]
fn w4_x2_a_tick_during_a_manual_run_follows_that_run() {
    let mut job = with_trigger("a", Trigger::Interval(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Unlimited;
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.exited(10, 1, 0);
    let start = Input::Command { id: RequestId(1), command: ControlCommand::Start(JobIx(0)) };
    assert_eq!(spawned(&core.at(20, start)), 1);
    core.started(2);
    assert_eq!(killed(&core.at(100, Input::Tick)), [9]);
    assert_eq!(spawned(&core.exited(110, 2, 137)), 1);
}

#[test]
fn d8_h7_maintenance_does_not_suppress_unhealthy_of_a_stopping_job() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.stop.drain = Duration::from_secs(1);
    let mut core = TestCore::new(vec![job]);
    core.at(0, Input::Ready);
    core.started(1);
    core.checked(10, 1, true);
    core.at(20, Input::Command { id: RequestId(1), command: ControlCommand::Stop(JobIx(0)) });
    core.at(30, maintenance(true));
    core.exited(40, 1, 0);
    assert_eq!(core.count(Code::Unhealthy), 1);
}

#[test]
fn x1_c6_pending_reloads_are_refused_when_the_supervisor_stops() {
    let mut core = TestCore::new(vec![plain_job("a"), coprocess("agent")]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    let (first, second) = (reload(&core, 1), reload(&core, 2));
    let effects = core.at(10, first);
    assert_eq!((killed(&effects), reload_answers(&effects)), (vec![15], (0, 0)));
    assert_eq!(reload_answers(&core.at(20, second)), (0, 0), "the coprocess ignores the signal");
    assert_eq!(reload_answers(&core.at(30, TERM)), (0, 2));
}

#[test]
fn r3_a_coprocess_that_drains_too_long_is_killed_for_the_reload() {
    let mut agent = coprocess("agent");
    agent.stop.drain = Duration::from_secs(60);
    let mut core = TestCore::new(vec![plain_job("a"), agent]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    let reload = reload(&core, 1);
    core.at(10, reload);
    assert!(killed(&core.at(5_009, Input::Tick)).is_empty());
    assert_eq!(killed(&core.at(5_010, Input::Tick)), [9]);
    let effects = core.exited(5_020, 1, 137);
    assert_eq!((spawned(&effects), reload_answers(&effects)), (1, (1, 0)));
}

#[test]
fn e3_an_unreachable_job_stops_before_a_reload_starts_its_next_generation() {
    let unreachable = when("unreachable", "missing", Code::Stopping, Repeat::Once);
    let hook = when("hook", "unreachable", Code::Stopping, Repeat::Each);
    let mut core = TestCore::new(vec![coprocess("agent"), unreachable, hook]);
    core.at(0, Input::Ready);
    core.started(1);
    core.started(2);
    core.exited(5, 1, 0);
    let reload = reload(&core, 1);
    assert_eq!(reload_answers(&core.at(10, reload)), (0, 0));
    assert_eq!((core.count(Code::Stopping), core.count(Code::Stopped)), (2, 1), "its hook still runs");
    let effects = core.at(5_010, Input::Tick);
    assert_eq!(reload_answers(&effects), (1, 0));
    let codes: Vec<Code> = core.core.journal().events().map(|event| event.code).skip(5).collect();
    assert_eq!(codes[..3], [Code::Stopped, Code::Startup, Code::Stopping]);
}

#[test]
fn s2_a_process_killed_as_soon_as_it_has_started_is_killed_once() {
    let mut core = TestCore::new(vec![plain_job("a"), coprocess("agent")]);
    core.at(0, Input::Ready);
    core.started(2);
    let reload = reload(&core, 1);
    core.at(10, reload);
    assert!(killed(&core.at(5_010, Input::Tick)).is_empty(), "it has not started yet");
    assert_eq!(killed(&core.at(5_020, Input::Started { run: RunId(1), pid: pid_of(RunId(1)) })), [9]);
    assert!(killed(&core.at(60_000, Input::Tick)).is_empty());
}

#[test]
fn r3_x2_a_manual_restart_waits_for_the_reload_that_restarts_the_job() {
    let mut core = TestCore::new(vec![plain_job("a"), coprocess("agent"), coprocess("slow")]);
    core.at(0, Input::Ready);
    for run in 1..=3 {
        core.started(run);
    }
    let (restart, reload) = (by_hand(ControlCommand::Restart(JobIx(1))), reload(&core, 2));
    core.at(10, restart);
    core.at(10, reload);
    assert_eq!(spawned(&core.exited(20, 1, 0)), 0, "it would be stopped again at once");
    let effects = core.exited(30, 2, 0);
    assert_eq!((spawned(&effects), reload_answers(&effects)), (2, (1, 0)));
}

#[test]
fn x2_an_empty_job_completes_in_one_step_each_time_it_is_started() {
    let mut empty = with_trigger("empty", Trigger::Never);
    empty.exec = None;
    let mut core = TestCore::new(vec![plain_job("a"), empty]);
    core.at(0, by_hand(ControlCommand::Start(JobIx(1))));
    core.at(0, by_hand(ControlCommand::Start(JobIx(1))));
    core.at(1, Input::Ready);
    assert_eq!((core.count(Code::Stopping), core.count(Code::Stopped)), (2, 2));
    assert_eq!((core.state(1), core.core.status(JobIx(1)).incarnation), (State::Complete, 1));
}
