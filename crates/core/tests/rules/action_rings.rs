//! Random plans of jobs that act on each other (W14, W19): every step ends, and no job starts without spacing.

use std::collections::BTreeMap;
use std::time::Duration;

use containerpilot_core::event::Code;
use containerpilot_core::ids::{JobIx, RunId};
use containerpilot_core::input::{ExitStatus, Remains};

use containerpilot_core::plan::Signal;
use containerpilot_core::rng::Rng;
use containerpilot_core::state::journal::Origin;
use containerpilot_core::{Core, Effect, Input, Notice, Time};

use crate::harness::{Harness, try_plan};

const SEEDS: u64 = 2_000;
const NAMES: [&str; 5] = ["aa", "bb", "cc", "dd", "ee"];
/// The most parts of one step. Every job may start and stop a few times in it, with an event each.
const MOST_PARTS: usize = 400;
/// The most starts of one job per second: back-offs of 100 ms and more, and intervals of 200 ms and more.
const MOST_STARTS: usize = 60;

/// Generates jobs of one plan.
struct JobGenerator<'a> {
    rng: Rng,
    names: &'a [&'a str],
    /// How often a job acts on maintenance mode or waits for it, in percent.
    maintenance: u64,
}

impl JobGenerator<'_> {
    fn name(&mut self) -> &str {
        self.names[self.rng.index(self.names.len())]
    }

    fn action(&mut self, name: &str) -> String {
        let rng = &mut self.rng;
        if rng.percent(self.maintenance) {
            return format!("do: {{ maintenance: '{}' }}", rng.pick(&["enter", "exit"]));
        }
        let others: Vec<&str> = self.names.iter().copied().filter(|other| *other != name).collect();
        let target = if rng.percent(25) { "@g" } else { others[rng.index(others.len())] };
        match rng.below(10) {
            0..2 => format!("do: {{ start: '{target}' }}"),
            2..4 => format!("do: {{ stop: '{target}' }}"),
            4..7 => format!("do: {{ restart: '{target}' }}"),
            7 => format!("do: {{ signal: '{}', to: '{target}' }}", rng.pick(&["HUP", "TERM", "KILL"])),
            8 => "do: { setEnv: { A: 'x', B: null } }".into(),
            _ => "do: { reload: true }".into(),
        }
    }

    fn event(&mut self) -> (String, &'static str) {
        if self.rng.percent(self.maintenance) {
            return (String::new(), self.rng.pick(&["enterMaintenance", "exitMaintenance"]));
        }
        let codes = ["exitSuccess", "exitSuccess", "exitFailed", "stopping", "stopped", "stopped", "healthy"];
        let code = self.rng.pick(&codes);
        (format!("source: '{}', ", self.name()), code)
    }

    fn when(&mut self) -> String {
        let repeat = self.rng.pick(&["each", "each", "each", "once"]);
        let interval = self.rng.pick(&["200ms", "300ms", "1s"]);
        let queue = if repeat == "each" && self.rng.percent(25) { ", queue: 'all'" } else { "" };
        match self.rng.below(10) {
            0..2 => String::new(),
            2 => format!(", when: {{ interval: '{interval}' }}"),
            3 => ", when: 'manual'".into(),
            4..6 => {
                let [one, other] = [self.event(), self.event()]
                    .map(|(source, code)| format!("{{ {source}event: '{code}' }}"));
                let word = self.rng.pick(&["any", "any", "all"]);
                format!(", when: {{ {repeat}: true{queue}, {word}: [{one}, {other}] }}")
            }
            6 => {
                let (source, code) = self.event();
                format!(", when: {{ {source}once: '{code}', interval: '{interval}' }}")
            }
            _ => {
                let (source, code) = self.event();
                format!(", when: {{ {source}{repeat}: '{code}'{queue} }}")
            }
        }
    }

    fn job(&mut self, name: &str) -> String {
        let exec = match self.rng.below(12) {
            0 => "exec: 'forever'".into(),
            1 => "exec: 'x'".into(),
            2 => "port: 80, health: { exec: 'x', interval: 1, ttl: 5 }".into(),
            3..5 => "exec: 'forever', ready: 'notify'".into(),
            _ => self.action(name),
        };
        let mut job = format!("{{ name: '{name}', {exec}{}", self.when());
        if self.rng.percent(30) {
            job += ", groups: ['g']";
        }
        if self.rng.percent(30) {
            // `each` with unlimited restarts is refused (W6).
            let most = if job.contains("each: ") { "5" } else { "'unlimited'" };
            job += &format!(", restarts: {}", self.rng.pick(&["1", "3", most]));
        }
        if self.rng.percent(20) {
            let bind = self.rng.percent(70);
            job += &format!(", requires: [{{ source: '{}', bind: {bind} }}]", self.name());
        }
        if self.rng.percent(5) {
            job += ", replicas: 2";
        }
        job + " }"
    }
}

/// A core whose processes exit at once, or on a signal.
struct Ring {
    core: Core,
    now: Time,
    inputs: Vec<Input>,
    seen: u64,
    starts: BTreeMap<JobIx, usize>,
}

