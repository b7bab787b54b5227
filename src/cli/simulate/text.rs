//! The timeline for a person.

use std::fmt::Write;

use containerpilot_core::Time;
use containerpilot_core::event::Code;
use containerpilot_simulation::expect::{Verdict, moment_of};
use containerpilot_simulation::timeline::{SimulationRun, Entry, What};
use std::collections::BTreeMap;

use super::super::terminal::{Screen, Tone, table, visible};

/// How often the same thing is told before it is only counted.
const OFTEN: usize = 5;

pub(super) fn story(screen: Screen, course: &SimulationRun, verdicts: &[Verdict], full: bool) -> String {
    let mut out = String::new();
    let mut told: BTreeMap<(&str, What, Option<&str>), usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for entry in &course.entries {
        let cause = entry.cause.and_then(|place| course.entries.get(place));
        let count = told.entry((&entry.source, entry.what, cause.map(|cause| &*cause.source))).or_default();
        *count += 1;
        if full || *count <= OFTEN || is_rare(entry) {
            rows.push(row(entry, cause));
        }
    }
    out += &table(screen, &["TIME", "WHO", "WHAT", "WHY"], &rows);
    if !full {
        unsaid(&mut out, screen, &told);
    }
    ending(&mut out, screen, course);
    judgement(&mut out, screen, verdicts);
    out
}

/// What is told however often it comes.
fn is_rare(entry: &Entry) -> bool {
    matches!(entry.what, What::Asked | What::Exit(_) | What::Reloaded)
}

fn row(entry: &Entry, cause: Option<&Entry>) -> Vec<(Tone, String)> {
    let tone = match entry.what {
        What::Event(Code::Healthy) | What::InCatalog(_) => Tone::Good,
        What::Event(Code::ExitFailed | Code::Unhealthy | Code::TimerExpired)
        | What::Killed
        | What::Warning
        | What::ChecksFail
        | What::Forgotten
        | What::CatalogAway(true) => Tone::Bad,
        What::Event(Code::Stopping | Code::Stopped | Code::Shutdown) | What::Sent(_) => Tone::Waiting,
        _ => Tone::Plain,
    };
    let what = match entry.what {
        What::Event(Code::Signal) => "arrives".to_owned(),
        What::Sent(_) => entry.name().trim_start_matches(&*entry.source).trim().to_owned(),
        what => what.word().to_owned(),
    };
    let mut why = entry.note.clone();
    // That what was started ends, or is healthy, needs no word.
    let obvious = |cause: &&Entry| cause.what == What::Starts || entry.what == What::Event(Code::Stopped);
    if let Some(cause) = cause.filter(|cause| !obvious(cause)) {
        let arrow = if why.is_empty() { "" } else { "  " };
        let _ = write!(why, "{arrow}← {}", cause.name());
    }
    vec![
        (Tone::Faint, clock(entry.at)),
        (Tone::Plain, entry.source.to_string()),
        (tone, what),
        (if entry.what == What::Warning { Tone::Bad } else { Tone::Faint }, why),
    ]
}

/// A moment to the millisecond, in a column.
fn clock(at: Time) -> String {
    let millis = at.as_nanos() / 1_000_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

fn unsaid(out: &mut String, screen: Screen, told: &BTreeMap<(&str, What, Option<&str>), usize>) {
    let mut more: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for ((source, what, _), count) in told {
        let rare = matches!(what, What::Asked | What::Exit(_) | What::Reloaded);
        if *count > OFTEN && !rare {
            *more.entry((source, what.word())).or_default() += count - OFTEN;
        }
    }
    if more.is_empty() {
        return;
    }
    let parts: Vec<String> =
        more.iter().map(|((source, word), count)| format!("{source} {word} {count}×")).collect();
    let line = format!("not shown (--full does): {}", visible(&parts.join(", ")));
    let _ = writeln!(out, "{}", screen.paint(Tone::Faint, &line));
}

fn ending(out: &mut String, screen: Screen, course: &SimulationRun) {
    out.push('\n');
    let mut rows = Vec::new();
    for name in &course.jobs {
        let runs = course.histories.get(name).map_or(0, |history| history.runs_at_end);
        let Some(view) = course.last.get(name) else { continue };
        let (word, tone) = match (view.word, view.healthy) {
            ("running", Some(true)) => ("healthy", Tone::Good),
            ("running", Some(false)) => ("unhealthy", Tone::Bad),
            (word @ "failed", _) => (word, Tone::Bad),
            (word @ ("waiting" | "restarting" | "stopping"), _) => (word, Tone::Waiting),
            (word, _) => (word, Tone::Plain),
        };
        let why = view.sentences.iter().skip(1).find(|line| line.contains("waits for"));
        let why = why.filter(|_| view.word == "waiting").map(|line| line.trim().to_owned());
        rows.push(vec![
            (Tone::Plain, name.clone()),
            (tone, word.to_owned()),
            (Tone::Plain, runs.to_string()),
            (Tone::Faint, why.unwrap_or_default()),
        ]);
    }
    let head = format!("AT {}", moment_of(course.end));
    *out += &table(screen, &[&head, "STATE", "RUNS", "WHY"], &rows);
    match (course.exit, course.asked_to_stop) {
        (Some((at, code)), Some(asked)) => {
            let took = moment_of(Time::ZERO + at.since(asked));
            let _ = writeln!(out, "\nstopped at the end of the rehearsal, in {took}; exit code {code}");
        }
        (Some((at, code)), None) => {
            let _ = writeln!(out, "\nexit code {code} at {}", moment_of(at));
        }
        (None, _) => out.push('\n'),
    }
}

fn judgement(out: &mut String, screen: Screen, verdicts: &[Verdict]) {
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
            visible(&verdict.expected),
            screen.paint(Tone::Faint, &format!(": {}", visible(&verdict.happened)))
        );
        if verdict.holds {
            continue;
        }
        for line in &verdict.because {
            let _ = writeln!(out, "         {}", visible(line));
        }
        if let Some(why) = &verdict.why {
            let _ = writeln!(out, "         ({})", visible(why));
        }
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.holds).count();
    let line = match failed {
        0 => format!("all {} expectations hold", verdicts.len()),
        failed => format!("{failed} of {} expectations failed", verdicts.len()),
    };
    let _ = writeln!(
        out,
        "\n{}",
        if verdicts.len() == 1 && failed == 0 { "the expectation holds" } else { &line }
    );
}
