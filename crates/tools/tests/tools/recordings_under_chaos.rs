//! Recordings of real supervisors whose jobs are killed and whose checks, users, configurations and Consul change all
//! the time (B1–B4). `CHAOS_RUNS=n` sets how many there are, `CHAOS_SEED=n` with which they begin.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::Signal;

use crate::recordings::{Event, ask, events, only, played_so_far, replayed_events};
use crate::support::consul::Agent;
use crate::support::processes::send;
use crate::support::program::{code, err};
use crate::support::supervisor::{Supervisor, child_pids, modes, wait_until};

const CONFIG: &str = "{ consul: 'CONSUL', control: { socket: '@/socket' }, stopTimeout: '300ms',
  record: { file: 'FILE', memory: 'MEMORY' }, watches: [{ name: 'front', interval: 1 }], jobs: [
    { name: 'front', exec: 'sleep 1000', restarts: 'unlimited', restartBackoff: false, port: 80,
      interfaces: ['static:127.0.0.1'],
      health: { exec: 'test ! -e @/ill', interval: '30ms', timeout: '5s', ttl: 10 } },
    { name: 'late', exec: 'sleep 1000', when: { source: 'front', once: 'healthy' }, restarts: RESTARTS },
    { name: 'crash', exec: ['sh', '-c', 'sleep 0.0DIGIT; exit DIGIT'], restarts: RESTARTS, restartBackoff: false },
    { name: 'after', exec: 'true', when: { source: 'crash', each: 'exitFailed' } },
    { name: 'seen', exec: 'true', when: { source: 'watch.front', each: 'changed' } },
    { name: 'stubborn', exec: ['sh', '-c', 'trap true TERM; while true; do sleep 1; done'], restarts: 'unlimited' },
    { name: 'tick', exec: 'true', when: { interval: '40ms' } },
    { name: 'bye', exec: 'true', when: { source: 'front', once: 'stopped' } }] }";
const JOBS: [&str; 5] = ["front", "late", "crash", "stubborn", "tick"];

/// Numbers that look random, the same ones for each seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3;
        usize::try_from(mixed).unwrap() % bound
    }

    fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A supervisor that is disturbed.
struct Chaos<'a> {
    random: Random,
    run: Supervisor,
    agent: &'a Agent,
    file: &'a Path,
    memory: &'static str,
}

impl Chaos<'_> {
    /// Does one random thing.
    fn step(&mut self) {
        let random = &mut self.random;
        let command = |words: &[&str]| drop(ask(&self.run, words));
        match random.below(12) {
            0..6 => {
                let signals = [
                    Signal::SIGKILL,
                    Signal::SIGTERM,
                    Signal::SIGHUP,
                    Signal::SIGSEGV,
                    Signal::SIGSTOP,
                    Signal::SIGCONT,
                ];
                let pids = child_pids(self.run.pid());
                if !pids.is_empty() {
                    send(random.choose(&pids), random.choose(&signals));
                }
            }
            6 => drop(fs::write(self.run.file("ill"), "")),
            7 => drop(fs::remove_file(self.run.file("ill"))),
            8 => command(&[random.choose(&["start", "stop", "restart"]), random.choose(&JOBS)]),
            9 => command(random.choose(&[
                &["maintenance", "enable"],
                &["maintenance", "disable"],
                &["putenv", "LEVEL=high"],
            ])),
            10 => {
                self.run.rewrite(&config(random, self.agent, self.file, self.memory));
                command(&["reload"]);
            }
            _ => self.agent.signal(random.choose(&["-STOP", "-CONT"])),
        }
    }
}

fn config(random: &mut Random, agent: &Agent, file: &Path, memory: &str) -> String {
    CONFIG
        .replace("CONSUL", &agent.address())
        .replace("FILE", &file.display().to_string())
        .replace("MEMORY", memory)
        .replace("RESTARTS", random.choose(&["0", "2", "30", "'unlimited'"]))
        .replace("DIGIT", random.choose(&["1", "3", "7"]))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn b4_a_few_runs_under_chaos_are_played() {
    play_runs(6);
}

#[test]
#[ignore = "slow: 300 supervisors under chaos"]
fn b4_many_runs_under_chaos_are_played() {
    play_runs(number("CHAOS_RUNS").unwrap_or(300));
}

fn play_runs(runs: u64) {
    let (next, first) = (AtomicU64::new(0), number("CHAOS_SEED").unwrap_or_default());
    std::thread::scope(|scope| {
        let work = || {
            let agent = Agent::dev();
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= runs {
                    break;
                }
                play_run(first + nth, &agent);
            }
        };
        let workers: Vec<_> = (0..runs.div_ceil(3).min(3)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

fn play_run(seed: u64, agent: &Agent) {
    let folder = crate::support::supervisor::folder();
    let mut random = Random(seed);
    let (file, memory) = (folder.join("recording"), random.choose(&["128KB", "256KiB"]));
    let run = Supervisor::start(random.choose(&modes()), &config(&mut random, agent, &file, memory));
    let mut chaos = Chaos { random, run, agent, file: &file, memory };
    wait_until("it has started", || !events(&chaos.run).is_empty());
    for _ in 0..5 + chaos.random.below(25) {
        chaos.step();
    }
    agent.signal("-CONT");
    let Chaos { mut random, run, .. } = chaos;
    let happened = events(&run);
    let agrees = |played: &[Event]| agree(played, &happened);
    match random.below(3) {
        0 => {
            wait_until("everything is in the file", || {
                played_so_far(&file).is_some_and(|played| agrees(&played))
            });
            run.signal("-KILL");
            run.wait();
            let played = replayed_events(&file);
            assert!(agrees(&played), "CHAOS_SEED={seed}: {played:?} {happened:?}");
        }
        1 => {
            run.signal("-TERM");
            run.wait();
            let played = replayed_events(&file);
            assert!(agrees(&played), "CHAOS_SEED={seed}: {played:?} {happened:?}");
            assert!(played.iter().any(|(_, what)| what == "exit"), "CHAOS_SEED={seed}: {played:?}");
        }
        _ => {
            let taken = run.file("incident.cprec");
            let written = ask(&run, &["record", "--out", taken.to_str().unwrap()]);
            assert_eq!(code(&written), 0, "CHAOS_SEED={seed}: {}", err(&written));
            let played = replayed_events(&taken);
            assert!(agrees(&played), "CHAOS_SEED={seed}: {played:?} {happened:?}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Whether the events of a replay are those that have happened. The oldest may be missing, in the journal as in a
/// recording in memory, and the newest are not in the journal yet.
fn agree(played: &[Event], happened: &[Event]) -> bool {
    let played = only(played, happened);
    let happened: Vec<_> = happened.iter().collect();
    (0..played.len()).any(|from| played[from..].starts_with(&happened))
        || (1..happened.len().saturating_sub(5)).any(|from| played.starts_with(&happened[from..]))
}
