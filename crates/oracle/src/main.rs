//! Plays many schedules: `containerpilot-oracle [--schedules N] [--seed S] [--survey] [--replay SEED]`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use containerpilot_oracle::{nth_seed, random, run_seed, runner};

fn main() -> ExitCode {
    let mut schedules = 1_000_000;
    let mut series = 0;
    let mut replay = None;
    let mut arguments = std::env::args().skip(1);
    let mut survey = false;
    while let Some(name) = arguments.next() {
        if name == "--survey" {
            survey = true;
            continue;
        }
        let number = arguments.next().and_then(|number| number.parse().ok());
        match (name.as_str(), number) {
            ("--schedules", Some(number)) => schedules = number,
            ("--seed", Some(number)) => series = number,
            ("--replay", Some(number)) => replay = Some(number),
            _ => {
                eprintln!("containerpilot-oracle [--schedules N] [--seed S] [--survey] [--replay SEED]");
                return ExitCode::from(2);
            }
        }
    }
    if let Some(seed) = replay {
        let mut timeline = String::new();
        let _ = runner::run(&random::scenario(seed), Some(&mut timeline));
        print!("{timeline}");
        return report(seed).map_or(ExitCode::SUCCESS, |()| ExitCode::FAILURE);
    }
    if survey {
        return survey_of(series, schedules);
    }
    let begun = Instant::now();
    let (mut steps, mut runs, mut events, mut reloads) = (0_u64, 0, 0, 0);
    for nth in 0..schedules {
        let seed = nth_seed(series, nth);
        match run_seed(seed) {
            Ok(totals) => {
                steps += u64::from(totals.steps);
                runs += totals.runs;
                events += totals.events;
                reloads += totals.reloads;
            }
            Err(failure) => {
                println!("after {nth} schedules: {failure}");
                return ExitCode::FAILURE;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{schedules} schedules, {steps} steps, no violation: {runs} runs, {events} events, {reloads} reloads in \
         {seconds:.1} s ({:.0} schedules a second)",
        schedules as f64 / seconds
    );
    ExitCode::SUCCESS
}

/// How often each rule is broken, with a seed for each.
fn survey_of(series: u64, schedules: u64) -> ExitCode {
    let mut broken: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for seed in (0..schedules).map(|nth| nth_seed(series, nth)) {
        if let Err(violation) = runner::run(&random::scenario(seed), None) {
            let what = violation.what.split_once(": ").map_or(violation.what.as_str(), |(_, what)| what);
            let words: String = what.chars().filter(|c| !c.is_ascii_digit()).collect();
            broken.entry(format!("{} {words}", violation.rule)).or_insert((0, seed)).0 += 1;
        }
    }
    for (what, (count, seed)) in &broken {
        println!("{count:>8} {what} (seed {seed})");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(seed: u64) -> Option<()> {
    run_seed(seed).err().map(|failure| println!("\n{failure}"))
}
