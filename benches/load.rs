//! The time to load a configuration, and whether it grows linearly with the number of jobs.
//!
//! `cargo bench --bench load` prints the time for 10 to 10,000 jobs: in total and for each step. The last column is the time
//! per job relative to that of 1,000 jobs; it should stay near 1.

use std::fmt::Write;
use std::time::{Duration, Instant};

use containerpilot_config::host::StaticHost;
use containerpilot_config::{ConfigFile, Options, json5, load, template};

/// A realistic configuration: templates, checks, services, dependencies.
fn configuration(jobs: usize) -> Vec<u8> {
    let mut text = String::from("{\n  consul: \"{{ .CONSUL | default \"localhost\" }}:8500\",\n  jobs: [\n");
    for nth in 0..jobs {
        let when = if nth == 0 {
            String::new()
        } else {
            format!("when: {{ source: \"job-{}\", once: \"healthy\", timeout: \"60s\" }},", nth - 1)
        };
        let _ = write!(
            text,
            "    {{\n      // number {nth}\n      name: \"job-{nth}\",\n      \
             exec: [\"/bin/server\", \"--port\", {}, \"--name\", \"{{{{ .NAME }}}}\"],\n      {when}\n      \
             {{{{ if .PUBLIC }}}}port: {},{{{{ end }}}}\n      interfaces: [\"static:10.0.0.1\"],\n      \
             restarts: \"unlimited\",\n      health: {{ exec: \"/bin/check {nth}\", interval: 5, ttl: 15 }},\n    }},\n",
            1024 + nth % 60_000,
            1024 + nth % 60_000,
        );
    }
    text.push_str("  ],\n}\n");
    text.into_bytes()
}

/// The shortest of several runs, which is the least disturbed one.
fn shortest(runs: usize, mut work: impl FnMut()) -> Duration {
    let once = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..runs).map(|_| once(&mut work)).min().unwrap_or_default()
}

fn main() {
    let environment = [("NAME", "shop"), ("PUBLIC", "1")].map(|(name, value)| (name.into(), value.into()));
    let host =
        StaticHost { environment: environment.into(), hostname: "host".into(), ..StaticHost::default() };
    let options = Options { version: "0" };
    println!(
        "{:>7} {:>9} {:>10} {:>10} {:>10} {:>10} {:>6}",
        "jobs", "bytes", "render", "parse", "all", "per job", "ratio"
    );
    let mut rows = Vec::new();
    for (jobs, runs) in [(10, 200), (100, 100), (1_000, 30), (10_000, 10)] {
        let text = configuration(jobs);
        let rendered = match template::render(&text, &host.environment) {
            Ok(rendered) => rendered.text,
            Err(errors) => {
                eprintln!(
                    "the configuration of the benchmark is invalid: {:?}",
                    errors.first().map(|error| &error.message)
                );
                std::process::exit(1);
            }
        };
        let render = shortest(runs, || drop(template::render(&text, &host.environment)));
        let parse = shortest(runs, || drop(json5::parse(&rendered)));
        let all = shortest(runs, || {
            let input = ConfigFile { name: "bench.json5".into(), text: text.clone() };
            let loaded = load(vec![input], &host, options);
            assert!(
                loaded.plan.is_some_and(|plan| plan.jobs.len() == jobs),
                "the configuration does not load"
            );
        });
        rows.push((jobs, text.len(), render, parse, all));
    }
    let per_job = |jobs: usize, time: Duration| time.as_secs_f64() / jobs as f64;
    let base = rows.iter().find(|row| row.0 == 1_000).map_or(1.0, |row| per_job(row.0, row.4));
    for (jobs, bytes, render, parse, all) in rows {
        println!(
            "{jobs:>7} {bytes:>9} {:>8.2}ms {:>8.2}ms {:>8.2}ms {:>8.2}µs {:>6.2}",
            render.as_secs_f64() * 1e3,
            parse.as_secs_f64() * 1e3,
            all.as_secs_f64() * 1e3,
            per_job(jobs, all) * 1e6,
            per_job(jobs, all) / base
        );
    }
}
