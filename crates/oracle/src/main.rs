//! Runs random schedules: `containerpilot-oracle [--schedules N] [--seed S] [--survey] [--replay SEED]`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use containerpilot_oracle::{nth_seed, random, run_seed, runner};

const USAGE: &str = "usage: containerpilot-oracle [--schedules N] [--seed S] [--survey] [--replay SEED]

  --schedules N  run N random schedules (default 1000000)
  --seed S       use series S of schedules (default 0)
  --survey       run all of them, and count the violations of each rule
  --replay SEED  run one schedule, and print its timeline";

fn main() -> ExitCode {
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
