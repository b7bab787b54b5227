//! What came of many worlds.

use std::fmt::Write;

use containerpilot_config::json::Json;
use containerpilot_simulation::explore::Found;
use containerpilot_simulation::fault::Fault;

use super::super::terminal::{Screen, Tone, visible};

/// For a person.
pub(super) fn human(screen: Screen, worlds: u64, found: &[Found]) -> String {
    let mut out = String::new();
    let (problems, consequences): (Vec<&Found>, Vec<&Found>) =
        found.iter().partition(|found| found.is_problem());
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    for found in &problems {
        head(&mut out, screen, Tone::Bad, "PROBLEM", found);
    }
    for found in &consequences {
        head(&mut out, screen, Tone::Waiting, "IF SO", found);
    }
    let problems = match problems.len() {
        0 => "no problem".to_owned(),
        count => plural(count, "problem"),
    };
    let _ = writeln!(
        out,
        "{worlds} worlds tried: {problems}, {} of what may fail",
        plural(consequences.len(), "consequence")
    );
    out
}

fn head(out: &mut String, screen: Screen, tone: Tone, word: &str, found: &Found) {
    let _ = writeln!(
        out,
        "{} {}  {}",
        screen.paint(tone, &format!("{word:7}")),
        visible(&found.finding.to_string()),
        screen.paint(Tone::Faint, &format!("--seed {}", found.seed))
    );
    let _ = writeln!(out, "        {}", visible(&circumstances(&found.faults)));
    for line in &found.because {
        let _ = writeln!(out, "{}", screen.paint(Tone::Faint, &format!("          {}", visible(line))));
    }
    out.push('\n');
}

/// What comes otherwise than usual, in a line.
pub(super) fn circumstances(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return "even if everything goes as usual".to_owned();
    }
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("if {}", faults.join(", and "))
}

/// For a program.
pub(super) fn json(worlds: u64, found: &[Found]) -> String {
    let one = |found: &Found| {
        let lines = |lines: Vec<String>| Json::List(lines.iter().map(|line| Json::text(line)).collect());
        Json::object([
            ("problem", Json::Bool(found.is_problem())),
            ("finding", Json::text(&found.finding.to_string())),
            ("mishaps", lines(found.faults.iter().map(ToString::to_string).collect())),
            ("seed", Json::text(&found.seed.to_string())),
            ("worlds", Json::whole(found.worlds)),
            ("because", lines(found.because.clone())),
        ])
    };
    Json::object([
        ("ok", Json::Bool(!found.iter().any(Found::is_problem))),
        ("worlds", Json::whole(worlds)),
        ("findings", Json::List(found.iter().map(one).collect())),
    ])
    .pretty()
}
