//! B5: the world of a recording as a scenario.

use std::collections::BTreeMap;

use containerpilot_config::ConfigFile;
use containerpilot_config::diagnostics::Style;
use containerpilot_core::plan::Plan;
use containerpilot_core::redaction::Redactor;
use containerpilot_core::{Core, Effect, Input, Time};
use containerpilot_recording::{Recording, Replay, StepRecorder};
use containerpilot_simulation::expect::judge;
use containerpilot_simulation::explore::{Explorer, Seed};
use containerpilot_simulation::read::Draft;
use containerpilot_simulation::recorded::{Observe, Observer, RecordedWorld};
use containerpilot_simulation::runner::{simulate, simulate_observed};
use containerpilot_simulation::scenario::{Claim, Scenario};
use containerpilot_simulation::shrink::shrink;
use containerpilot_simulation::timeline::{SimulationRun, What};
use containerpilot_simulation::write;

use super::support::{CONSUL, WEB, plan, scenario};

/// Records what a core is told.
struct Steps(StepRecorder);

impl Observe for Steps {
    fn before_step(&mut self, core: &Core, at: Time, input: &Input) {
        self.0.before_step(core, at, || at.as_nanos() / 1_000_000, input).unwrap();
    }

    fn after_step(&mut self, _: &Core, _: Time, effects: &[Effect]) {
        self.0.after_step(effects);
    }
}

/// Simulates, and returns what a recording of that says about the world.
fn record(plan: &Plan, scenario: &Scenario) -> (SimulationRun, [RecordedWorld; 2]) {
    let mut steps = Steps(StepRecorder::new(64 << 20, "1".to_owned(), Redactor::open()));
    let run = simulate_observed(plan, scenario, &mut steps);
    let bytes = steps.0.to_bytes();
    let recording = Recording::read(&bytes).unwrap();
    let worlds = [Observer::default(), Observer::distinct()].map(|mut observer| {
        let mut replay = Replay::with_secrets(&recording);
        let step =
            |core: &mut Core, at: Time, input: Input, effects: &mut Vec<Effect>, observer: &mut Observer| {
                observer.before_step(core, at, &input);
                core.step(at, input, effects);
                observer.after_step(core, at, effects);
            };
        let mut next =
            || replay.next(|core, at, input, effects| step(core, at, input, effects, &mut observer));
        while next().unwrap().is_some() {}
        observer.world()
    });
    (run, worlds)
}

/// The scenario as it is read from the file that is written.
fn written(plan: &Plan, scenario: &Scenario) -> (String, Scenario) {
    let text = write::text(scenario, &["a comment".to_owned()]);
    let draft = Draft::read(ConfigFile { name: "scenario.json5".into(), text: text.clone().into() });
    let scenario = draft.scenario(plan, &BTreeMap::new()).unwrap_or_else(|report| {
        panic!("{}\n{text}", report.display(Style { faults_are_errors: true, colour: false }))
    });
    (text, scenario)
}

fn events(run: &SimulationRun) -> Vec<String> {
    let events = run.entries.iter().filter(|entry| matches!(entry.what, What::Event(_)));
    events.map(|entry| format!("{} {}", entry.name(), entry.note)).collect()
}

/// Returns the text of the scenario.
fn assert_same(plan: &Plan, first: &Scenario, what: &str) -> String {
    let (run, [world, distinct]) = record(plan, first);
    if run.abort.is_some() {
        return String::new();
    }
    let expected = events(&run);
    let mut recorded = world.aligned(plan).scenario(&[]);
    if events(&simulate(plan, &recorded.scenario)) != expected {
        recorded = distinct.aligned(plan).scenario(&[]);
    }
    let (text, again) = written(plan, &recorded.scenario);
    let found = events(&simulate(plan, &again));
    let place = expected.iter().zip(&found).position(|(one, other)| one != other);
    let place = place.unwrap_or(expected.len().min(found.len()));
    let around =
        |all: &[String]| all.iter().skip(place.saturating_sub(3)).take(6).cloned().collect::<Vec<_>>();
    assert!(
        expected == found,
        "{what}: event {place} differs:\n{:#?}\nbut then\n{:#?}\n{text}\n{:?}\n{first:?}",
        around(&expected),
        around(&found),
        recorded.left_out
    );
    text
}

