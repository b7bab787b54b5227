//! `simulate --format human`: the timeline as a table, the final states and the results of the expectations.

use std::collections::BTreeMap;
use std::fmt::Write;

use containerpilot_core::Time;
use containerpilot_core::event::Code;
use containerpilot_core::report::words::WAITING_UNTIL;
use containerpilot_simulation::expect::{Verdict, moment_of};
use containerpilot_simulation::timeline::{Entry, SimulationRun, What};
use containerpilot_text::screen::{Screen, Tone, sanitized, table};

/// How often the same entry is printed before it is only counted.
const MAX_REPEATS: usize = 5;

/// How times are written.
pub struct Times<'a> {
    /// In a row.
    pub row: &'a dyn Fn(Time) -> String,
    /// In a sentence.
    pub moment: &'a dyn Fn(Time) -> String,
}

/// Times since the start.
pub const SINCE_START: Times<'static> = Times { row: &since_start, moment: &moment_of };

pub fn human(
    screen: Screen,
    run: &SimulationRun,
    verdicts: &[Verdict],
    full: bool,
    times: &Times<'_>,
) -> String {
    let mut out = String::new();
    let mut counts: BTreeMap<(&str, What, Option<&str>), usize> = BTreeMap::new();
    let mut rows = Vec::new();
    // The entries that are left out since the last row.
    let mut left_out = 0;
    for entry in &run.entries {
        let cause = entry.cause.and_then(|place| run.entries.get(place));
        let count = counts.entry((&entry.source, entry.what, cause.map(|cause| &*cause.source))).or_default();
        *count += 1;
        if full || *count <= MAX_REPEATS || is_always_shown(entry.what) {
            rows.extend(gap(std::mem::take(&mut left_out)));
            rows.push(row((times.row)(entry.at), entry, cause));
        } else {
            left_out += 1;
        }
    }
    rows.extend(gap(left_out));
    out += &table(screen, &["TIME", "WHO", "WHAT", "WHY"], &rows);
    if !full {
        omitted(&mut out, screen, &counts);
    }
    final_states(&mut out, screen, run, times);
    results(&mut out, screen, verdicts);
    out
}

/// The row at a place where entries are left out.
fn gap(left_out: usize) -> Option<Vec<(Tone, String)>> {
    let note = match left_out {
        0 => return None,
        1 => "1 repeated entry not shown".to_owned(),
        many => format!("{many} repeated entries not shown"),
    };
    Some([String::from("…"), String::new(), String::new(), note].map(|text| (Tone::Faint, text)).to_vec())
}

fn is_always_shown(what: What) -> bool {
    matches!(what, What::Request | What::Exit(_) | What::Reloaded)
}

fn row(time: String, entry: &Entry, cause: Option<&Entry>) -> Vec<(Tone, String)> {
    let tone = match entry.what {
        What::Event(Code::Healthy) | What::InCatalog(_) => Tone::Good,
        What::Event(Code::ExitFailed | Code::CrashLoop | Code::Unhealthy | Code::TimerExpired)
        | What::Killed
        | What::Warning
        | What::ChecksFail
        | What::Forgotten
        | What::CatalogOutage(true) => Tone::Bad,
        What::Event(Code::Stopping | Code::Stopped | Code::Shutdown) | What::Sent(_) => Tone::Waiting,
        _ => Tone::Plain,
    };
    let what = match entry.what {
        What::Event(Code::Signal) => "arrives".to_owned(),
        What::Sent(_) => entry.name().trim_start_matches(&*entry.source).trim().to_owned(),
        what => what.word().to_owned(),
    };
    let mut why = entry.note.clone();
    // A run is the obvious cause of its own exit.
    let obvious = |cause: &&Entry| cause.what == What::Starts || entry.what == What::Event(Code::Stopped);
    if let Some(cause) = cause.filter(|cause| !obvious(cause)) {
        let arrow = if why.is_empty() { "" } else { "  " };
        let _ = write!(why, "{arrow}← {}", cause.name());
    }
    vec![
        (Tone::Faint, time),
        (Tone::Plain, entry.source.to_string()),
        (tone, what),
        (if entry.what == What::Warning { Tone::Bad } else { Tone::Faint }, why),
    ]
}

