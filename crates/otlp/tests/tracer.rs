//! From the steps of a core in virtual time to spans (T6).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use containerpilot_config::host::StaticHost;
use containerpilot_config::interfaces::HostAddress;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::ids::{CheckRunId, RenderId, RunId, WatchIx};
use containerpilot_core::input::{Answer, ExitStatus, Remains, RenderedText, StartError, StartErrorKind};
use containerpilot_core::plan::{Plan, Signal};
use containerpilot_core::{Core, Effect, Input, Request, RequestId, Time};
use containerpilot_otlp::{AttributeValue, CoreStep, SpanKey, TraceSpan, Tracer};

/// A core with simulated processes, and the spans that its steps have ended.
struct World {
    core: Core,
    tracer: Tracer,
    now: Time,
    runs: BTreeMap<String, RunId>,
    checks: VecDeque<CheckRunId>,
    renders: VecDeque<RenderId>,
    next_pid: i32,
    starts_fail: bool,
    exit: Option<u8>,
    spans: Vec<TraceSpan>,
}

fn plan(text: &str) -> Plan {
    let host = StaticHost {
        addresses: vec![HostAddress { interface: "eth0".into(), ip: "10.0.0.1".parse().unwrap() }],
        hostname: "box".into(),
        ..StaticHost::default()
    };
    let loaded =
        load(vec![ConfigFile { name: "f".into(), text: text.into() }], &host, Options { version: "0" });
    loaded.plan.unwrap_or_else(|| panic!("{:?}", loaded.report.problems().len()))
}

impl World {
    fn new(text: &str) -> Self {
        let core = Core::new(plan(text));
        let tracer = Tracer::new(&core);
        let mut world = Self {
            core,
            tracer,
            now: Time::ZERO,
            runs: BTreeMap::new(),
            checks: VecDeque::new(),
            renders: VecDeque::new(),
            next_pid: 100,
            starts_fail: false,
            exit: None,
            spans: Vec::new(),
        };
        world.input(Input::Ready);
        world
    }

    fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.core.step(self.now, input.clone(), &mut effects);
        let step = CoreStep { now: self.now, input: &input, effects: &effects, core: &self.core };
        self.tracer.step(&step, &mut self.spans);
        for effect in effects {
            match effect {
                Effect::Spawn { run, .. } if self.starts_fail => {
                    let why =
                        StartError { kind: StartErrorKind::NotFound, message: "no such program".into() };
                    self.input(Input::StartFailed { run, why });
                }
                Effect::Spawn { job, run, .. } => {
                    let name = self.core.plan().jobs[job.index()].name.clone();
                    self.runs.insert(name, run);
                    self.next_pid += 1;
                    self.input(Input::Started { run, pid: self.next_pid });
                }
                Effect::RunCheck { run, .. }
                | Effect::RunDrain { run, .. }
                | Effect::TestFile { run, .. } => {
                    self.checks.push_back(run);
                }
                Effect::RenderFile { render, .. } | Effect::InstallFile { render } => {
                    self.renders.push_back(render);
                }
                Effect::Advertise { job, .. } => self.input(Input::Deregistered { job }),
                Effect::Exit(exit) => {
                    self.exit = Some(exit.code);
                    self.tracer.finish(self.now, exit.code, &mut self.spans);
                }
                _ => {}
            }
        }
    }

    fn after(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.input(Input::Tick);
    }

    fn exits(&mut self, job: &str, status: ExitStatus) {
        let run = self.runs.remove(job).unwrap_or_else(|| panic!("`{job}` does not run"));
        self.input(Input::Exited { run, status, remains: Remains::Nothing });
    }

    fn checked(&mut self, result: Result<(), &str>) {
        let check = self.checks.pop_front().unwrap();
        self.input(Input::CheckDone { check, result: result.map_err(Into::into) });
    }

    /// The only span of this name.
    fn span(&self, name: &str) -> &TraceSpan {
        let found: Vec<&TraceSpan> = self.spans.iter().filter(|span| span.name == name).collect();
        let [only] = found.as_slice() else { panic!("{} spans `{name}`: {:?}", found.len(), self.names()) };
        only
    }

    fn names(&self) -> Vec<&str> {
        self.spans.iter().map(|span| span.name.as_str()).collect()
    }

    /// The name of the span that a span belongs to, and those of its links.
    fn relations(&self, name: &str) -> (Option<&str>, Vec<&str>) {
        self.relations_of(self.span(name))
    }

    fn relations_of(&self, span: &TraceSpan) -> (Option<&str>, Vec<&str>) {
        let name_of = |key: SpanKey| {
            if key == SpanKey::Root {
                return "container";
            }
            let found = self.spans.iter().find(|span| span.key == key);
            found.map(|span| span.name.as_str()).unwrap_or_else(|| panic!("{key:?} was not exported"))
        };
        (span.parent.map(name_of), span.links.iter().copied().map(name_of).collect())
    }

    fn attribute(&self, span: &str, key: &str) -> Option<&AttributeValue> {
        self.span(span).attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

const OK: ExitStatus = ExitStatus::Code(0);

#[test]
fn t6_the_life_of_a_container_is_one_trace_by_its_causes() {
    let mut world = World::new(
        "{ jobs: [
            { name: 'migrate', exec: 'm' },
            { name: 'web', exec: 'w', when: { source: 'migrate', once: 'exitSuccess' },
              health: { exec: 'h', interval: 10, ttl: 25 } },
            { name: 'warm', exec: 'c', when: { source: 'web', once: 'healthy' } },
            { name: 'pre-stop', exec: 'p', when: { source: 'web', once: 'stopping' } },
            { name: 'post', exec: 'q', when: { source: 'web', once: 'stopped' } } ] }",
    );
    world.after(1);
    world.exits("migrate", OK);
    world.after(1);
    assert_eq!(world.names(), ["startup", "start migrate", "run migrate"], "`start web` waits for its check");
    world.checked(Ok(()));
    world.exits("warm", OK);
    world.after(5);
    world.input(Input::Signal(Signal::TERM));
    world.after(1);
    world.exits("pre-stop", OK);
    world.after(1);
    world.exits("web", ExitStatus::Signal(Signal::TERM));
    world.exits("post", OK);
    assert_eq!(world.exit, Some(0));
    let root = Some("container");
    assert_eq!(world.relations("container"), (None, vec![]));
    assert_eq!(world.relations("run migrate"), (root, vec![]));
    assert_eq!(world.relations("start migrate"), (Some("run migrate"), vec![]));
    assert_eq!(world.relations("run web"), (root, vec!["run migrate"]), "its cause had ended");
    assert_eq!(world.relations("check check.web"), (Some("run web"), vec![]));
    assert_eq!(world.relations("run warm"), (Some("run web"), vec![]), "its cause was running");
    assert_eq!(world.relations("stop web"), (Some("run web"), vec![]));
    assert_eq!(world.relations("run pre-stop"), (Some("stop web"), vec![]));
    assert_eq!(world.relations("run post"), (root, vec!["run web"]));
    assert_eq!(world.relations("shutdown"), (root, vec![]));
    let seconds = |name| {
        let span = world.span(name);
        (span.start.as_nanos() / 1_000_000_000, span.end.as_nanos() / 1_000_000_000)
    };
    assert_eq!((seconds("container"), seconds("run web"), seconds("start web")), ((0, 9), (1, 9), (1, 2)));
    assert_eq!((seconds("stop web"), seconds("shutdown")), ((7, 9), (7, 9)));
    assert_eq!(world.span("run web").failure, None, "the supervisor has stopped it");
    assert_eq!(world.attribute("run web", "containerpilot.ended_by"), Some(&"shutdown".into()));
    assert_eq!(world.attribute("run web", "containerpilot.cause"), Some(&"migrate exitSuccess".into()));
    assert_eq!(world.attribute("run migrate", "process.exit.code"), Some(&AttributeValue::Int(0)));
    let events: Vec<&str> = world.span("run web").events.iter().map(|event| event.name).collect();
    assert_eq!(events, ["becameHealthy", "stopping", "signal"]);
}

