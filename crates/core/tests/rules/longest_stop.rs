//! S4, S15: the longest time of a shutdown, computed from the plan, is that of a core whose processes react to SIGKILL only.

use std::time::Duration;

use containerpilot_core::Input;
use containerpilot_core::state::longest_stop::longest_stop;

use crate::harness::{Harness, plan};

/// How long a shutdown takes if every process exits on SIGKILL only and the catalog confirms nothing, without the last second.
fn worst_case(text: &str) -> Duration {
    let mut harness = Harness::new(plan(text));
    harness.catalog_confirms = false;
    harness.input(Input::Ready);
    harness.take_output();
    let start = harness.now;
    harness.signal(15);
    while harness.exit.is_none() {
        let killed: Vec<String> = harness.take_output().iter().filter_map(|line| killed(line)).collect();
        if killed.is_empty() {
            harness.millis(50);
        }
        for name in killed {
            // A process may be killed twice, by its timeout and by the shutdown.
            if harness.has_process(&name) {
                harness.exit_on(&name, 9);
            }
        }
        assert!(harness.now.since(start) < Duration::from_secs(3_600), "{text}");
    }
    harness.now.since(start)
}

fn killed(line: &str) -> Option<String> {
    Some(line.strip_prefix("kill ")?.strip_suffix(" 9")?.to_owned())
}

#[test]
fn s4_the_longest_stop_is_that_of_processes_that_do_not_react() {
    let cases = [
        ("{ jobs: [{ name: 'a', exec: 'x' }] }", 5_000),
        ("{ stopTimeout: '8s', jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }] }", 2_000),
        (
            "{ stopTimeout: '8s', jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }, { name: 'b', exec: 'x', drain: '3s', killAfter: '4s' }] }",
            7_000,
        ),
        // Without hooks, a drain is cut so that the process has a quarter of the time.
        ("{ stopTimeout: '8s', jobs: [{ name: 'a', exec: 'x', drain: '30s' }] }", 8_000),
        // The jobs that require another one stop first.
        (
            "{ stopTimeout: '15s', jobs: [{ name: 'db', exec: 'x' }, { name: 'app', exec: 'x', requires: ['db'], killAfter: '1s' }] }",
            16_000,
        ),
        (
            "{ stopTimeout: '5s', jobs: [{ name: 'db', exec: 'x' }, { name: 'app', exec: 'x', requires: ['db'] }] }",
            10_000,
        ),
        // Hooks: with a timeout, without one, and with a limit of the job.
        (
            "{ stopTimeout: '9s', jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }, { name: 'pre', exec: 'x', timeout: '3s', when: { source: 'a', once: 'stopping' } }] }",
            5_000,
        ),
        (
            "{ stopTimeout: '9s', jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }, { name: 'pre', exec: 'x', when: { source: 'a', once: 'stopping' } }] }",
            302_000,
        ),
        (
            "{ stopTimeout: '9s', jobs: [{ name: 'a', exec: 'x', stopTimeout: '1s', killAfter: '2s' }, { name: 'pre', exec: 'x', timeout: '4s', when: { source: 'a', once: 'stopping' } }] }",
            4_000,
        ),
        (
            "{ stopTimeout: '9s', jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }, { name: 'post', exec: 'x', timeout: '3s', when: { source: 'a', once: 'stopped' } }] }",
            5_000,
        ),
        (
            "{ stopTimeout: '9s', jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }, { name: 'bye', exec: 'x', timeout: '3s', when: { once: 'shutdown' } }] }",
            3_000,
        ),
        // Coprocesses stop last.
        (
            "{ stopTimeout: '9s', coprocesses: [{ command: 'y' }], jobs: [{ name: 'a', exec: 'x', killAfter: '2s' }] }",
            11_000,
        ),
        // Jobs that stop after each other.
        (
            "{ stopTimeout: '9s', jobs: [{ name: 'a', exec: 'x', stopAfter: ['b'] }, { name: 'b', exec: 'x', stopAfter: ['a'] }] }",
            18_000,
        ),
        (
            "{ jobs: [{ name: 'a', exec: 'x', when: 'manual' }, { name: 'b', exec: 'x', stopSignal: 'KILL' }] }",
            5_000,
        ),
    ];
    for (text, millis) in cases {
        let longest = longest_stop(&plan(text)).time - Duration::from_secs(1);
        let real = worst_case(text);
        assert!(real <= longest + Duration::from_millis(50), "{text}: {real:?}, at most {longest:?}");
        assert_eq!(longest.as_millis(), millis, "{text}: really {real:?}");
    }
}

