//! Runs random schedules, or an exhaustive search of small plans. `USAGE` lists the options.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use containerpilot_oracle::search::limits::Limits;
use containerpilot_oracle::search::{Summary, plans, search_all};
use containerpilot_oracle::{nth_seed, random, run_seed, runner};

const USAGE: &str = "usage: containerpilot-oracle [--schedules N] [--seed S] [--survey] [--replay SEED]
       containerpilot-oracle --exhaustive [--jobs N] [--plans NAME] [--depth N] [--outside N] [--faults N] [--states N]

  --schedules N  run N random schedules (default 1000000)
  --seed S       use series S of schedules (default 0)
  --survey       run all of them, and count the violations of each rule
  --replay SEED  run one schedule, and print its timeline

  --exhaustive   try every order of everything that can happen to small plans
  --jobs N       plans of 2 or of 3 jobs (default: both)
  --plans NAME   only plans whose name contains NAME
  --depth N      the most moves (default 60)
  --outside N    the most inputs from outside, besides two stop signals (default 1)
  --faults N     the most failed starts, orphaned groups, pauses and races with a timer (default 1)
  --states N     the most states of one plan (default 100000)";

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--exhaustive") {
        return exhaustive();
    }
    let mut schedules = 1_000_000;
    let mut series = 0;
    let mut seed = None;
    let mut count_violations = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--survey" {
            count_violations = true;
            continue;
        }
        let number = arguments.next().and_then(|number| number.parse().ok());
        match (name.as_str(), number) {
            ("--schedules", Some(number)) => schedules = number,
            ("--seed", Some(number)) => series = number,
            ("--replay", Some(number)) => seed = Some(number),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let passed = match seed {
        Some(seed) => replay(seed),
        None if count_violations => survey(series, schedules),
        None => run_all(series, schedules),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs schedules up to the first violation.
fn run_all(series: u64, schedules: u64) -> bool {
    let start = Instant::now();
    let (mut steps, mut runs, mut events, mut reloads) = (0_u64, 0, 0, 0);
    for nth in 0..schedules {
        match run_seed(nth_seed(series, nth)) {
            Ok(totals) => {
                steps += u64::from(totals.steps);
                runs += totals.runs;
                events += totals.events;
                reloads += totals.reloads;
            }
            Err(failure) => {
                println!("after {nth} schedules: {failure}");
                return false;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{schedules} schedules, {steps} steps, no violation: {runs} runs, {events} events, {reloads} reloads in \
         {seconds:.1}s ({:.0} schedules per second)",
        schedules as f64 / seconds
    );
    true
}

/// Counts the violations of each rule, with a seed for each.
fn survey(series: u64, schedules: u64) -> bool {
    let mut violations: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for seed in (0..schedules).map(|nth| nth_seed(series, nth)) {
        if let Err(violation) = runner::run(&random::scenario(seed), None) {
            let what = violation.what.split_once(": ").map_or(violation.what.as_str(), |(_, what)| what);
            let words: String = what.chars().filter(|c| !c.is_ascii_digit()).collect();
            violations.entry(format!("{} {words}", violation.rule)).or_insert((0, seed)).0 += 1;
        }
    }
    for (what, (count, seed)) in &violations {
        println!("{count:>8} {what} (seed {seed})");
    }
    violations.is_empty()
}

fn replay(seed: u64) -> bool {
    let mut timeline = String::new();
    // The violation is shown below, with the smallest scenario.
    let _ = runner::run(&random::scenario(seed), Some(&mut timeline));
    print!("{timeline}");
    match run_seed(seed) {
        Ok(_) => true,
        Err(failure) => {
            println!("\n{failure}");
            false
        }
    }
}

fn exhaustive() -> ExitCode {
    let mut limits = Limits { depth: 60, states: 100_000, outside: 1, faults: 1 };
    let (mut name, mut jobs) = (String::new(), None);
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--exhaustive");
    while let Some(option) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let number = value.parse::<u32>().ok();
        match (option.as_str(), number) {
            ("--plans", _) => name = value,
            ("--jobs", Some(2 | 3)) => jobs = number,
            ("--depth", Some(number)) => limits.depth = number as usize,
            ("--states", Some(number)) => limits.states = number as usize,
            ("--outside", Some(number @ 0..=9)) => limits.outside = number as u8,
            ("--faults", Some(number @ 0..=9)) => limits.faults = number as u8,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    for (what, count, mut plans) in [("pairs", 2, plans::pairs()), ("triples", 3, plans::triples())] {
        if jobs.is_some_and(|jobs| jobs != count) {
            continue;
        }
        plans.retain(|plan| plan.name.contains(&name));
        let start = Instant::now();
        match search_all(&plans, limits) {
            Ok(summary) => print_summary(what, &summary, start.elapsed().as_secs_f64()),
            Err(failure) => {
                println!("{failure}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn print_summary(what: &str, summary: &Summary, seconds: f64) {
    let Summary { totals, plans, complete, depths, largest } = summary;
    println!(
        "{plans} {what} of jobs, {} states, {} steps, no violation: {} exits, {} quiet states, {complete} plans \
         complete, depth up to {}, {seconds:.1}s ({:.0} steps per second)",
        totals.states,
        totals.steps,
        totals.exits,
        totals.quiet,
        totals.depth,
        totals.steps as f64 / seconds
    );
    let depths: Vec<_> = depths.iter().map(|(depth, plans)| format!("{plans} to {depth}")).collect();
    if !depths.is_empty() {
        println!(
            "  not complete, by depth: {}; most states: {} ({})",
            depths.join(", "),
            largest.0,
            largest.1
        );
    }
}