/// A time since the start, to the millisecond.
fn since_start(at: Time) -> String {
    let millis = at.as_nanos() / 1_000_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

/// Counts the entries that were left out.
fn omitted(out: &mut String, screen: Screen, counts: &BTreeMap<(&str, What, Option<&str>), usize>) {
    let mut more: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for ((source, what, _), count) in counts {
        if *count > MAX_REPEATS && !is_always_shown(*what) {
            *more.entry((source, what.word())).or_default() += count - MAX_REPEATS;
        }
    }
    if more.is_empty() {
        return;
    }
    let parts: Vec<String> =
        more.iter().map(|((source, word), count)| format!("{source} {word} {count}×")).collect();
    let line = format!("not shown (use --full): {}", sanitized(&parts.join(", ")));
    let _ = writeln!(out, "{}", screen.paint(Tone::Faint, &line));
}

fn final_states(out: &mut String, screen: Screen, run: &SimulationRun, times: &Times<'_>) {
    out.push('\n');
    let mut rows = Vec::new();
    for name in &run.jobs {
        let runs = run.histories.get(name).map_or(0, |history| history.runs_at_end);
        let Some(view) = run.last.get(name) else { continue };
        let (word, tone) = match (view.word, view.healthy) {
            ("running", Some(true)) => ("healthy", Tone::Good),
            ("running", Some(false)) => ("unhealthy", Tone::Bad),
            (word @ "failed", _) => (word, Tone::Bad),
            (word @ ("waiting" | "restarting" | "stopping" | "skipped"), _) => (word, Tone::Waiting),
            (word, _) => (word, Tone::Plain),
        };
        let why = view.sentences.iter().skip(1).find(|line| line.trim_start().starts_with(WAITING_UNTIL));
        let why = match view.word {
            "waiting" => why.map(|line| line.trim().to_owned()),
            "skipped" => view
                .sentences
                .first()
                .and_then(|line| line.split_once("skipped: "))
                .map(|(_, why)| why.to_owned()),
            _ => None,
        };
        rows.push(vec![
            (Tone::Plain, name.clone()),
            (tone, word.to_owned()),
            (Tone::Plain, runs.to_string()),
            (Tone::Faint, why.unwrap_or_default()),
        ]);
    }
    let head = format!("AT {}", (times.moment)(run.end));
    *out += &table(screen, &[&head, "STATE", "RUNS", "WHY"], &rows);
    match (run.exit, run.stop_requested_at) {
        (Some((at, code)), Some(requested)) => {
            let took = moment_of(Time::ZERO + at.since(requested));
            let _ = writeln!(out, "\nstopped at the end of the simulation, in {took}; exit code {code}");
        }
        (Some((at, code)), None) => {
            let _ = writeln!(out, "\nexit code {code} at {}", (times.moment)(at));
        }
        (None, _) => out.push('\n'),
    }
}

fn results(out: &mut String, screen: Screen, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    out.push('\n');
    for verdict in verdicts {
        let (word, tone) = if verdict.holds { ("ok    ", Tone::Good) } else { ("FAILED", Tone::Bad) };
        let _ = writeln!(
            out,
            "{} {}{}",
            screen.paint(tone, word),
            sanitized(&verdict.expected),
            screen.paint(Tone::Faint, &format!(": {}", sanitized(&verdict.happened)))
        );
        if verdict.holds {
            continue;
        }
        for line in &verdict.because {
            let _ = writeln!(out, "         {}", sanitized(line));
        }
        if let Some(why) = &verdict.why {
            let _ = writeln!(out, "         ({})", sanitized(why));
        }
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.holds).count();
    let line = match failed {
        0 => format!("all {} expectations are met", verdicts.len()),
        failed => format!("{failed} of {} expectations failed", verdicts.len()),
    };
    let _ = writeln!(
        out,
        "\n{}",
        if verdicts.len() == 1 && failed == 0 { "the expectation is met" } else { &line }
    );
}