/// Each configuration, with each fault, and with several.
fn assert_same_in_variations(name: &str, config: &str, base: &str, variations: u64) {
    let plan = plan(config);
    let base = scenario(config, base);
    assert_same(&plan, &base, name);
    let explorer = Explorer::new(&plan, &base);
    for nth in 0..variations {
        let seed = Seed { series: 7, nth, faults: u64::MAX };
        assert_same(&plan, &explorer.scenario(seed), &format!("{name} {seed} {:?}", explorer.faults(seed)));
    }
}

const MANY: &str = r#"{ consul: "localhost:8500", stopTimeout: 5, jobs: [
    { name: "migrate", exec: "migrate", when: { source: "watch.db", once: "healthy", timeout: "30s" }, restarts: 2 },
    { name: "web", exec: "web", when: { source: "migrate", once: "exitSuccess" }, restarts: "unlimited", port: 80,
      health: [{ name: "alive", exec: "ok", interval: 5, ttl: 15 }, { name: "deep", exec: "ok", interval: 7 }],
      startLimit: { count: 4, within: "1m" } },
    { name: "tick", exec: "tick", when: { interval: "9s" }, timeout: "4s" },
    { name: "hup", exec: "hup", when: { source: "SIGHUP" } },
    { name: "bye", exec: "bye", when: { source: "web", once: "stopping" } },
    { name: "leader", exec: "leader", requires: ["lock.main"], restarts: "unlimited" },
    { name: "again", exec: "again", when: { source: "watch.db", each: "changed" } },
    { name: "shy", exec: "shy", ready: { fd: 3 }, restarts: "unlimited" },
  ],
  locks: [{ name: "main" }],
  watches: [{ name: "db", interval: 5 }],
}"#;

/// What people and programs do, besides faults.
const BUSY: &str = r#"{ until: "4m", jobs: [
    { name: "web", runs: [{ lasts: "20s", exit: 3 }, { startsIn: "300ms", ignores: ["SIGHUP", "SIGUSR1"], stopExit: 0 },
        { fails: "notFound" }, { stopsIn: "never" }, { lasts: "3s", signal: "SIGSEGV" }, { outlivedFor: "700ms" }, {}],
      checks: [{ from: "30s", to: "42s" }, { check: "deep", from: "70s", to: "100s", answer: "hang" }] },
    { name: "shy", runs: [{ ready: "3s", lasts: "33s" }, { ready: "never", lasts: "50s", exit: 2 }, {}] },
    { name: "tick", runs: [{ lasts: "2s" }, { lasts: "8s" }, { lasts: "1s", exit: 1 }] },
  ],
  locks: [{ name: "main", changes: [{ at: "2s" }, { at: "50s", held: false }, { at: "61s" }] }],
  watches: [{ name: "db", sees: [{ at: "1s", instances: 2 }, { at: "40s", others: true, instances: 2 },
      { at: "60s", instances: 0 }, { at: "65s", instances: 3 }] }],
  happens: [
    { at: "25s", send: "SIGHUP", to: "web" }, { at: "45s", restart: "web" }, { at: "55s", maintenance: true },
    { at: "58s", maintenance: false }, { at: "66s", stop: "shy" }, { at: "70s", signal: "SIGHUP" },
    { at: "80s", start: "shy" }, { at: "90s", putenv: "LEVEL=debug" }, { at: "2m", restart: "web" },
    { at: "150s", send: "SIGUSR2", to: "web" }, { at: "3m", clock: "2026-01-01T05:00:00Z" },
  ],
}"#;

/// A drain program, a watchdog, replicas and a rendered file.
const OTHERS: &str = r#"{ stopTimeout: 20, jobs: [
    { name: "pool", exec: "pool", replicas: 3, restarts: "unlimited", health: { exec: "ok", interval: 3, ttl: 9 } },
    { name: "dog", exec: "dog", ready: "notify", watchdog: "10s", restarts: "unlimited" },
    { name: "slow", exec: "slow", drain: { exec: "drain", timeout: "5s" }, restarts: "unlimited" },
    { name: "checked", health: { exec: "ok", interval: 4, ttl: 10 } },
    { name: "reader", exec: "reader", when: { source: "file.conf", each: "changed" } },
  ],
  watches: [{ name: "level", file: "/etc/level" }],
  files: [{ name: "conf", to: "/run/conf", template: "{{`{{ watch \"level\" }}`}}", test: "ok" }],
}"#;

