//! What the simulation has found, each as the smallest case that shows it, by hand.

use std::time::Duration;

use containerpilot_core::effect::{DesiredService, Effect, KillReason};
use containerpilot_core::event::{Code, Source, UserSignal};
use containerpilot_core::ids::{CheckRunId, JobIx, RunId, WatchIx};
use containerpilot_core::input::{ExitStatus, Input, Instance};
use containerpilot_core::plan::{
    Check, Command, EventPattern, Health, Job, OnCompletion, OnUnhealthy, Plan, Probe, Repeat, Restarts,
    Role, Signal, Status, Trigger, Watch,
};
use containerpilot_core::request::{Reply, Request as Order, RequestId};
use containerpilot_core::{Core, Phase, State, Time};
use containerpilot_oracle::random::{consul, plain_job, plain_plan, service};
use containerpilot_oracle::world::pid_of;

/// A core, and the names of the events that it has sent.
struct Bench {
    core: Core,
    now: u64,
}

impl Bench {
    fn new(jobs: Vec<Job>) -> Self {
        Self::of(plain_plan(jobs))
    }

    fn of(plan: Plan) -> Self {
        Self { core: Core::new(plan), now: 0 }
    }

    /// An input, so many milliseconds after the beginning.
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
        self.at(now, Input::CheckDone { check: CheckRunId(check), result })
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
    Input::Request { id: RequestId(1), request: Order::Maintenance(on) }
}

fn by_hand(command: Order) -> Input {
    Input::Request { id: RequestId(1), request: command }
}

fn coprocess(name: &str) -> Job {
    let mut job = plain_job(name);
    job.role = Role::Coprocess;
    job
}

/// A reload to the same plan.
fn reload(bench: &Bench, id: u64) -> Input {
    let command = Order::Reload(Box::new(bench.core.plan().clone()));
    Input::Request { id: RequestId(id), request: command }
}

/// How many were told that their reload is done, and how many that it is refused.
fn reload_answers(effects: &[Effect]) -> (usize, usize) {
    let count = |done: bool| {
        let fits = |answer: &Reply| match answer {
            Reply::Reloaded(_) => done,
            Reply::Refused(_) => !done,
            _ => false,
        };
        effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Reply { reply: answer, .. } if fits(answer)))
            .count()
    };
    (count(true), count(false))
}

const TERM: Input = Input::Signal(Signal::TERM);

#[test]
fn p3_a_process_whose_end_is_told_late_is_neither_killed_nor_called_late() {
    let mut job = plain_job("a");
    job.timeout = Some(Duration::from_millis(100));
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    let effects = bench.exited(150, 1, 0);
    assert!(killed(&effects).is_empty());
    assert_eq!(bench.count(Code::ExitSuccess), 1);
    assert_eq!(exits(&effects), Some(0));
}

#[test]
fn p4_what_is_left_of_a_group_does_not_outlive_the_supervisor() {
    let mut bench = Bench::new(vec![plain_job("a")]);
    bench.at(0, Input::Ready);
    bench.started(1);
    let effects = bench.at(10, Input::Exited { run: RunId(1), status: ExitStatus::Code(0), orphans: true });
    assert!(effects.contains(&Effect::KillOrphans { run: RunId(1) }));
    assert_eq!(exits(&effects), Some(0));
}