impl Ring {
    fn input(&mut self, input: Input) -> Result<(), String> {
        let mut effects = Vec::new();
        self.core.begin(self.now, input, &mut effects);
        let mut parts = 0;
        while self.core.advance(&mut effects) {
            parts += 1;
            if parts > MOST_PARTS {
                return Err(format!("a step does not end at {:?}", self.now));
            }
        }
        for event in self.core.journal().events().filter(|event| event.id.0 > self.seen) {
            if let (Origin::Job(job), Code::ExitSuccess | Code::ExitFailed) = (event.origin, event.code) {
                *self.starts.entry(job).or_default() += 1;
            }
        }
        self.seen = self.core.journal().events().last().map_or(self.seen, |event| event.id.0);
        for effect in effects {
            self.effect(effect);
        }
        Ok(())
    }

    fn effect(&mut self, effect: Effect) {
        let exited = |run: RunId, status| Input::Exited { run, status, remains: Remains::Nothing };
        match effect {
            Effect::Spawn { job, run, .. } => {
                self.inputs.push(Input::Started { run, pid: 100 });
                self.inputs.push(Input::Notified { run, notice: Notice::Ready });
                let planned = self.core.plan().jobs[job.index()].exec.program();
                if planned.is_some_and(|exec| exec.program.text() == "x") {
                    self.inputs.push(exited(run, ExitStatus::Code(u8::from(run.0 % 3 == 0))));
                }
            }
            Effect::Kill { run, signal, .. } if signal != Signal::HUP => {
                self.inputs.push(exited(run, ExitStatus::Signal(signal)));
            }
            Effect::RunCheck { run, .. } => self.inputs.push(Input::CheckDone { check: run, result: Ok(()) }),
            Effect::Advertise { job, .. } => self.inputs.push(Input::Deregistered { job }),
            _ => {}
        }
    }

    /// Handles an input, and what processes do because of it.
    fn settle(&mut self, input: Input) -> Result<(), String> {
        self.input(input)?;
        for rounds in 0.. {
            if self.inputs.is_empty() {
                break;
            }
            if rounds > MOST_PARTS {
                return Err(format!("processes start without end at {:?}", self.now));
            }
            for input in std::mem::take(&mut self.inputs) {
                self.input(input)?;
            }
        }
        Ok(())
    }

    fn second(&mut self) -> Result<(), String> {
        let end = self.now + Duration::from_secs(1);
        while let Some(next) = self.core.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.settle(Input::Tick)?;
        }
        self.now = end;
        for (job, starts) in std::mem::take(&mut self.starts) {
            if starts > MOST_STARTS {
                let name = &self.core.plan().jobs[job.index()].name;
                return Err(format!("{name} was started {starts} times in the second before {end:?}"));
            }
        }
        Ok(())
    }
}

fn run(text: &str) -> Option<Result<(), String>> {
    let core = Core::new(try_plan(text).ok()?);
    let mut ring = Ring { core, now: Time::ZERO, inputs: Vec::new(), seen: 0, starts: BTreeMap::new() };
    Some((|| {
        ring.settle(Input::Ready)?;
        for _ in 0..3 {
            ring.second()?;
        }
        ring.settle(Input::Signal(Signal::HUP))?;
        for _ in 0..3 {
            ring.second()?;
        }
        ring.settle(Input::Signal(Signal::TERM))?;
        ring.second()
    })())
}

#[test]
fn w14_random_rings_of_actions_end_their_steps_and_are_spaced() {
    let (mut loaded, mut found) = (0, Vec::new());
    for seed in 0..SEEDS {
        let mut rng = Rng::from_seed(seed);
        let names = &NAMES[..2 + rng.index(4)];
        let maintenance = rng.pick(&[0, 10, 60]);
        let mut generator = JobGenerator { rng, names, maintenance };
        let jobs: Vec<String> = names.iter().map(|name| generator.job(name)).collect();
        let act = "{ name: 'keep', exec: 'forever', groups: ['g'] }, { name: 'first', do: { restart: 'aa' }, when: { source: 'SIGHUP' } }";
        let text = format!("{{ jobs: [\n{},\n{act}] }}", jobs.join(",\n"));
        match run(&text) {
            Some(Err(why)) => found.push(format!("seed {seed}: {why}\n{text}")),
            Some(Ok(())) => loaded += 1,
            None => {}
        }
    }
    assert!(found.is_empty(), "{} plans, such as\n{}", found.len(), found[..found.len().min(5)].join("\n"));
    // The others are refused by the configuration.
    assert!(loaded > SEEDS / 3, "{loaded} of {SEEDS} plans");
}

#[test]
fn w14_a_periodic_action_that_is_started_again_at_once_has_its_next_tick() {
    let mut harness = Harness::running(
        "{ name: 'a', do: { start: 'b' }, when: { source: 'b', each: 'stopped' } }, \
         { name: 'b', do: { stop: 'c' }, restarts: 0, when: { interval: '10s' } }, { name: 'c', exec: 'x' }",
    );
    assert_eq!(harness.status("b").word(), "waiting");
    harness.take_output();
    harness.seconds(10);
    assert!(harness.take_events().contains(&"b exitSuccess".to_owned()));
}
