//! How long a simulation takes: a day of virtual time for twenty jobs, and a thousand variations of its scenario.
//!
//! `cargo bench --bench simulate` prints the time and the number of core steps.

use std::fmt::Write;
use std::time::{Duration, Instant};

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, load};
use containerpilot_core::plan::Plan;
use containerpilot_simulation::explore::Explorer;
use containerpilot_simulation::runner::simulate;
use containerpilot_simulation::scenario::{JobScript, Lifetime, RunScript, Scenario};

/// Twenty services, each waits for the previous one and is checked every ten seconds.
fn plan() -> Option<Plan> {
    let mut text = String::from("{ jobs: [");
    for nth in 0..20 {
        let when = match nth {
            0 => String::new(),
            nth => format!("when: {{ source: 'job{}', once: 'healthy' }},", nth - 1),
        };
        let _ = write!(
            text,
            "{{ name: 'job{nth}', exec: 'x', {when} restarts: 'unlimited', health: {{ exec: 'ok', interval: 10, ttl: 30 }} }},"
        );
    }
    text.push_str("] }");
    let input = ConfigFile { name: "day.json5".to_owned(), text: text.into_bytes() };
    load(vec![input], &StaticHost::default(), Options { version: "0" }).plan
}

fn main() {
    let Some(plan) = plan() else {
        eprintln!("the configuration of the benchmark is invalid");
        std::process::exit(1);
    };
    let mut day = Scenario { until: Some(Duration::from_secs(86_400)), ..Scenario::default() };
    let run = RunScript { lasts: Some(Lifetime::For(Duration::from_secs(600))), ..RunScript::default() };
    day.jobs.insert("job3".to_owned(), JobScript { runs: vec![run], checks: Vec::new() });
    let mut shortest = Duration::MAX;
    let mut steps = 0;
    for _ in 0..5 {
        let started = Instant::now();
        steps = simulate(&plan, &day).steps;
        shortest = shortest.min(started.elapsed());
    }
    println!("a day of 20 jobs: {shortest:.1?}, {steps} steps");
    let started = Instant::now();
    let found = Explorer::new(&plan, &Scenario::default()).explore(1, 1_000).len();
    println!("1000 variations of 20 jobs: {:.1?}, {found} findings", started.elapsed());
}