#[test]
fn s4_the_steps_of_the_longest_stop_are_named() {
    let plan = plan(
        "{ stopTimeout: '15s', jobs: [{ name: 'db', exec: 'x', port: 1, health: { interval: 1, ttl: 5 } }, { name: 'app', exec: 'x', requires: ['db'], killAfter: '1s' }, \
         { name: 'other', exec: 'x' }] }",
    );
    let stop = longest_stop(&plan);
    let steps = stop.steps.iter().map(|step| {
        (plan.jobs[step.job.index()].name.as_str(), step.is_hook, step.from.as_secs(), step.to.as_secs())
    });
    assert_eq!(steps.collect::<Vec<_>>(), [("app", false, 0, 1), ("db", false, 2, 17)]);
    assert_eq!(stop.time, Duration::from_secs(18));
}

#[test]
fn s4_a_plan_without_processes_needs_one_second_and_a_long_chain_is_bounded() {
    assert_eq!(longest_stop(&plan("{}")).time, Duration::from_secs(1));
    let jobs: Vec<String> = (0..3_000)
        .map(|nth| format!("{{ name: 'j{nth}', exec: 'x', stopAfter: ['j{}'] }}", (nth + 1) % 3_000))
        .collect();
    let plan = plan(&format!("{{ jobs: [{}] }}", jobs.join(", ")));
    assert_eq!(longest_stop(&plan).time, Duration::from_secs(11));
}

/// Small numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A part of a job, in one of three cases.
    fn part(&mut self, text: impl Fn(u64) -> String) -> String {
        let number = 1 + self.below(4);
        if self.below(3) == 0 { text(number) } else { String::new() }
    }

    /// A configuration of up to five jobs that stop in some order, with hooks, coprocesses, drains and limits.
    fn configuration(&mut self) -> String {
        let count = 1 + self.below(5);
        let mut jobs = Vec::new();
        for nth in 0..count {
            let mut job = format!("name: 'j{nth}', exec: 'x'");
            job += &self.part(|time| format!(", killAfter: '{time}s'"));
            job += &self
                .part(|time| format!(", timeout: '{time}s'"))
                .replace("timeout", if nth > 0 { "timeout" } else { "drain" });
            if nth > 0 {
                let other = self.below(nth);
                let kind = self.below(6);
                job += &match kind {
                    0 => format!(", requires: ['j{other}']"),
                    1 => format!(", stopAfter: ['j{other}']"),
                    2 => format!(", when: {{ source: 'j{other}', once: 'stopping' }}"),
                    3 => format!(", when: {{ source: 'j{other}', once: 'stopped' }}"),
                    4 => ", when: { once: 'shutdown' }".to_owned(),
                    _ => format!(", drain: '{}s', stopTimeout: '1s'", 1 + other),
                };
            }
            jobs.push(format!("{{ {job} }}"));
        }
        let coprocess = if self.below(4) == 0 { "coprocesses: [{ command: 'y' }], " } else { "" };
        format!("{{ stopTimeout: '{}s', {coprocess}jobs: [{}] }}", 4 + self.below(6), jobs.join(", "))
    }
}

#[test]
fn s4_no_shutdown_takes_longer_than_the_longest_time() {
    let mut numbers = Numbers(7);
    let mut exact = 0;
    for _ in 0..600 {
        let text = numbers.configuration();
        let longest = longest_stop(&plan(&text)).time - Duration::from_secs(1);
        let real = worst_case(&text);
        assert!(real <= longest + Duration::from_millis(50), "{text}: {real:?}, at most {longest:?}");
        exact += usize::from(real + Duration::from_millis(50) >= longest);
    }
    // A job that has reached its `timeout` before the shutdown takes no time.
    assert!(exact > 300, "the time is exact for {exact} of 600 configurations only");
}