#[test]
fn t6_a_restart_is_linked_to_the_run_before_and_does_not_nest() {
    let mut world = World::new("{ jobs: [{ name: 'a', exec: 'x', restarts: 5, restartBackoff: false }] }");
    for _ in 0..3 {
        world.after(1);
        world.exits("a", ExitStatus::Code(3));
    }
    let runs: Vec<&TraceSpan> = world.spans.iter().filter(|span| span.name == "run a").collect();
    let [first, second, third] = runs.as_slice() else { panic!("{:?}", world.names()) };
    for run in [first, second, third] {
        assert_eq!((run.parent, run.failure.as_deref()), (Some(SpanKey::Root), Some("exited with code 3")));
    }
    assert_eq!(
        (&*first.links, &*second.links, &*third.links),
        (&[][..], &[first.key][..], &[second.key][..])
    );
    assert!(third.attributes.contains(&("containerpilot.restarts", AttributeValue::Int(2))));
}

#[test]
fn t6_an_exit_that_restarts_its_job_in_the_same_step_is_the_cause_of_the_other_job() {
    let mut world = World::new(
        "{ jobs: [{ name: 'a', exec: 'x', restarts: 'unlimited', restartBackoff: false },
                  { name: 'b', exec: 'y', when: { source: 'a', each: 'exitFailed' } }] }",
    );
    world.after(1);
    world.exits("a", ExitStatus::Code(1));
    world.exits("b", OK);
    assert_eq!(world.relations("run b").1, ["run a"], "the run that has ended, not the new one");
}

#[test]
fn t6_only_changed_results_of_checks_are_spans() {
    let mut world =
        World::new("{ jobs: [{ name: 'a', exec: 'x', health: { exec: 'h', interval: 1, ttl: 5 } }] }");
    for passes in [true, true, true, false, false, true] {
        world.checked(if passes { Ok(()) } else { Err("refused") });
        world.after(1);
    }
    let checks: Vec<Option<&str>> = world
        .spans
        .iter()
        .filter(|span| span.name == "check check.a")
        .map(|span| span.failure.as_deref())
        .collect();
    assert_eq!(checks, [None, Some("refused"), None]);
    world.exits("a", OK);
    let events: Vec<&str> = world.span("run a").events.iter().map(|event| event.name).collect();
    assert_eq!(events, ["becameHealthy", "becameUnhealthy", "becameHealthy"]);
}

#[test]
fn t6_failed_starts_and_early_exits_fail_their_start() {
    let mut world = World::new(
        "{ jobs: [{ name: 'a', exec: 'x', health: { exec: 'h', interval: 1, ttl: 5 } },
                  { name: 'later', exec: 'z', when: { source: 'a', once: 'exitFailed' } },
                  { name: 'keep', exec: 'k' }] }",
    );
    world.starts_fail = true;
    world.exits("a", ExitStatus::Signal(Signal::KILL));
    let failure = |name: &str| world.span(name).failure.as_deref();
    assert_eq!(failure("run a"), Some("exited on SIGKILL"));
    assert_eq!(failure("start a"), Some("exited on SIGKILL"));
    assert_eq!(
        (failure("run later"), failure("start later")),
        (Some("no such program"), Some("no such program"))
    );
    assert_eq!(world.relations_of(world.span("run later")).1, ["run a"]);
}