#[test]
fn p5_w4_a_run_that_dies_slowly_is_killed_once_and_counts_one_turn() {
    let mut job = with_trigger("a", Trigger::Interval(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Limited(4);
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    assert_eq!(killed(&bench.at(100, Input::Tick)), [9]);
    assert!(killed(&bench.at(200, Input::Tick)).is_empty());
    assert!(killed(&bench.at(300, Input::Tick)).is_empty());
    assert_eq!(bench.core.status(JobIx(0)).restarts, 1);
    assert_eq!(spawned(&bench.exited(310, 1, 137)), 1);
}

#[test]
fn p5_s4_what_was_killed_at_the_end_is_not_killed_again_for_its_time() {
    let mut job = plain_job("a");
    job.timeout = Some(Duration::from_millis(5_500));
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    assert_eq!(killed(&bench.at(10, TERM)), [15]);
    assert_eq!(killed(&bench.at(5_010, Input::Tick)), [9]);
    assert!(killed(&bench.at(5_600, Input::Tick)).is_empty());
    assert_eq!(exits(&bench.at(7_010, Input::Tick)), Some(0));
}

#[test]
fn e7_what_comes_before_the_startup_counts_after_it() {
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
    let mut bench = Bench::of(plan);
    let one = Instance { id: "db-1".into(), address: "10.0.0.1".into(), port: 5432 };
    bench.at(0, Input::Instances { watch: WatchIx(0), instances: vec![one] });
    bench.at(0, Input::Signal(Signal(1)));
    assert_eq!(spawned(&bench.at(1, Input::Ready)), 2);
    let codes: Vec<Code> = bench.core.journal().events().map(|event| event.code).collect();
    assert_eq!(codes, [Code::Startup, Code::Changed, Code::Healthy, Code::Signal]);
}

#[test]
fn d8_maintenance_before_the_startup_keeps_services_out() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.service = Some(service("a", Some(Status::Passing)));
    let mut bench = Bench::new(vec![job]);
    bench.at(0, maintenance(true));
    bench.at(1, Input::Ready);
    assert_eq!(bench.count(Code::EnterMaintenance), 1);
    assert!(bench.started(1).is_empty());
    let effects = bench.at(2, maintenance(false));
    let present = Effect::Advertise { job: JobIx(0), desired: DesiredService::Present(Status::Passing) };
    assert!(effects.contains(&present));
}

#[test]
fn w7_an_event_that_is_named_twice_runs_a_job_once() {
    let twice = vec![event("global", Code::Startup), event("global", Code::Startup)];
    let job = with_trigger("a", Trigger::Any { conditions: twice, repeat: Repeat::Each });
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    let effects = bench.exited(10, 1, 0);
    assert_eq!((spawned(&effects), exits(&effects)), (0, Some(0)));
}

#[test]
fn w12_what_is_true_while_healthy_ends_before_anything_begins() {
    let source = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    let conditions = vec![event("a", Code::Unhealthy), event("a", Code::Healthy)];
    let waits = with_trigger("b", Trigger::All { conditions, repeat: Repeat::Once });
    let mut bench = Bench::new(vec![source, waits]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.checked(10, 1, true);
    bench.at(1_000, Input::Tick);
    assert_eq!(spawned(&bench.checked(1_010, 2, false)), 0, "it is not healthy");
    bench.at(2_000, Input::Tick);
    assert_eq!(spawned(&bench.checked(2_010, 3, true)), 1, "it was unhealthy, and is healthy");
}

#[test]
fn w10_conditions_that_cannot_come_to_hold_again_complete_a_job() {
    let conditions = vec![event("global", Code::Startup)];
    let job = with_trigger("a", Trigger::All { conditions, repeat: Repeat::Each });
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    assert_eq!(exits(&bench.exited(10, 1, 0)), Some(0));
}

#[test]
fn s2_a_process_that_was_stopped_before_it_was_there_does_not_enter_the_catalog() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.service = Some(service("a", Some(Status::Passing)));
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.at(1, TERM);
    let effects = bench.started(1);
    assert_eq!(effects, [Effect::Kill { run: RunId(1), signal: Signal::TERM, reason: KillReason::Stop }]);
}

#[test]
fn s2_a_hook_that_has_a_hook_is_waited_for() {
    let hook = when("hook", "a", Code::Stopping, Repeat::Once);
    let hooks_hook = when("hook2", "hook", Code::Stopping, Repeat::Once);
    let mut bench = Bench::new(vec![plain_job("a"), hook, hooks_hook]);
    bench.at(0, Input::Ready);
    bench.started(1);
    assert_eq!(spawned(&bench.at(10, TERM)), 1);
    bench.started(2);
    assert_eq!(spawned(&bench.exited(20, 2, 0)), 1);
    bench.started(3);
    assert_eq!(bench.state(1), State::Waiting);
    assert!(killed(&bench.exited(30, 3, 0)).contains(&15), "only now");
    assert_eq!(bench.state(1), State::Complete);
}

#[test]
fn s4_jobs_that_wait_for_each_others_end_do_not_sit_the_time_out() {
    let one = when("one", "two", Code::Stopping, Repeat::Once);
    let two = when("two", "one", Code::Stopping, Repeat::Once);
    let mut bench = Bench::new(vec![plain_job("a"), one, two]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.at(10, TERM);
    assert_eq!(spawned(&bench.exited(20, 1, 0)), 1, "the ring is opened");
    bench.started(2);
    assert_eq!(exits(&bench.exited(30, 2, 0)), Some(0));
}

#[test]
fn s3_what_comes_for_the_end_while_a_hook_runs_is_not_lost() {
    let any = vec![event("a", Code::Stopping), event("b", Code::Stopping)];
    let hook = with_trigger("hook", Trigger::Any { conditions: any, repeat: Repeat::Each });
    let mut bench = Bench::new(vec![plain_job("a"), plain_job("b"), hook]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.started(2);
    assert_eq!(spawned(&bench.exited(10, 1, 0)), 1);
    bench.started(3);
    assert_eq!(spawned(&bench.at(20, TERM)), 0);
    assert_eq!(spawned(&bench.exited(30, 3, 0)), 1, "for the stopping of b");
    bench.started(4);
    assert_eq!(killed(&bench.exited(40, 4, 0)), [15]);
    assert_eq!(exits(&bench.exited(50, 2, 0)), Some(0));
}

#[test]
fn s3_a_job_that_only_advertises_does_not_begin_in_a_shutdown() {
    let mut elsewhere = when("elsewhere", "global", Code::Shutdown, Repeat::Once);
    elsewhere.exec = None;
    elsewhere.service = Some(service("elsewhere", Some(Status::Passing)));
    let elsewhere = with_health(elsewhere, vec![check(exec())], OnUnhealthy::Report);
    let mut bench = Bench::new(vec![plain_job("a"), elsewhere]);
    bench.at(0, Input::Ready);
    bench.started(1);
    assert_eq!(killed(&bench.at(10, TERM)), [15]);
    assert_eq!(bench.state(1), State::Complete);
    assert_eq!(bench.count(Code::Healthy), 0);
}

#[test]
fn s7_signals_before_the_process_is_there_are_all_passed_on_in_order() {
    let mut main = plain_job("main");
    main.role = Role::Main;
    (main.on_failure, main.on_success) = (OnCompletion::Shutdown, OnCompletion::Shutdown);
    let mut bench = Bench::of(Plan { pass_signals: true, ..plain_plan(vec![main]) });
    bench.at(0, Input::Signal(Signal(10)));
    bench.at(1, Input::Ready);
    bench.at(2, TERM);
    bench.at(3, Input::Signal(Signal(1)));
    assert_eq!(killed(&bench.started(1)), [10, 15, 1]);
    let effects = bench
        .at(4, Input::Exited { run: RunId(1), status: ExitStatus::Signal(Signal::TERM), orphans: false });
    assert_eq!((exits(&effects), bench.core.phase()), (Some(143), Phase::Exited));
}

#[test]
fn h2_the_checks_of_a_new_run_know_nothing_of_the_run_before() {
    let mut job = plain_job("a");
    job.restarts = Restarts::Unlimited;
    let job = with_health(job, vec![check(Probe::Running), check(exec())], OnUnhealthy::Report);
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.checked(10, 1, true);
    assert_eq!(bench.core.status(JobIx(0)).healthy, Some(true));
    bench.exited(20, 1, 0);
    bench.started(2);
    assert_eq!(bench.core.status(JobIx(0)).healthy, None);
    bench.checked(30, 2, true);
    assert_eq!(bench.core.status(JobIx(0)).healthy, Some(true));
}

#[test]
fn h7_a_complete_job_without_a_process_is_not_healthy() {
    let mut elsewhere = plain_job("a");
    elsewhere.exec = None;
    let mut bench = Bench::new(vec![with_health(elsewhere, vec![check(exec())], OnUnhealthy::Report)]);
    bench.at(0, Input::Ready);
    bench.checked(10, 1, true);
    assert_eq!(exits(&bench.at(20, TERM)), Some(0));
    assert_eq!(bench.core.status(JobIx(0)).healthy, None);
    assert_eq!(bench.count(Code::Unhealthy), 1);
}

#[test]
fn h8_a_job_that_flaps_while_it_ends_is_asked_once_and_killed_in_time() {
    let mut job = plain_job("a");
    job.restarts = Restarts::Unlimited;
    let mut bench = Bench::new(vec![with_health(job, vec![check(exec())], OnUnhealthy::Restart)]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.checked(0, 1, true);
    let mut signals = Vec::new();
    for (second, run) in (1..=12).zip(2..) {
        signals.extend(
            killed(&bench.at(second * 1_000, Input::Tick)).into_iter().map(|signal| (second, signal)),
        );
        let passes = second % 2 == 0;
        signals.extend(
            killed(&bench.checked(second * 1_000, run, passes)).into_iter().map(|signal| (second, signal)),
        );
    }
    assert_eq!(signals, [(1, 15), (6, 9)]);
}

#[test]
fn w4_a_run_that_began_after_its_turn_was_due_has_not_met_it() {
    let mut job = with_trigger("a", Trigger::Interval(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Unlimited;
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.exited(10, 1, 0);
    assert_eq!(spawned(&bench.at(100, Input::Tick)), 1);
    let late = bench.at(250, Input::Started { run: RunId(2), pid: pid_of(RunId(2)) });
    assert!(killed(&late).is_empty(), "the turn was due at 200, and it began at 250");
}

#[test]
fn w4_x2_a_turn_that_meets_a_run_started_by_hand_follows_it() {
    let mut job = with_trigger("a", Trigger::Interval(Duration::from_millis(100)));
    job.timeout = Some(Duration::from_millis(100));
    job.restarts = Restarts::Unlimited;
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.exited(10, 1, 0);
    let start = Input::Request { id: RequestId(1), request: Order::Start(JobIx(0)) };
    assert_eq!(spawned(&bench.at(20, start)), 1);
    bench.started(2);
    assert_eq!(killed(&bench.at(100, Input::Tick)), [9]);
    assert_eq!(spawned(&bench.exited(110, 2, 137)), 1);
}

#[test]
fn d8_h7_maintenance_takes_no_word_from_a_job_that_leaves_already() {
    let mut job = with_health(plain_job("a"), vec![check(exec())], OnUnhealthy::Report);
    job.stop.drain = Duration::from_secs(1);
    let mut bench = Bench::new(vec![job]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.checked(10, 1, true);
    bench.at(20, Input::Request { id: RequestId(1), request: Order::Stop(JobIx(0)) });
    bench.at(30, maintenance(true));
    bench.exited(40, 1, 0);
    assert_eq!(bench.count(Code::Unhealthy), 1);
}

#[test]
fn x1_c6_whoever_waits_for_a_reload_is_told_when_everything_stops_instead() {
    let mut bench = Bench::new(vec![plain_job("a"), coprocess("agent")]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.started(2);
    let (first, second) = (reload(&bench, 1), reload(&bench, 2));
    let effects = bench.at(10, first);
    assert_eq!((killed(&effects), reload_answers(&effects)), (vec![15], (0, 0)));
    assert_eq!(reload_answers(&bench.at(20, second)), (0, 0), "it ignores the signal");
    assert_eq!(reload_answers(&bench.at(30, TERM)), (0, 2));
}

#[test]
fn r3_a_coprocess_that_does_not_drain_in_time_is_killed_for_the_reload() {
    let mut agent = coprocess("agent");
    agent.stop.drain = Duration::from_secs(60);
    let mut bench = Bench::new(vec![plain_job("a"), agent]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.started(2);
    let reload = reload(&bench, 1);
    bench.at(10, reload);
    assert!(killed(&bench.at(5_009, Input::Tick)).is_empty());
    assert_eq!(killed(&bench.at(5_010, Input::Tick)), [9]);
    let effects = bench.exited(5_020, 1, 137);
    assert_eq!((spawned(&effects), reload_answers(&effects)), (1, (1, 0)));
}

#[test]
fn e3_who_has_given_up_hope_is_stopped_before_a_reload_gives_it_another() {
    let hopeless = when("hopeless", "ghost", Code::Stopping, Repeat::Once);
    let hook = when("hook", "hopeless", Code::Stopping, Repeat::Each);
    let mut bench = Bench::new(vec![coprocess("agent"), hopeless, hook]);
    bench.at(0, Input::Ready);
    bench.started(1);
    bench.started(2);
    bench.exited(5, 1, 0);
    let reload = reload(&bench, 1);
    assert_eq!(reload_answers(&bench.at(10, reload)), (0, 0));
    assert_eq!((bench.count(Code::Stopping), bench.count(Code::Stopped)), (2, 1), "its hook still runs");
    let effects = bench.at(5_010, Input::Tick);
    assert_eq!(reload_answers(&effects), (1, 0));
    let codes: Vec<Code> = bench.core.journal().events().map(|event| event.code).skip(5).collect();
    assert_eq!(codes[..3], [Code::Stopped, Code::Startup, Code::Stopping]);
}

#[test]
fn s2_a_process_that_is_killed_as_soon_as_it_is_there_is_killed_once() {
    let mut bench = Bench::new(vec![plain_job("a"), coprocess("agent")]);
    bench.at(0, Input::Ready);
    bench.started(2);
    let reload = reload(&bench, 1);
    bench.at(10, reload);
    assert!(killed(&bench.at(5_010, Input::Tick)).is_empty(), "it is not there yet");
    assert_eq!(killed(&bench.at(5_020, Input::Started { run: RunId(1), pid: pid_of(RunId(1)) })), [9]);
    assert!(killed(&bench.at(60_000, Input::Tick)).is_empty());
}

#[test]
fn r3_x2_what_a_reload_begins_anew_is_not_started_by_hand_before() {
    let mut bench = Bench::new(vec![plain_job("a"), coprocess("agent"), coprocess("slow")]);
    bench.at(0, Input::Ready);
    for run in 1..=3 {
        bench.started(run);
    }
    let (restart, reload) = (by_hand(Order::Restart(JobIx(1))), reload(&bench, 2));
    bench.at(10, restart);
    bench.at(10, reload);
    assert_eq!(spawned(&bench.exited(20, 1, 0)), 0, "it would be stopped at once");
    let effects = bench.exited(30, 2, 0);
    assert_eq!((spawned(&effects), reload_answers(&effects)), (2, (1, 0)));
}

#[test]
fn x2_a_job_with_nothing_to_run_lives_and_ends_in_one_step_as_often_as_it_is_started() {
    let mut empty = with_trigger("empty", Trigger::Never);
    empty.exec = None;
    let mut bench = Bench::new(vec![plain_job("a"), empty]);
    bench.at(0, by_hand(Order::Start(JobIx(1))));
    bench.at(0, by_hand(Order::Start(JobIx(1))));
    bench.at(1, Input::Ready);
    assert_eq!((bench.count(Code::Stopping), bench.count(Code::Stopped)), (2, 2));
    assert_eq!((bench.state(1), bench.core.status(JobIx(1)).generation), (State::Complete, 1));
}