const OTHERS_BUSY: &str = r#"{ until: "3m", jobs: [
    { name: "dog", runs: [{ ready: "1s", watchdogStops: "20s" }, {}] },
    { name: "slow", runs: [{ drain: "2s" }, { drain: "never" }, { drain: "1s", drainExit: 1 }] },
    { name: "checked", checks: [{ from: "10s", to: "31s", takes: "1s" }] },
    { name: "pool-2", runs: [{ lasts: "14s" }, { healthyAfter: "5s" }] },
  ],
  watches: [{ name: "level", sees: [{ at: "1s", value: "a" }, { at: "20s", value: "b" }, { at: "50s", up: false },
      { at: "60s", value: "a" }, { at: "100s", value: "c" }] }],
  files: [{ name: "conf", takes: "30ms", fails: { from: "59s", to: "70s" }, tests: { from: "99s", to: "102s" } }],
  happens: [
    { at: "30s", restart: "slow" }, { at: "40s", restart: "slow" }, { at: "60s", rollingRestart: "pool" },
    { at: "90s", scale: "pool=1" }, { at: "100s", scale: "pool=3" }, { at: "110s", restart: "pool" },
    { at: "120s", stop: "pool-2" },
  ],
}"#;

#[test]
fn b5_what_was_recorded_happens_again_in_the_same_order() {
    assert_same_in_variations("web", WEB, "{}", 120);
    assert_same_in_variations("consul", CONSUL, "{}", 120);
    assert_same_in_variations("many", MANY, "{ until: '3m' }", 200);
    assert_same_in_variations("busy", MANY, BUSY, 200);
    assert_same_in_variations("others", OTHERS, OTHERS_BUSY, 200);
}

/// What a verdict prints is what `replay --shrink` reads.
#[test]
fn b5_sentences_are_read_as_they_are_printed() {
    let plan = plan(WEB);
    let read = |text: &str| Claim::read(text, &[&plan]);
    for sentence in [
        "web healthy",
        "never web exitFailed",
        "never web exitFailed after web healthy",
        "web starts once",
        "web starts 3 times after 1m0s and before 2m0s",
        "web healthy before setup exitSuccess",
        "web unhealthy after 10s and before shutdown",
        "greet starts within 5s of web healthy",
        "greet starts within 5s of web healthy after 1s and before exit",
        "web is healthy at the end",
        "web is running at 1m30s",
        "exit with 0",
        "exit with 3 before 10s",
    ] {
        assert_eq!(read(sentence).unwrap().to_string(), sentence);
    }
    assert_eq!(read("see  web healthy ").unwrap(), read("web healthy").unwrap());
    assert_eq!(read("web is healthy").unwrap().to_string(), "web is healthy at the end");
    for (sentence, message) in [
        ("", "the sentence has no moment"),
        ("never", "the sentence has no moment"),
        ("never wbe healthy", "there is no job or watch `wbe`"),
        ("wbe is healthy", "there is no job `wbe`"),
        ("web healthy before soon", "`soon` is not a moment"),
        ("web healthy before -1s", "times must not be negative"),
        ("greet starts within a while of web healthy", "`greet starts within a while of web healthy`"),
        ("web starts some times", "`some` is not a number"),
        ("exit with many", "`many` is not an exit code"),
    ] {
        let found = read(sentence).unwrap_err();
        let all = format!("{} {}", found.message, found.help);
        assert!(all.contains(message) || sentence.contains("a while"), "{sentence}: {all}");
    }
}

/// A file that is written says the same as the scenario.
#[test]
fn b5_scenarios_are_written_as_they_are_read() {
    for (config, text) in [(MANY, BUSY), (OTHERS, OTHERS_BUSY), (CONSUL, CATALOG), (WEB, EXPECTS)] {
        let plan = plan(config);
        let first = scenario(config, text);
        let (file, again) = written(&plan, &first);
        assert_eq!(format!("{again:?}"), format!("{first:?}"), "{file}");
    }
}