#[test]
fn t6_events_of_watches_signals_and_actions_are_spans_and_causes() {
    let mut world = World::new(
        "{ watches: [{ name: 'db', tcp: 'db:1', interval: 1 }],
           jobs: [{ name: 'keep', exec: 'k' },
                  { name: 'on-db', exec: 'x', when: { source: 'watch.db', once: 'healthy' } },
                  { name: 'on-hup', exec: 'y', when: { source: 'SIGHUP' } },
                  { name: 'act', do: { setEnv: { A: 'b' } }, when: { source: 'on-hup', once: 'exitSuccess' } },
                  { name: 'on-act', exec: 'z', when: { source: 'act', once: 'exitSuccess' } }] }",
    );
    world.input(Input::Watched { watch: WatchIx(0), answer: Ok(Answer::Up) });
    world.exits("on-db", OK);
    world.input(Input::Signal(Signal::HUP));
    world.exits("on-hup", OK);
    world.exits("on-act", OK);
    world.tracer.finish(world.now, 1, &mut world.spans);
    assert_eq!(world.relations("run on-db"), (Some("container"), vec!["watch.db healthy"]));
    assert_eq!(world.relations("run on-hup"), (Some("container"), vec!["SIGHUP"]));
    assert_eq!(world.relations("act exitSuccess"), (Some("container"), vec!["run on-hup"]));
    assert_eq!(world.relations("run on-act"), (Some("container"), vec!["act exitSuccess"]));
    assert_eq!(world.span("container").failure.as_deref(), Some("exit code 1"));
    assert_eq!(world.attribute("run keep", "containerpilot.unfinished"), Some(&AttributeValue::Flag(true)));
}

#[test]
fn t6_renderings_their_tests_and_reloads_are_spans() {
    let config = |more: &str| {
        format!(
            "{{ files: [{{ name: 'conf', template: 'x', to: '/tmp/x', test: 't' }}],
                jobs: [{{ name: 'keep', exec: 'k' }},
                       {{ name: 'use', exec: 'u', when: {{ source: 'file.conf', once: 'changed' }} }}{more}] }}"
        )
    };
    let mut world = World::new(&config(""));
    let render = world.renders.pop_front().unwrap();
    world.input(Input::FileRendered { render, result: Ok(RenderedText::New) });
    world.checked(Ok(()));
    let render = world.renders.pop_front().unwrap();
    world.input(Input::FileInstalled { render, result: Ok(()) });
    assert_eq!(world.attribute("render conf", "containerpilot.changed"), Some(&AttributeValue::Flag(true)));
    let reload =
        |text: &str| Input::Request { id: RequestId(7), request: Request::Reload(Box::new(plan(text))) };
    world.input(reload(&config(", { name: 'new', exec: 'n' }")));
    assert_eq!(world.span("reload").key, SpanKey::Reload(7));
    // The plan has other indices now.
    world.exits("use", OK);
    world.exits("new", ExitStatus::Code(1));
    world.exits("keep", OK);
    assert_eq!(world.exit, Some(1));
    assert_eq!(world.relations("test conf").0, Some("render conf"));
    assert_eq!(world.relations("run use"), (Some("container"), vec!["render conf"]));
    for name in ["run keep", "run new", "run use"] {
        assert_eq!(world.attribute(name, "containerpilot.unfinished"), None, "{name}");
    }
}

#[test]
fn t6_events_of_a_run_are_bounded_and_the_rest_is_counted() {
    let mut world =
        World::new("{ jobs: [{ name: 'a', exec: 'x', health: { exec: 'h', interval: 1, ttl: 5 } }] }");
    for nth in 0..300 {
        world.checked(if nth % 2 == 0 { Ok(()) } else { Err("refused") });
        world.after(1);
    }
    world.exits("a", OK);
    let run = world.span("run a");
    assert_eq!((run.events.len(), run.dropped_events), (128, 172));
}

#[test]
fn t6_runs_that_exist_when_traces_are_switched_on_are_known() {
    let mut world = World::new("{ jobs: [{ name: 'a', exec: 'x' }] }");
    world.after(3);
    world.tracer = Tracer::new(&world.core);
    world.spans.clear();
    world.after(1);
    world.exits("a", OK);
    assert_eq!(world.names(), ["run a", "shutdown", "container"]);
    assert_eq!((world.span("run a").start, world.span("container").start), (Time::ZERO, Time::ZERO));
}
