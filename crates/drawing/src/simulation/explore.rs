//! The results of `simulate --explore`.

use std::fmt::Write;

use containerpilot_simulation::explore::Found;
use containerpilot_simulation::fault::Fault;
use containerpilot_text::json::pretty_json;
use containerpilot_text::screen::{Screen, Tone, sanitized};
use containerpilot_text::summary::plural;
use serde::Serialize;

pub fn human(screen: Screen, variations: u64, found: &[Found]) -> String {
    let mut out = String::new();
    let (problems, consequences): (Vec<&Found>, Vec<&Found>) =
        found.iter().partition(|found| found.is_problem());
    for found in &problems {
        finding(&mut out, screen, Tone::Bad, "PROBLEM", found);
    }
    for found in &consequences {
        finding(&mut out, screen, Tone::Waiting, "FAULT", found);
    }
    let problems = match problems.len() {
        0 => "no problems".to_owned(),
        count => plural(count, "problem"),
    };
    let _ = writeln!(
        out,
        "{variations} variations tried: {problems}, {} of injected faults",
        plural(consequences.len(), "consequence")
    );
    out
}

fn finding(out: &mut String, screen: Screen, tone: Tone, word: &str, found: &Found) {
    let _ = writeln!(
        out,
        "{} {}  {}",
        screen.paint(tone, &format!("{word:7}")),
        sanitized(&found.finding.to_string()),
        screen.paint(Tone::Faint, &format!("--seed {}", found.seed))
    );
    let _ = writeln!(out, "        {}", sanitized(&fault_list(&found.faults)));
    for line in &found.because {
        let _ = writeln!(out, "{}", screen.paint(Tone::Faint, &format!("          {}", sanitized(line))));
    }
    out.push('\n');
}

/// The injected faults in one line.
pub fn fault_list(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return "without any fault".to_owned();
    }
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("if {}", faults.join(", and "))
}

#[derive(Serialize)]
struct Answer {
    ok: bool,
    variations: u64,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    problem: bool,
    finding: String,
    faults: Vec<String>,
    seed: String,
    variations: u64,
    because: Vec<String>,
}

pub fn json(variations: u64, found: &[Found]) -> String {
    let finding = |found: &Found| Finding {
        problem: found.is_problem(),
        finding: found.finding.to_string(),
        faults: found.faults.iter().map(ToString::to_string).collect(),
        seed: found.seed.to_string(),
        variations: found.variations,
        because: found.because.clone(),
    };
    pretty_json(&Answer {
        ok: !found.iter().any(Found::is_problem),
        variations,
        findings: found.iter().map(finding).collect(),
    })
}