const CATALOG: &str = r#"{ catalog: { away: [{ from: 5, to: 9 }, { from: "1m" }], forgets: { at: "20s", job: "web" } },
    jobs: [{ name: "seen", runs: [{ fails: "noDescriptors" }, { fails: "noResources" }, { signal: "KILL" }] }] }"#;

const EXPECTS: &str = r#"{ jobs: [{ name: "setup", runs: { lasts: 2, exit: 0 } }], expect: [
    { see: "web healthy", before: "10s", why: "a \"reason\" of two\nlines" }, { never: "web killed", after: "web starts" },
    { see: "greet starts", within: "5s", of: "web healthy" }, { see: "web starts", times: 1 },
    { job: "web", is: "healthy", at: "12s" }, { exit: 0, after: "1m" }] }"#;

#[test]
fn b5_shrunk_world_has_only_what_breaks_the_sentence() {
    let plan = plan(MANY);
    let scenario = scenario(MANY, BUSY);
    let claim = Claim::read("never web becameUnhealthy", &[&plan]).unwrap();
    let shrunk = shrink(&plan, &scenario, &claim).unwrap();
    let text = write::text(&shrunk.scenario, &[]);
    let (left, all) = shrunk.facts;
    assert!(left <= 2 && all > 20, "{left} of {all}\n{text}");
    assert_eq!(
        judge(&shrunk.scenario, &simulate(&plan, &shrunk.scenario)).iter().filter(|one| !one.holds).count(),
        1
    );
    let kept = Claim::read("never web crashLoop", &[&plan]).unwrap();
    assert!(shrink(&plan, &scenario, &kept).is_none());
}

/// Does not see what happens before a time, as if it was dropped from the recording.
struct From(Time, Observer);

impl Observe for From {
    fn before_step(&mut self, core: &Core, at: Time, input: &Input) {
        if at >= self.0 {
            self.1.before_step(core, at, input);
        }
    }

    fn after_step(&mut self, core: &Core, at: Time, effects: &[Effect]) {
        if at >= self.0 {
            self.1.after_step(core, at, effects);
        }
    }
}

#[test]
fn b5_recording_without_its_beginning_begins_with_a_start() {
    const CONFIG: &str = r#"{ consul: "localhost:8500", jobs: [
        { name: "setup", exec: "setup" },
        { name: "flop", exec: "flop" },
        { name: "web", exec: "web", when: { source: "setup", once: "exitSuccess" }, restarts: "unlimited",
          requires: ["lock.main"], health: { exec: "ok", interval: 5, ttl: 15 } },
        { name: "off", exec: "off", restarts: "unlimited" },
        { name: "db", exec: "db", when: { source: "watch.db", once: "healthy" } },
      ], locks: [{ name: "main" }], watches: [{ name: "db", interval: 5 }] }"#;
    let plan = plan(CONFIG);
    let world = r#"{ until: "3m", jobs: [{ name: "flop", runs: { lasts: "2s", exit: 4 } },
          { name: "web", runs: [{ lasts: "100s", exit: 3 }, {}], checks: { from: "130s", to: "142s" } }],
        happens: [{ at: "5s", stop: "off" }, { at: "150s", start: "off" }] }"#;
    let mut observer = From(Time::from_nanos(60_000_000_000), Observer::default());
    let run = simulate_observed(&plan, &scenario(CONFIG, world), &mut observer);
    let world = observer.1.world();
    assert!(!world.has_begin);
    let recorded = world.aligned(&plan).scenario(&[]);
    let state = |name: &str| recorded.before.iter().find(|(job, _)| job == name).map(|(_, state)| *state);
    let states = ["setup", "flop", "web", "off", "db"].map(state);
    assert_eq!(states.map(Option::unwrap), ["complete", "failed", "running", "stopped", "running"]);
    let (text, again) = written(&plan, &recorded.scenario);
    let again = simulate(&plan, &again);
    let later = |run: &SimulationRun, from: u64| -> Vec<String> {
        let entries = run.entries.iter().filter(|entry| entry.at > Time::from_nanos(from * 1_000_000_000));
        entries.filter(|entry| matches!(entry.what, What::Event(_))).map(|entry| entry.name()).collect()
    };
    assert_eq!(later(&again, 5), later(&run, 65), "{text}");
    assert!(later(&run, 65).contains(&"web becameUnhealthy".to_owned()));
}
